"""Options of policies that improve placements; light, so that the registry imports no torch."""

from typing import Annotated, Literal

from pydantic import Field

from streamplace.learn.config import Config

Comparison = Literal["running-mean", "others"]


class ImprovingConfig(Config):
    """How walks are learned from."""

    discount: Annotated[float, Field(ge=0, le=1, description="of later rewards, per step")] = 0.97
    walks: Annotated[
        int, Field(ge=1, le=1024, description="of a problem per epoch, from one placement")
    ] = 4
    comparison: Annotated[
        Comparison,
        Field(
            description="what returns are compared with: the mean of the rewards before, or the "
            "mean return of the other walks; of these, in units of their deviation"
        ),
    ] = "others"
    entropy: Annotated[float, Field(ge=0, le=10, description="bonus per nat")] = 0.0


PAPER_LEARNING = {"walks": 1, "comparison": "running-mean"}
"""How the papers learn: one walk after the other."""
