"""Options of the RNN placer; light, so that the registry imports no torch."""

from typing import Annotated, Any

from pydantic import Field

from streamplace.learn.config import TrainingConfig
from streamplace.learn.constructive.options import ConstructiveConfig, Order


class HdpConfig(ConstructiveConfig):
    """Options of the RNN placer."""

    width: Annotated[
        int, Field(ge=2, le=4096, multiple_of=2, description="width of all vectors")
    ] = 64
    devices: Annotated[
        int, Field(ge=1, le=256, description="largest number of devices that the model supports")
    ] = 8
    embedding: Annotated[
        int, Field(ge=1, le=1024, description="width of the vector of a device")
    ] = 16
    order: Annotated[Order, Field(description="order in which operators are placed")] = (
        "topological"
    )
    groups: Annotated[
        int,
        Field(
            ge=1, le=4096, description="number of groups, if a graph has more operators than this"
        ),
    ] = 64
    temperature: Annotated[
        float, Field(gt=0, le=1000, description="temperature T of the logits")
    ] = 1.0
    clip: Annotated[float, Field(gt=0, le=1000, description="largest logit, C")] = 10.0


PAPER: dict[str, Any] = {
    "width": 512,
    "embedding": 512,
    "groups": 256,
    "temperature": 10.0,
    "clip": 5.0,
    "on_policy": 4,
    "signal": "root",
    "baseline": "moving",
    "normalised": False,
    "entropy": 0.0,
}
"""Options of the papers, where they differ from the defaults."""

PAPER_TRAINING = TrainingConfig(
    epochs=1000, batch=1, learning_rate=0.1, final_learning_rate=0.1, clip=1.0
)
FAST_TRAINING = TrainingConfig(
    epochs=200, batch=16, learning_rate=5e-3, final_learning_rate=2e-4, clip=1.0
)
