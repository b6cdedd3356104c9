"""Placeto: visits every operator once and decides where it goes (Addanki et al. 2019)."""

from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.improver import Improver
from streamplace.learn.learner import Learner
from streamplace.learn.registry import LearnedModel, LearningTask, register
from streamplace.papers.placeto import PAPER, PAPER_TRAINING, TRAINING, PlacetoConfig


def _learner(task: LearningTask, config: PlacetoConfig) -> Learner:
    from streamplace.papers.improving.reinforce import ImprovingLearner
    from streamplace.papers.placeto.policy import PlacetoPolicy

    return ImprovingLearner(task, config, PlacetoPolicy(config))


def _improver(path: Path) -> Improver:
    from streamplace.papers.improving.episodes import trained
    from streamplace.papers.placeto.policy import PlacetoPolicy

    return trained(path, "placeto", PlacetoConfig, PlacetoPolicy)


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
    )
)
