"""Placeto: visits every operator once and decides where it goes (Addanki et al. 2019)."""

from streamplace.learn.config import Preset
from streamplace.papers.improving import improving_model
from streamplace.papers.placeto import PAPER, PAPER_TRAINING, TRAINING, PlacetoConfig

improving_model(
    "placeto",
    "Improves a placement by visiting every operator once, in one of six orders (Placeto).",
    PlacetoConfig,
    {
        "fast": Preset(PlacetoConfig(), TRAINING),
        "paper": Preset(PlacetoConfig().model_copy(update=PAPER), PAPER_TRAINING),
    },
    "streamplace.papers.placeto.policy:PlacetoPolicy",
)
