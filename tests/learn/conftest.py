"""One thread for torch, as in training; the stub model, registered, and graphs to train it on."""

import pytest
from problems import chain
from registered import forgetting
from stub_model import model
from torch_threads import one_torch_thread as one_torch_thread

from streamplace.learn.registry import MODELS, LearningTask


@pytest.fixture
def tasks():
    """What learners were built from, while the stubs are registered."""
    built: list[LearningTask] = []
    with forgetting(MODELS):
        MODELS.add("stub", model(built))
        MODELS.add("pupil", model(built, name="pupil", supervised=True))
        yield built


@pytest.fixture
def graphs():
    """Chains of several lengths and weights."""
    return [chain(3 + i % 4, ipt=4e4 * (1 + i % 5), rate=5e3) for i in range(12)]
