"""Placeto: visits every operator once and decides where it goes (Addanki et al. 2019)."""

from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.improving.policy import Improver
from streamplace.learn.learner import Learner
from streamplace.learn.models.placeto.options import PAPER, PAPER_TRAINING, TRAINING, PlacetoConfig
from streamplace.learn.registry import LearnedModel, LearningTask, register


def _learner(task: LearningTask, config: PlacetoConfig) -> Learner:
    from streamplace.learn.improving.learner import ImprovingLearner
    from streamplace.learn.models.placeto.policy import PlacetoPolicy

    return ImprovingLearner(task, config, PlacetoPolicy(config))


def _improver(path: Path) -> Improver:
    from streamplace.learn.models.placeto.placing import trained

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
    )
)
