"""Options of pilot for one pass; light, so that the registry imports no torch."""

from typing import Annotated

from pydantic import Field

from streamplace.learn.config import Config


class PilotMakespanConfig(Config):
    """Options of pilot for makespan."""

    width: Annotated[int, Field(ge=1, le=1024, description="units of every layer")] = 32
    looks: Annotated[
        int, Field(ge=1, le=100, description="schedules in a row that it is judged by")
    ] = 3
    rebuilt: Annotated[
        int, Field(ge=0, le=100, description="times that a schedule to learn from is rebuilt")
    ] = 2
