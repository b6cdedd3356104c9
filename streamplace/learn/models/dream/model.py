"""The DREAM paper's three models (Ni et al. 2020): B, B+F1 and B+F1&F2."""

from pathlib import Path
from typing import Any

from streamplace.learn.config import Preset, TrainingConfig
from streamplace.learn.learner import Learner
from streamplace.learn.models.dream import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.registry import Allocator, LearnedModel, LearningTask, register

PAPER: dict[str, Any] = {
    "width": 512,
    "standardised": False,
    "random_ties": False,
    "canonical": False,
    "on_policy": 3,
    "replayed": 3,
    "places": 3,
    "exploration": 20.0,
    "exploration_decay": 1.0,
    "exploration_while_poor": 20,
    "normalised": False,
    "entropy": 0.0,
}
"""Options of the paper, where they differ from the defaults; a graph encoder's are also tied."""

PAPER_TRAINING = TrainingConfig(
    epochs=40, batch=1, learning_rate=1e-3, final_learning_rate=1e-3, clip=1.0, validation=0.0
)
FAST_TRAINING = TrainingConfig(
    epochs=70, batch=32, learning_rate=3e-3, final_learning_rate=3e-5, clip=1.0
)

GPU: dict[str, Any] = {
    "replayed": 1,
    "places": 2,
    "exploration": 16.0,
    "exploration_decay": 0.0,
    "near": 1.0,
    "fresh": 102_400,
}
"""Options for fresh graphs in every step, which no step meets again."""

GPU_TRAINING = TrainingConfig(
    epochs=30, batch=512, learning_rate=5e-3, final_learning_rate=1e-5, clip=1.0
)
"""A minute on an H100."""


def paper_model(name: str, summary: str, fast: AllocatorConfig) -> LearnedModel:
    """Register a model of the paper by its fast options; the graph encoder is part of these."""
    kind = type(fast)
    tied = {"tied": True} if issubclass(kind, GraphAllocatorConfig) else {}
    presets = {
        "fast": Preset(fast, FAST_TRAINING),
        "gpu": Preset(fast.model_copy(update=GPU), GPU_TRAINING),
        "paper": Preset(kind.model_validate(PAPER | tied), PAPER_TRAINING),
    }

    def learner(task: LearningTask, config: AllocatorConfig) -> Learner:
        from streamplace.learn.models.dream.policy import learner_of

        return learner_of(name, task, config)

    def allocator(path: Path) -> Allocator:
        from streamplace.learn.models.dream.policy import trained

        return trained(path, name)

    return register(LearnedModel(name, summary, kind, presets, learner, allocator))


paper_model(
    "encdec",
    "Encoder–decoder LSTMs, for up to five equal devices; by the preset paper, B of DREAM.",
    AllocatorConfig(),
)
paper_model(
    "encdec-gnn",
    "Encoder–decoder with a graph encoder, for up to five equal devices; by the preset paper, "
    "B+F1 of DREAM.",
    GraphAllocatorConfig(),
)
paper_model(
    "dream",
    "Graph-aware encoder–decoder that reads the devices' loads, for up to five equal devices; by "
    "the preset paper, B+F1&F2 of DREAM, which does not.",
    GraphAllocatorConfig(device_state=True),
)
