"""The DREAM paper's models as one family: what tells them apart, told once."""

from functools import partial
from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.dream.options import FAST_TRAINING, PAPER, PAPER_TRAINING, AllocatorConfig
from streamplace.learn.dream.paper_model import PaperModel
from streamplace.learn.learner import Learner
from streamplace.learn.registry import Allocator, Task, register


def paper_model(
    name: str, summary: str, fast: AllocatorConfig, *, upstream: bool = False
) -> PaperModel:
    """Register a model of the paper by its fast options; the graph encoder is part of these."""
    kind = type(fast)
    presets = {
        "fast": Preset(fast, FAST_TRAINING),
        "paper": Preset(kind(**PAPER), PAPER_TRAINING),
    }

    def learner(task: Task, config: AllocatorConfig) -> Learner:
        from streamplace.learn.constructive.learner import ConstructiveLearner
        from streamplace.learn.dream.features import Scale
        from streamplace.learn.dream.teaching import TeachableDream

        known, where = task.features, "the weights to begin from"
        scale = Scale.of(task.training) if known is None else Scale.from_document(known, where)
        policy = TeachableDream(model.policy(config), config, scale)
        return ConstructiveLearner(task, config, policy)

    model = PaperModel(
        name, summary, kind, presets, learner, partial(_read, name), upstream=upstream
    )
    register(model)
    return model


def _read(name: str, path: Path) -> Allocator:
    from streamplace.learn.dream.placing import trained

    return trained(path, name)
