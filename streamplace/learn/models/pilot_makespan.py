"""Pilot for one pass: our own policy for task graphs, on any devices and links."""

from typing import Annotated

from pydantic import Field

from streamplace.learn.config import Config, Preset, TrainingConfig
from streamplace.learn.learner import Learner
from streamplace.learn.registry import Model, Task, register


class PilotMakespanConfig(Config):
    """Options of pilot for makespan."""

    width: Annotated[int, Field(ge=1, le=1024, description="units of every layer")] = 32
    looks: Annotated[
        int, Field(ge=1, le=100, description="schedules in a row that it is judged by")
    ] = 3
    rebuilt: Annotated[
        int, Field(ge=0, le=100, description="times that a schedule to learn from is rebuilt")
    ] = 2


def _learner(task: Task, config: PilotMakespanConfig) -> Learner:
    from streamplace.learn.rebuild.learner import RebuildLearner

    return RebuildLearner(task, config)


register(
    Model(
        "pilot-makespan",
        "Rebuilds schedules task by task, in sight of the one before; any devices and links.",
        PilotMakespanConfig,
        {
            "fast": Preset(
                PilotMakespanConfig(),
                TrainingConfig(
                    epochs=60, learning_rate=5e-3, final_learning_rate=4e-5, clip=5.0, batch=64
                ),
            )
        },
        _learner,
        supervised=True,
        objectives=("makespan",),
    )
)
