"""The RNN placer of Mirhoseini et al. (2017): reads operators in sequence, then places.

"A Hierarchical Model for Device Placement" (HDP, 2018) puts a learned grouper before it. Here the
groups of large graphs follow a rule.
"""

from typing import Any

from pydantic import Field

from streamplace.learn.config import MAX_DEVICES, ConstructiveConfig, Order, TrainingConfig
from streamplace.papers.groups.model import group_model


class HdpConfig(ConstructiveConfig):
    """Options of the RNN placer."""

    width: int = Field(default=64, ge=2, le=4096, multiple_of=2)  # width of all vectors
    # largest number of devices that the model supports
    devices: int = Field(default=8, ge=1, le=MAX_DEVICES)
    embedding: int = Field(default=16, ge=1, le=1024)  # width of the vector of a device
    order: Order = "topological"  # order in which operators are placed
    # number of groups, if a graph has more operators than this
    groups: int = Field(default=64, ge=1, le=4096)
    temperature: float = Field(default=1.0, gt=0, le=1000)  # temperature T of the logits
    clip: float = Field(default=10.0, gt=0, le=1000)  # largest logit, C


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
"""Options of the papers that differ from the defaults."""

PAPER_TRAINING = TrainingConfig(
    epochs=1000, batch=1, learning_rate=0.1, final_learning_rate=0.1, clip=1.0
)


group_model(
    "hdp",
    "Reads operators as a sequence and places them by an LSTM with attention (the RNN placer).",
    HdpConfig,
    PAPER,
    PAPER_TRAINING,
)
