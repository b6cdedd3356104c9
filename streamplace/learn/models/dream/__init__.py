"""The three models of the DREAM paper (Ni et al., AAAI 2020)."""

from typing import Literal

from pydantic import Field

from streamplace.errors import SettingError
from streamplace.learn.config import (
    MOST_DEVICES,
    MOST_FRESH_DEVICES,
    MemoryConfig,
    TrainingConfig,
)

FEATURES = ("log load", "log transfer", "load", "transfer")
"""Features of an operator; those of the paper are the last two, as they are."""
COMMON = ("load per device", "transfer per device", "one by devices", "log operators")
"""Further features, the same for all operators, where devices are told by what they are."""


class AllocatorConfig(MemoryConfig):
    """Options of all three models."""

    width: int = Field(default=128, ge=4, le=4096, multiple_of=4)  # width of all vectors
    # largest number of devices that the model supports
    devices: int = Field(default=5, ge=1, le=MOST_DEVICES)
    embedding: int = Field(default=32, ge=1, le=1024)  # width of the vector of a device
    # features of an operator: its load, its transfer and the logarithms of both, standardised; or
    # load and transfer alone, as they are
    standardised: bool = True
    random_ties: bool = True  # shuffle operators whose order is arbitrary during training
    depth_first: bool = False  # decide chain by chain; otherwise breadth first
    previous: bool = True  # a decision reads the device of the one before
    # attention of a decision: dot product and an MLP; or additive and a linear layer, with devices
    # upstream weighted by their streams, where encdec has neither attention nor encoder
    attention: Literal["dot", "additive"] = "dot"
    utilisation: bool = False  # a decision reads the loads of the devices, if additive
    # tell devices by their speed and by what they and their links hold, not by their numbers
    device_state: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features of an operator."""
        if self.device_state:
            return (*FEATURES, *COMMON)
        return FEATURES if self.standardised else FEATURES[2:]

    def check_beside(self, training: TrainingConfig) -> None:
        """Raise SettingError where options do not go together."""
        if self.attention == "additive" and self.device_state:
            raise SettingError("additive attention knows numbered devices; drop device_state")
        if self.fresh and self.devices < MOST_FRESH_DEVICES:
            raise SettingError(
                f"fresh problems have up to {MOST_FRESH_DEVICES} devices, but the model supports "
                f"at most {self.devices}; raise devices to {MOST_FRESH_DEVICES}, or leave fresh out"
            )


class GraphAllocatorConfig(AllocatorConfig):
    """Further options of models with a graph encoder."""

    hops: int = Field(default=2, ge=1, le=16)  # rounds of messages, K
    tied: bool = False  # share the weights of all rounds
    # mean of the messages, or GraphSAGE: their maximum over four neighbours drawn anew in training
    pooling: Literal["mean", "max"] = "mean"
