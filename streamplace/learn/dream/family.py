"""The DREAM paper's models as one family: what tells them apart, told once."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.learn.dream.options import FAST_TRAINING, PAPER, PAPER_TRAINING, AllocatorConfig
from streamplace.learn.learner import Learner
from streamplace.learn.registry import Allocator, Model, Preset, Task, register

if TYPE_CHECKING:
    from streamplace.learn.dream.policy import Policy


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
        from streamplace.learn.dream.policies import build_policy

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
        from streamplace.learn.dream.reinforce import Reinforce

        return Reinforce(task, config, model.policy(config))

    model = PaperModel(
        name, summary, kind, presets, learner, partial(_read, name), upstream=upstream
    )
    register(model)
    return model


def _read(name: str, path: Path) -> Allocator:
    from streamplace.learn.dream.placing import trained

    return trained(path, name)
