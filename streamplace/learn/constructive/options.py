"""Options of policies that build placements; light, so that the registry imports no torch."""

from typing import Literal

from pydantic import Field

from streamplace.learn.config import Config

Order = Literal[
    "topological",
    "bfs",
    "dfs-preorder",
    "dfs-postorder",
    "reversed-topological",
    "lexicographic",
    "heaviest-first",
]
"""Orders of `streamplace.learn.algorithms.orders`."""


class ConstructiveConfig(Config):
    """Options of learning from sampled placements."""

    on_policy: int = Field(default=8, ge=1, le=1024)  # samples per problem
    # signal to learn from: the reward r, or -1 / √r, where 1 / r is in proportion to the makespan
    signal: Literal["reward", "root"] = "reward"
    # baseline that is subtracted from the signal: the mean of all samples of a problem, the mean of
    # the others, a moving average, or none
    baseline: Literal["mean", "others", "moving", "none"] = "mean"
    normalised: bool = True  # divide advantages by their standard deviation
    entropy: float = Field(default=0.003, ge=0, le=10)  # entropy bonus per nat


class MemoryConfig(ConstructiveConfig):
    """Further options of a memory of good placements."""

    replayed: int = Field(default=2, ge=0, le=1024)  # maximum number of replayed samples
    places: int = Field(default=8, ge=1, le=1024)  # number of placements in the memory of a problem
    threshold: float = Field(default=0.8, ge=0, le=1)  # minimum reward of replayed samples
    # number of random samples in the first epoch
    exploration: float = Field(default=256.0, ge=0, le=1e5)
    # decay of the number of random samples, per epoch
    exploration_decay: float = Field(default=0.1, ge=0, le=100)
    # number of random samples while no good placement is known
    exploration_while_poor: int = Field(default=0, ge=0, le=100_000)
    # share of random samples near remembered placements
    near: float = Field(default=0.0, ge=0, le=1)
