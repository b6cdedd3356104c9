"""Options of HSDAG; light, so that the registry imports no torch."""

from typing import Annotated, Any

from pydantic import Field

from streamplace.learn.config import TrainingConfig
from streamplace.learn.constructive.options import ConstructiveConfig, Trait


class HsdagConfig(ConstructiveConfig):
    """Options of HSDAG."""

    width: Annotated[int, Field(ge=1, le=4096, description="of all vectors")] = 64
    devices: Annotated[int, Field(ge=1, le=256, description="that the model knows")] = 8
    traits: Annotated[
        tuple[Trait, ...],
        Field(min_length=1, description="of operators that it looks at; the paper's but for work"),
    ] = ("kind", "structure", "position", "output", "work")
    hops: Annotated[int, Field(ge=1, le=16, description="layers of the graph encoder")] = 2
    rounds: Annotated[
        int, Field(ge=1, le=1024, description="of an episode, which the samples are dealt to")
    ] = 4
    discount: Annotated[float, Field(ge=0, le=1, description="of a reward, per round")] = 0.95
    dropout: Annotated[
        float, Field(ge=0, lt=1, description="share of the streams that no groups grow along")
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
