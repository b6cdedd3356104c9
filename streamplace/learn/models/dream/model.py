"""The DREAM paper's three models (Ni et al. 2020): B, B+F1 and B+F1&F2."""

from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.learner import Learner
from streamplace.learn.models.dream.options import (
    FAST_TRAINING,
    GPU,
    GPU_TRAINING,
    PAPER,
    PAPER_TRAINING,
    UPSTREAM,
    AllocatorConfig,
    GraphAllocatorConfig,
)
from streamplace.learn.registry import Allocator, LearnedModel, LearningTask, register


def paper_model(name: str, summary: str, fast: AllocatorConfig) -> LearnedModel:
    """Register a model of the paper by its fast options; the graph encoder is part of these."""
    kind = type(fast)
    presets = {
        "fast": Preset(fast, FAST_TRAINING),
        "gpu": Preset(fast.model_copy(update=GPU), GPU_TRAINING),
        "paper": Preset(kind(**PAPER), PAPER_TRAINING),
    }

    def learner(task: LearningTask, config: AllocatorConfig) -> Learner:
        from streamplace.learn.constructive.learner import ConstructiveLearner
        from streamplace.learn.models.dream.graphs import FeatureScale
        from streamplace.learn.models.dream.module import built_module
        from streamplace.learn.models.dream.policy import DreamPolicy

        if task.features is None:
            scale = FeatureScale.of(task.training)
        else:
            scale = FeatureScale.from_document(task.features, "the weights to begin from")
        module = built_module(config, upstream=name in UPSTREAM)
        policy = DreamPolicy(module.to(task.device), config, scale)
        fresh = policy.fresh(task.training, config.fresh) if config.fresh else None
        return ConstructiveLearner(task, config, policy, fresh)

    def allocator(path: Path) -> Allocator:
        from streamplace.learn.models.dream.policy import trained

        return trained(path, name)

    return register(LearnedModel(name, summary, kind, presets, learner, allocator))


paper_model(
    "encdec",
    "Encoder–decoder LSTMs (B of the DREAM paper), for up to five equal devices.",
    AllocatorConfig(),
)
paper_model(
    "encdec-gnn",
    "Encoder–decoder with a graph encoder (B+F1 of the DREAM paper), for up to five equal devices.",
    GraphAllocatorConfig(),
)
paper_model(
    "dream",
    "Graph-aware encoder–decoder of the DREAM paper (B+F1&F2), for up to five equal devices.",
    GraphAllocatorConfig(device_state=True),
)
