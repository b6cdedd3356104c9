"""Options of Doppler; light, so that the registry imports no torch."""

from typing import Annotated, Literal

from pydantic import Field

from streamplace.errors import SettingError
from streamplace.learn.config import Config, TrainingConfig


class DopplerConfig(Config):
    """Options of Doppler."""

    width: Annotated[int, Field(ge=1, le=4096, description="width of the messages")] = 64
    rounds: Annotated[
        int, Field(ge=0, le=64, description="rounds of messages, once per episode")
    ] = 6
    hidden: Annotated[int, Field(ge=1, le=4096, description="hidden units of both heads")] = 64
    select: Annotated[
        Literal["learned", "critical-path", "topological"],
        Field(
            description="which task is placed next: a learned choice, the one with the longest "
            "path to an exit, or topological order"
        ),
    ] = "learned"
    place: Annotated[
        Literal["learned", "earliest"],
        Field(
            description="which device it is placed on: a learned choice, or the one where it can "
            "start first"
        ),
    ] = "learned"
    looks: Annotated[
        Literal["seconds", "deviations"],
        Field(
            description="unit of the differences between devices: the mean task, or their "
            "standard deviation"
        ),
    ] = "seconds"
    imitation: Annotated[
        int,
        Field(
            ge=0,
            description="number of first epochs that imitate the critical path; none with --start",
        ),
    ] = 10
    straying: Annotated[
        float, Field(ge=0, le=1, description="share of random decisions in its first epoch")
    ] = 0.2
    steps: Annotated[int, Field(ge=1, description="steps per problem and epoch")] = 32
    episodes: Annotated[int, Field(ge=1, le=4096, description="episodes per problem and step")] = 8
    drawn: Annotated[
        Literal["softmax", "likeliest"],
        Field(description="how the policies decide during training, where they do not explore"),
    ] = "softmax"
    exploration: Annotated[
        float, Field(ge=0, le=1, description="share of random decisions after the imitation")
    ] = 0.0
    exploring: Annotated[
        int, Field(ge=1, description="number of epochs in which that share falls linearly to 0")
    ] = 40
    discount: Annotated[
        float, Field(ge=0, le=1, description="discount of the reward, per step")
    ] = 1.0
    comparison: Annotated[
        Literal["running-mean", "others"],
        Field(
            description="what costs are compared with: the mean of the problem's before (a batch "
            "of 1), or the mean of the episodes beside it; in units of their deviation"
        ),
    ] = "others"
    entropy: Annotated[float, Field(ge=0, le=10, description="entropy bonus per nat")] = 1e-2

    def check_beside(self, training: TrainingConfig) -> None:
        """Raise SettingError for a running mean over problems that are learned at once."""
        if self.comparison == "running-mean" and training.batch > 1:
            raise SettingError(
                "comparison 'running-mean' compares with earlier episodes and needs one problem "
                f"at a time; [training] batch is {training.batch} and must be 1"
            )


TRAINING = TrainingConfig(
    epochs=60, batch=2, learning_rate=2e-3, final_learning_rate=2e-5, clip=5.0, validation=0.1
)
PAPER = {
    "width": 128,
    "looks": "deviations",
    "imitation": 20,
    "straying": 1.0,
    "steps": 100,
    "episodes": 1,
    "drawn": "likeliest",
    "exploration": 0.2,
    "exploring": 40,
    "discount": 0.99,
    "comparison": "running-mean",
}
PAPER_TRAINING = TrainingConfig(
    epochs=60,
    batch=1,
    learning_rate=1e-4,
    final_learning_rate=1e-7,
    decay="linear",
    clip=1e6,
    validation=0.0,
)
"""Of a single graph 2000 episodes of imitation and 4000 of trial, one step of Adam for each."""
