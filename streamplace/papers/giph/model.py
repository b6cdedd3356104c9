"""GiPH (Hu et al. 2023), and its variant that chooses tasks alone (appendix B.6)."""

from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.improver import Improver
from streamplace.learn.learner import Learner
from streamplace.learn.registry import LearnedModel, LearningTask, register
from streamplace.papers.giph import PAPER_TRAINING, TRAINING, GiphConfig
from streamplace.papers.improving import PAPER_LEARNING


def giph_model(name: str, summary: str, fast: GiphConfig) -> LearnedModel:
    """Register a variant by its fast options."""
    paper = fast.model_copy(update=PAPER_LEARNING | {"printed": True})
    presets = {"fast": Preset(fast, TRAINING), "paper": Preset(paper, PAPER_TRAINING)}

    def learner(task: LearningTask, config: GiphConfig) -> Learner:
        from streamplace.papers.giph.policy import GiphPolicy
        from streamplace.papers.improving.reinforce import ImprovingLearner

        return ImprovingLearner(task, config, GiphPolicy(config))

    def improver(path: Path) -> Improver:
        from streamplace.papers.giph.policy import GiphPolicy
        from streamplace.papers.improving.episodes import trained

        return trained(path, name, GiphConfig, GiphPolicy)

    return register(LearnedModel(name, summary, GiphConfig, presets, learner, improver=improver))


giph_model("giph", "Improves a placement by moving tasks to chosen devices (GiPH).", GiphConfig())
giph_model(
    "giph-task-eft",
    "Improves a placement by moving chosen tasks to the devices where they finish first (GiPH).",
    GiphConfig(pairs=False),
)
