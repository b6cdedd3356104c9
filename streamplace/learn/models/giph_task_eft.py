"""GiPH without pairs: chooses tasks, which go where they are done first (appendix B.6)."""

from streamplace.learn.giph.family import giph_model
from streamplace.learn.giph.options import GiphConfig

giph_model(
    "giph-task-eft",
    "Improves a placement by moving chosen tasks to where they are done first (GiPH).",
    GiphConfig(pairs=False),
)
