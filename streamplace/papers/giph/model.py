"""GiPH (Hu et al. 2023), and its variant that chooses tasks alone (appendix B.6)."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from streamplace.learn.config import Preset, TrainingConfig
from streamplace.learn.learner import Learner
from streamplace.learn.registry import LearnedModel, LearningTask, register
from streamplace.learn.walker import Improver
from streamplace.papers.walks import PAPER_LEARNING, ImprovingConfig


class GiphConfig(ImprovingConfig):
    """Options of GiPH; its variants in the paper are combinations of them."""

    # graph network: messages in both directions, GraphSAGE along the streams, or none
    form: Literal["two-way", "sage", "plain"] = "two-way"
    # rounds of messages; 0 passes through the graph once in topological order
    steps: int = Field(default=0, ge=0, le=64)
    edges: bool = True  # put the features of edges into messages; otherwise nodes get their mean
    potential: bool = True  # use the feature of how much earlier a task could start
    # choose a task and its device; otherwise a task, for the device where it finishes first
    pairs: bool = True


TRAINING = TrainingConfig(
    epochs=20, batch=8, learning_rate=0.01, final_learning_rate=1e-3, clip=10.0
)
PAPER_TRAINING = TrainingConfig(
    epochs=2, batch=1, learning_rate=0.01, final_learning_rate=0.01, clip=1e6
)
"""Some 200 walks on the hundred problems that the family ``giph`` leaves to train with."""


def giph_model(name: str, summary: str, fast: GiphConfig) -> LearnedModel:
    """Register a variant by its fast options."""
    paper = fast.model_copy(update=PAPER_LEARNING)
    presets = {"fast": Preset(fast, TRAINING), "paper": Preset(paper, PAPER_TRAINING)}

    def learner(task: LearningTask, config: GiphConfig) -> Learner:
        from streamplace.papers.giph.module import GiphPolicy
        from streamplace.papers.walks.learner import ImprovingLearner

        return ImprovingLearner(task, config, GiphPolicy(config))

    def improver(path: Path) -> Improver:
        from streamplace.papers.giph.placing import trained

        return trained(path, name)

    return register(
        LearnedModel(name, summary, GiphConfig, presets, learner, improver=improver, cpu_only=True)
    )


giph_model("giph", "Improves a placement by moving tasks to chosen devices (GiPH).", GiphConfig())
giph_model(
    "giph-task-eft",
    "Improves a placement by moving chosen tasks to the devices where they finish first (GiPH).",
    GiphConfig(pairs=False),
)
