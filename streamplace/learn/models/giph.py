"""GiPH: improves a placement by moving one task after the other (Hu et al. 2023)."""

from streamplace.learn.giph.family import giph_model
from streamplace.learn.giph.options import GiphConfig

giph_model("giph", "Improves a placement by moving tasks to chosen devices (GiPH).", GiphConfig())
