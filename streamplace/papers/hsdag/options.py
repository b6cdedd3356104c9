"""Options of HSDAG; light, so that the registry imports no torch."""

from typing import Annotated, Any

from pydantic import Field

from streamplace.learn.config import TrainingConfig
from streamplace.learn.constructive.options import ConstructiveConfig, Trait


class HsdagConfig(ConstructiveConfig):
    """Options of HSDAG."""

    width: Annotated[int, Field(ge=1, le=4096, description="width of all vectors")] = 64
    devices: Annotated[
        int, Field(ge=1, le=256, description="largest number of devices that the model supports")
    ] = 8
    traits: Annotated[
        tuple[Trait, ...],
        Field(
            min_length=1, description="features of operators; those of the paper, and their work"
        ),
    ] = ("kind", "structure", "position", "output", "work")
    hops: Annotated[int, Field(ge=1, le=16, description="layers of the graph encoder")] = 2
    rounds: Annotated[
        int,
        Field(
            ge=1, le=1024, description="rounds of an episode, among which the samples are divided"
        ),
    ] = 4
    discount: Annotated[float, Field(ge=0, le=1, description="discount of a reward, per round")] = (
        0.95
    )
    dropout: Annotated[
        float,
        Field(ge=0, lt=1, description="share of streams that do not join operators into a group"),
    ] = 0.2


PAPER: dict[str, Any] = {
    "width": 128,
    "traits": ("kind", "structure", "position", "output"),
    "rounds": 20,
    "on_policy": 20,
    "baseline": "none",
    "normalised": False,
    "entropy": 0.0,
}
"""Options of the paper, where they differ from the defaults."""

PAPER_TRAINING = TrainingConfig(
    epochs=400, batch=1, learning_rate=1e-4, final_learning_rate=1e-4, clip=1e6
)
"""A hundred episodes, each learned from four times; here every time from fresh samples."""
FAST_TRAINING = TrainingConfig(
    epochs=200, batch=16, learning_rate=5e-3, final_learning_rate=2e-4, clip=1.0
)
