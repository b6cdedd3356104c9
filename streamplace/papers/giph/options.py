"""Options of GiPH; light, so that the registry imports no torch."""

from typing import Annotated, Literal

from pydantic import Field

from streamplace.learn.config import TrainingConfig
from streamplace.papers.walks.options import ImprovingConfig


class GiphConfig(ImprovingConfig):
    """Options of GiPH; its variants in the paper are combinations of them."""

    form: Annotated[
        Literal["two-way", "sage", "plain"],
        Field(
            description="graph network: messages in both directions, GraphSAGE along the "
            "streams, or none"
        ),
    ] = "two-way"
    steps: Annotated[
        int,
        Field(
            ge=0,
            le=64,
            description="rounds of messages; 0 passes through the graph once in topological order",
        ),
    ] = 0
    edges: Annotated[
        bool,
        Field(
            description="put the features of edges into messages; otherwise nodes get their mean"
        ),
    ] = True
    potential: Annotated[
        bool, Field(description="use the feature of how much earlier a task could start")
    ] = True
    pairs: Annotated[
        bool,
        Field(
            description="choose a task and its device; otherwise a task, for the device where it "
            "finishes first"
        ),
    ] = True


TRAINING = TrainingConfig(
    epochs=20, batch=8, learning_rate=0.01, final_learning_rate=1e-3, clip=10.0
)
PAPER_TRAINING = TrainingConfig(
    epochs=2, batch=1, learning_rate=0.01, final_learning_rate=0.01, clip=1e6
)
"""Some 200 walks on the hundred problems that the family ``giph`` leaves to train with."""
