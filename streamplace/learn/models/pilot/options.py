"""Options of pilot; light, so that the registry imports no torch."""

from typing import Annotated

from pydantic import Field

from streamplace.learn.config import Config


class PilotConfig(Config):
    """Options of pilot."""

    width: Annotated[int, Field(ge=1, le=4096, description="units of every layer")] = 128
    rounds: Annotated[int, Field(ge=0, le=32, description="rounds of messages")] = 4
    samples: Annotated[int, Field(ge=1, description="rollouts per problem and epoch")] = 2
    exploration: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="share of decisions that are sampled; the others are the most likely ones",
        ),
    ] = 0.3
    forks: Annotated[
        int,
        Field(ge=1, description="number of decisions of a rollout whose alternatives are tried"),
    ] = 5
    temperature: Annotated[
        float,
        Field(gt=0, description="temperature of relative throughput; lower values learn greedier"),
    ] = 0.01
    warm_up: Annotated[
        int, Field(ge=0, description="number of first epochs with imitation only")
    ] = 3
    imitation: Annotated[
        float, Field(ge=0, description="weight of imitating the best known placement afterwards")
    ] = 0.1
    variety: Annotated[
        float, Field(ge=0, le=1, description="share of rollouts on random clusters")
    ] = 0.25
