"""Options of policies that improve placements; light, so that the registry imports no torch."""

from typing import Annotated, Literal

from pydantic import Field

from streamplace.learn.config import Config

Start = Literal["random", "best"]
Cost = Literal["multiple", "logarithm"]
Comparison = Literal["running-mean", "others", "earlier"]


class ImprovingConfig(Config):
    """Options of learning from walks."""

    discount: Annotated[
        float, Field(ge=0, le=1, description="discount of later rewards, per step")
    ] = 0.97
    walks: Annotated[
        int, Field(ge=1, le=1024, description="walks per problem and epoch, all from one placement")
    ] = 4
    start: Annotated[
        Start,
        Field(
            description="placement that walks start from: a random one, or the best one so far, "
            "at first everything on one device"
        ),
    ] = "random"
    cost: Annotated[
        Cost,
        Field(
            description="that steps lower: the value in multiples of the problem's yardstick, or "
            "the logarithm of that"
        ),
    ] = "multiple"
    comparison: Annotated[
        Comparison,
        Field(
            description="baseline that returns are compared with: the mean of earlier rewards; "
            "the mean return of the other walks, in units of their deviation; or "
            "that of this and all earlier walks of the problem"
        ),
    ] = "others"
    entropy: Annotated[float, Field(ge=0, le=10, description="entropy bonus per nat")] = 0.0


PAPER_LEARNING = {"walks": 1, "comparison": "running-mean"}
"""Learning as in the papers: from one walk at a time."""
