"""Options and commands that are gone answer with one line that says what to use instead."""

from collections.abc import Callable

import pytest
from command_lines import commands

from streamplace.cli._gone import GONE


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("place --robust", "put confidence = 0.9 into a file for --settings"),
        ("place --dry-run", "put dry-run = true into a file for --settings"),
        ("place --from", "put from = 'FILE' into a file for --settings"),
        ("flink move --settle", "put settle = 'TIME' into a file for --settings"),
        ("flink union", "place one job beside the others, with 'flink cluster --beside'"),
        ("flink history --ledger", "drop it: what was measured is kept"),
    ],
)
def test_what_is_gone_names_what_to_use_instead(refusal: Callable, line: str, told: str) -> None:
    words = line.split()
    assert f"{words[-1]} is gone: {told}" in refusal(*words)


def test_what_is_gone_belonged_to_a_command_that_is_there() -> None:
    assert GONE.keys() <= {words[0] for words in commands()}
