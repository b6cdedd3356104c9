"""Placeto: visits every operator once and decides where it goes (Addanki et al. 2019)."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from streamplace.learn.config import MOST_DEVICES, Preset, TrainingConfig
from streamplace.learn.learner import Learner
from streamplace.learn.registry import LearnedModel, LearningTask, register
from streamplace.learn.walker import Improver
from streamplace.papers.walks import ImprovingConfig

Order = Literal[
    "lexicographic",
    "topological",
    "reversed-topological",
    "dfs-preorder",
    "dfs-postorder",
    "bfs",
]


class PlacetoConfig(ImprovingConfig):
    """Options of Placeto."""

    order: Order = "topological"  # order in which operators are visited
    # largest number of devices that the model supports
    devices: int = Field(default=32, ge=1, le=MOST_DEVICES)


TRAINING = TrainingConfig(
    epochs=40, batch=8, learning_rate=0.01, final_learning_rate=1e-3, clip=10.0
)
PAPER_TRAINING = TrainingConfig(
    epochs=50, batch=1, learning_rate=1e-3, final_learning_rate=1e-3, clip=1.25
)
PAPER = {
    "discount": 1.0,
    "entropy": 1.0,
    "walks": 1,
    "start": "best",
    "cost": "logarithm",
    "comparison": "earlier",
}
"""As in the study of traversal orders, which trains for one graph at a time."""


def _learner(task: LearningTask, config: PlacetoConfig) -> Learner:
    from streamplace.papers.placeto.module import PlacetoPolicy
    from streamplace.papers.walks.learner import ImprovingLearner

    return ImprovingLearner(task, config, PlacetoPolicy(config))


def _improver(path: Path) -> Improver:
    from streamplace.papers.placeto.placing import trained

    return trained(path)


register(
    LearnedModel(
        "placeto",
        "Improves a placement by visiting every operator once, in one of six orders (Placeto).",
        PlacetoConfig,
        {
            "fast": Preset(PlacetoConfig(), TRAINING),
            "paper": Preset(PlacetoConfig().model_copy(update=PAPER), PAPER_TRAINING),
        },
        _learner,
        improver=_improver,
        cpu_only=True,
    )
)
