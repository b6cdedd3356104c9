"""One thread for torch, as in training; the stub model, registered, and graphs to train it on."""

from collections.abc import Iterator

import pytest
from problems import chain
from stub_model import model

from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.threads import one_thread
from streamplace.model import StreamGraph


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Many threads for tiny matrices only wait for each other."""
    with one_thread():
        yield


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[LearningTask]:
    """What learners were built from, while the stubs are registered."""
    seen: list[LearningTask] = []
    assert list(MODELS) is not None
    stubs = {"stub": model(seen), "pupil": model(seen, name="pupil", supervised=True)}
    monkeypatch.setattr(MODELS, "_found", {**MODELS._found, **stubs})
    return seen


@pytest.fixture
def graphs() -> list[StreamGraph]:
    """Chains of several lengths and weights."""
    return [chain(3 + i % 4, ipt=4e4 * (1 + i % 5), rate=5e3) for i in range(12)]
