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
        float, Field(ge=0, le=1, description="share of decisions that are drawn, not the likeliest")
    ] = 0.3
    forks: Annotated[
        int, Field(ge=1, description="decisions of a rollout whose alternatives are tried")
    ] = 5
    temperature: Annotated[
        float, Field(gt=0, description="of relative throughput; lower learns greedier")
    ] = 0.01
    warm_up: Annotated[int, Field(ge=0, description="first epochs, of imitation alone")] = 3
    imitation: Annotated[
        float, Field(ge=0, description="weight of the best known placement afterwards")
    ] = 0.1
    variety: Annotated[
        float, Field(ge=0, le=1, description="share of rollouts that are on random clusters")
    ] = 0.25
