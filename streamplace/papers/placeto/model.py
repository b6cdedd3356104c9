"""Placeto: a policy that visits every operator once and decides where it goes.

After Addanki et al. (2019), and Wang et al. (2022) for the six orders of the visits.
"""

from pydantic import Field

from streamplace.learn.config import MAX_DEVICES, Order, Preset, TrainingConfig
from streamplace.papers.improving.model import ImprovingConfig, improving_model


class PlacetoConfig(ImprovingConfig):
    """Options of Placeto."""

    order: Order = "topological"  # order in which operators are visited
    # largest number of devices that the model supports
    devices: int = Field(default=32, ge=1, le=MAX_DEVICES)


TRAINING = TrainingConfig(
    epochs=40, batch=8, shards=1, learning_rate=0.01, final_learning_rate=1e-3, clip=10.0
)
"""Of one shard, as GiPH's."""
PAPER_TRAINING = TrainingConfig(
    epochs=50, batch=1, learning_rate=1e-3, final_learning_rate=1e-3, clip=1.25
)
PAPER = {
    "discount": 1.0,
    "entropy": 1.0,
    "episodes": 1,
    "start": "best",
    "cost": "logarithm",
    "comparison": "earlier",
}
"""As in the study of traversal orders, which trains for one graph at a time."""


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
