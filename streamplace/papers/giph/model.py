"""GiPH (Hu et al. 2023), and its variant that chooses tasks alone (appendix B.6)."""

from streamplace.learn.config import Preset
from streamplace.papers.giph import PAPER_TRAINING, TRAINING, GiphConfig
from streamplace.papers.improving import PAPER_LEARNING, improving_model

for name, summary, fast in (
    ("giph", "Improves a placement by moving tasks to chosen devices (GiPH).", GiphConfig()),
    (
        "giph-task-eft",
        "Improves a placement by moving chosen tasks to the devices where they finish first "
        "(GiPH).",
        GiphConfig(pairs=False),
    ),
):
    paper = fast.model_copy(update=PAPER_LEARNING | {"printed": True})
    presets = {"fast": Preset(fast, TRAINING), "paper": Preset(paper, PAPER_TRAINING)}
    improving_model(name, summary, GiphConfig, presets, "streamplace.papers.giph.policy:GiphPolicy")
