"""One thread for torch, as in training."""

from collections.abc import Iterator

import pytest

from streamplace.learn.threads import one_thread


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Many threads for tiny matrices only wait for each other."""
    with one_thread():
        yield
