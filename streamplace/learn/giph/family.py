"""GiPH and its variants as one family: what tells them apart, told once."""

from pathlib import Path

from streamplace.learn.config import Preset
from streamplace.learn.giph.options import PAPER_TRAINING, TRAINING, GiphConfig
from streamplace.learn.improving.options import PAPER_LEARNING
from streamplace.learn.improving.policy import Improver
from streamplace.learn.learner import Learner
from streamplace.learn.registry import Model, Task, register


def giph_model(name: str, summary: str, fast: GiphConfig) -> Model:
    """Register a variant by its fast options."""
    paper = fast.model_copy(update=PAPER_LEARNING)
    presets = {"fast": Preset(fast, TRAINING), "paper": Preset(paper, PAPER_TRAINING)}

    def learner(task: Task, config: GiphConfig) -> Learner:
        from streamplace.learn.giph.teaching import TeachableGiph
        from streamplace.learn.improving.learner import ImprovingLearner

        return ImprovingLearner(task, config, TeachableGiph(config))

    def improver(path: Path) -> Improver:
        from streamplace.learn.giph.placing import trained

        return trained(path, name)

    return register(Model(name, summary, GiphConfig, presets, learner, improver=improver))
