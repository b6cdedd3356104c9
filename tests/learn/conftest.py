"""One thread for torch, as in training; the stub model, registered, and graphs to train it on."""

import pytest
from problems import chain
from stub_model import model
from torch_threads import one_torch_thread as one_torch_thread

from streamplace.learn.registry import MODELS, LearningTask
from streamplace.model import StreamGraph


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
