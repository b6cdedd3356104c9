"""Options of pilot for one pass; light, so that the registry imports no torch."""

from typing import Annotated

from pydantic import Field

from streamplace.learn.config import Config


class PilotMakespanConfig(Config):
    """Options of pilot for makespan."""

    width: Annotated[int, Field(ge=1, le=1024, description="units of every layer")] = 32
    looks: Annotated[
        int,
        Field(
            ge=1, le=100, description="number of schedules in a row by which the model is validated"
        ),
    ] = 3
    rebuilt: Annotated[
        int, Field(ge=0, le=100, description="number of times that a training schedule is rebuilt")
    ] = 2
