"""Options that are keys of a settings file answer with one line that says so."""

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("place --dry-run", "put dry-run = true into a file for --settings"),
        ("place --from", "put from = 'FILE' into a file for --settings"),
        ("flink move --settle", "put settle = 'TIME' into a file for --settings"),
    ],
)
def test_what_is_gone_names_what_to_use_instead(refusal: Callable, line: str, told: str) -> None:
    words = line.split()
    assert f"{words[-1]} is gone: {told}" in refusal(*words)
