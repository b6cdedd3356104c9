"""HSDAG: learns groups of operators, their number, and where each goes (Duan et al. 2024)."""

from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.learner import Learner
from streamplace.learn.registry import Allocator, LearnedModel, LearningTask, register
from streamplace.papers.groups import FAST_TRAINING
from streamplace.papers.hsdag import PAPER, PAPER_TRAINING, HsdagConfig


def _learner(task: LearningTask, config: HsdagConfig) -> Learner:
    from streamplace.papers.groups.placing import learner_of
    from streamplace.papers.hsdag.policy import build, traits_of

    return learner_of(task, config, traits_of, build)


def _allocator(path: Path) -> Allocator:
    from streamplace.papers.groups.placing import trained
    from streamplace.papers.hsdag.policy import build

    return trained(path, "hsdag", HsdagConfig, build)


register(
    LearnedModel(
        "hsdag",
        "Learns to group operators, without a given number of groups, and to place the groups "
        "(HSDAG).",
        HsdagConfig,
        {
            "fast": Preset(HsdagConfig(), FAST_TRAINING),
            "paper": Preset(HsdagConfig.model_validate(PAPER), PAPER_TRAINING),
        },
        _learner,
        _allocator,
    )
)
