"""GiPH (Hu et al. 2023), and its variant that chooses tasks alone (appendix B.6)."""

from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.improving.options import PAPER_LEARNING
from streamplace.learn.improving.policy import Improver
from streamplace.learn.learner import Learner
from streamplace.learn.models.giph.options import PAPER_TRAINING, TRAINING, GiphConfig
from streamplace.learn.registry import LearnedModel, LearningTask, register


def giph_model(name: str, summary: str, fast: GiphConfig) -> LearnedModel:
    """Register a variant by its fast options."""
    paper = fast.model_copy(update=PAPER_LEARNING)
    presets = {"fast": Preset(fast, TRAINING), "paper": Preset(paper, PAPER_TRAINING)}

    def learner(task: LearningTask, config: GiphConfig) -> Learner:
        from streamplace.learn.improving.learner import ImprovingLearner
        from streamplace.learn.models.giph.policy import GiphPolicy

        return ImprovingLearner(task, config, GiphPolicy(config))

    def improver(path: Path) -> Improver:
        from streamplace.learn.models.giph.placing import trained

        return trained(path, name)

    return register(LearnedModel(name, summary, GiphConfig, presets, learner, improver=improver))


giph_model("giph", "Improves a placement by moving tasks to chosen devices (GiPH).", GiphConfig())
giph_model(
    "giph-task-eft",
    "Improves a placement by moving chosen tasks to the devices where they finish first (GiPH).",
    GiphConfig(pairs=False),
)
