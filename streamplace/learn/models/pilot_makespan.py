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
        int, Field(ge=1, le=100, description="schedules in a row, each in sight of the one before")
    ] = 3
    samples: Annotated[int, Field(ge=1, description="rollouts per look")] = 1
    exploration: Annotated[
        float, Field(ge=0, le=1, description="share of decisions that are drawn, not the likeliest")
    ] = 0.3
    forks: Annotated[
        int, Field(ge=1, description="decisions of a rollout whose alternatives are tried")
    ] = 5
    temperature: Annotated[
        float, Field(gt=0, description="of relative makespan; lower learns greedier")
    ] = 0.01


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
                    epochs=24, learning_rate=2e-3, final_learning_rate=4e-5, clip=5.0, batch=64
                ),
            )
        },
        _learner,
        objectives=("makespan",),
    )
)
