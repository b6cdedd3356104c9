"""Options of policies that build placements; light, so that the registry imports no torch."""

from typing import Annotated, Literal

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

Trait = Literal["kind", "structure", "position", "neighbours", "output", "work"]
"""Groups of features of a node; see `streamplace.papers.groups.traits`."""


class ConstructiveConfig(Config):
    """Options of learning from sampled placements."""

    on_policy: Annotated[int, Field(ge=1, le=1024, description="samples per problem")] = 8
    signal: Annotated[
        Literal["reward", "root"],
        Field(
            description="signal to learn from: rewards, or minus the root of what they are the "
            "inverse of, as a makespan is of its share of the bound"
        ),
    ] = "reward"
    baseline: Annotated[
        Literal["mean", "others", "moving", "none"],
        Field(
            description="baseline that rewards are compared with: the mean of all samples, of the "
            "others, or a moving average of the problem's, nothing"
        ),
    ] = "mean"
    normalised: Annotated[
        bool, Field(description="divide advantages by their standard deviation")
    ] = True
    entropy: Annotated[float, Field(ge=0, le=10, description="entropy bonus per nat")] = 0.003


class MemoryConfig(ConstructiveConfig):
    """Further options of a memory of good placements."""

    replayed: Annotated[
        int, Field(ge=0, le=1024, description="maximum number of replayed samples")
    ] = 2
    places: Annotated[
        int, Field(ge=1, le=1024, description="number of placements in the memory of a problem")
    ] = 8
    threshold: Annotated[
        float, Field(ge=0, le=1, description="minimum reward of replayed samples")
    ] = 0.8
    exploration: Annotated[
        float, Field(ge=0, le=1e5, description="number of random samples in the first epoch")
    ] = 256.0
    exploration_decay: Annotated[
        float, Field(ge=0, le=100, description="decay of the number of random samples, per epoch")
    ] = 0.1
    exploration_while_poor: Annotated[
        int,
        Field(
            ge=0,
            le=100_000,
            description="number of random samples while no good placement is known",
        ),
    ] = 0
    near: Annotated[
        float, Field(ge=0, le=1, description="share of random samples near remembered placements")
    ] = 0.0
