"""The DREAM paper's three models (Ni et al. 2020): B, B+F1 and B+F1&F2."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.learn.config import Preset
from streamplace.learn.learner import Learner
from streamplace.learn.models.dream.options import (
    FAST_TRAINING,
    PAPER,
    PAPER_TRAINING,
    AllocatorConfig,
    GraphAllocatorConfig,
)
from streamplace.learn.registry import Allocator, Model, Task, register

if TYPE_CHECKING:
    from streamplace.learn.models.dream.policy import Policy


@dataclass(frozen=True, slots=True)
class PaperModel(Model):
    """A model of the paper.

    Attributes
    ----------
    upstream
        Whether the decoder sees the devices of upstream operators (F2).
    """

    upstream: bool = False

    def policy(self, config: AllocatorConfig) -> "Policy":
        """Policy with fresh parameters from torch's generator."""
        from streamplace.learn.models.dream.policies import build_policy

        return build_policy(config, upstream=self.upstream)


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
        from streamplace.learn.models.dream.features import Scale
        from streamplace.learn.models.dream.teaching import TeachableDream

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
    from streamplace.learn.models.dream.placing import trained

    return trained(path, name)


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
    upstream=True,
)
