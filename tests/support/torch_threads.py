"""Fixture of folders of tests in which torch computes in one thread, as in training."""

import pytest

from streamplace.learn.shards import one_thread


@pytest.fixture(autouse=True)
def one_torch_thread():
    """Many threads for tiny matrices only wait for each other."""
    with one_thread():
        yield
