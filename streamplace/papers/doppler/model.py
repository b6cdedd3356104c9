"""Doppler: one policy for the next task, one for its device (Yao et al. 2025)."""

from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.learner import Learner
from streamplace.learn.registry import Allocator, LearnedModel, LearningTask, register
from streamplace.papers.doppler import PAPER, PAPER_TRAINING, TRAINING, DopplerConfig


def _learner(task: LearningTask, config: DopplerConfig) -> Learner:
    from streamplace.papers.doppler.policy import DopplerLearner

    return DopplerLearner(task, config)


def _allocator(path: Path) -> Allocator:
    from streamplace.papers.doppler.policy import trained

    return trained(path)


register(
    LearnedModel(
        "doppler",
        "Learns which task to place next and on which device, for one pass (Doppler).",
        DopplerConfig,
        {
            "fast": Preset(DopplerConfig(), TRAINING),
            "paper": Preset(DopplerConfig().model_copy(update=PAPER), PAPER_TRAINING),
        },
        _learner,
        _allocator,
    )
)
