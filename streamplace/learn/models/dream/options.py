"""Options of the DREAM paper's three models; light, so that the registry imports no torch."""

from typing import Annotated, Any

from pydantic import Field

from streamplace.learn.config import TrainingConfig
from streamplace.learn.constructive.options import MemoryConfig, Order


class AllocatorConfig(MemoryConfig):
    """Options of all three models."""

    width: Annotated[
        int, Field(ge=2, le=4096, multiple_of=2, description="width of all vectors")
    ] = 128
    devices: Annotated[
        int, Field(ge=1, le=64, description="largest number of devices that the model supports")
    ] = 5
    embedding: Annotated[
        int, Field(ge=1, le=1024, description="width of the vector of a device")
    ] = 32
    order: Annotated[Order, Field(description="order in which operators are placed")] = "bfs"
    random_ties: Annotated[
        bool, Field(description="shuffle operators whose order is arbitrary during training")
    ] = True
    canonical: Annotated[
        bool, Field(description="allow only the first unused one of interchangeable devices")
    ] = True
    device_state: Annotated[
        bool,
        Field(
            description="use the loads of devices, and what they send to the operator, as features"
        ),
    ] = False


class GraphAllocatorConfig(AllocatorConfig):
    """Further options of models with a graph encoder."""

    hops: Annotated[int, Field(ge=1, le=16, description="rounds of messages, K")] = 2
    shared: Annotated[bool, Field(description="share the weights of both views")] = True
    stream_features: Annotated[
        bool, Field(description="put the traffic of a stream into messages")
    ] = False


PAPER: dict[str, Any] = {
    "width": 512,
    "random_ties": False,
    "canonical": False,
    "on_policy": 3,
    "replayed": 3,
    "exploration": 20.0,
    "exploration_decay": 1.0,
    "exploration_while_poor": 20,
    "normalised": False,
    "entropy": 0.0,
}
"""Options of the paper, where they differ from the defaults."""

PAPER_TRAINING = TrainingConfig(
    epochs=40, batch=1, learning_rate=1e-3, final_learning_rate=1e-3, clip=1.0
)
FAST_TRAINING = TrainingConfig(
    epochs=70, batch=32, learning_rate=3e-3, final_learning_rate=3e-5, clip=1.0
)

OPTIONS: dict[str, type[AllocatorConfig]] = {
    "encdec": AllocatorConfig,
    "encdec-gnn": GraphAllocatorConfig,
    "dream": GraphAllocatorConfig,
}
"""Kind of options of each model."""
UPSTREAM = ("dream",)
"""Models whose decoder gets the devices of upstream operators (F2)."""
