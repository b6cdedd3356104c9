"""The RNN placer: reads operators as a sequence and answers with one of devices (Mirhoseini)."""

from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.learner import Learner
from streamplace.learn.registry import Allocator, LearnedModel, LearningTask, register
from streamplace.papers.groups import FAST_TRAINING
from streamplace.papers.hdp import PAPER, PAPER_TRAINING, HdpConfig


def _learner(task: LearningTask, config: HdpConfig) -> Learner:
    from streamplace.papers.groups.placing import learner_of
    from streamplace.papers.hdp.policy import build, traits_of

    return learner_of(task, config, traits_of, build)


def _allocator(path: Path) -> Allocator:
    from streamplace.papers.groups.placing import trained
    from streamplace.papers.hdp.policy import build

    return trained(path, "hdp", HdpConfig, build)


register(
    LearnedModel(
        "hdp",
        "Reads operators as a sequence and places them by an LSTM with attention (the RNN placer).",
        HdpConfig,
        {
            "fast": Preset(HdpConfig(), FAST_TRAINING),
            "paper": Preset(HdpConfig.model_validate(PAPER), PAPER_TRAINING),
        },
        _learner,
        _allocator,
    )
)
