"""The three models of the DREAM paper (Ni et al., AAAI 2020)."""

from pydantic import Field

from streamplace.learn.config import MOST_DEVICES, MemoryConfig

FEATURES = ("log load", "log transfer", "load", "transfer")
"""Features of an operator; those of the paper are the last two, as they are."""


class AllocatorConfig(MemoryConfig):
    """Options of all three models."""

    width: int = Field(default=128, ge=2, le=4096, multiple_of=2)  # width of all vectors
    # largest number of devices that the model supports
    devices: int = Field(default=5, ge=1, le=MOST_DEVICES)
    embedding: int = Field(default=32, ge=1, le=1024)  # width of the vector of a device
    # features of an operator: its load, its transfer and the logarithms of both, standardised; or
    # load and transfer alone, as they are
    standardised: bool = True
    random_ties: bool = True  # shuffle operators whose order is arbitrary during training
    # use the loads of devices, and what they send to the operator, as features
    device_state: bool = False
    # number of branched graphs that are made anew in every epoch, instead of the given ones, for
    # their cluster and at their rates; 0: none
    fresh: int = Field(default=0, ge=0, le=10_000_000)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features of an operator."""
        return FEATURES if self.standardised else FEATURES[2:]


class GraphAllocatorConfig(AllocatorConfig):
    """Further options of models with a graph encoder."""

    hops: int = Field(default=2, ge=1, le=16)  # rounds of messages, K
    tied: bool = False  # share the weights of all rounds
