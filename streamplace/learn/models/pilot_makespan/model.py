"""Pilot for one pass: our own policy for task graphs, on any devices and links."""

from pydantic import Field

from streamplace.learn.config import Config, Preset, TrainingConfig
from streamplace.learn.learner import Learner
from streamplace.learn.registry import LearnedModel, LearningTask, register


class PilotMakespanConfig(Config):
    """Options of pilot for makespan."""

    width: int = Field(default=32, ge=1, le=1024)  # units of every layer
    # number of schedules in a row by which the model is validated
    looks: int = Field(default=3, ge=1, le=100)
    # number of times that a training schedule is rebuilt
    rebuilt: int = Field(default=2, ge=0, le=100)


FAST = TrainingConfig(epochs=60, learning_rate=5e-3, final_learning_rate=4e-5, clip=5.0, batch=64)


def _learner(task: LearningTask, config: PilotMakespanConfig) -> Learner:
    from streamplace.learn.models.pilot_makespan.learner import PilotMakespanLearner

    return PilotMakespanLearner(task, config)


register(
    LearnedModel(
        "pilot-makespan",
        "Rebuilds a schedule task by task, knowing the previous one; for any devices and links.",
        PilotMakespanConfig,
        {"fast": Preset(PilotMakespanConfig(), FAST)},
        _learner,
        supervised=True,
        objectives=("makespan",),
        cpu_only=True,
    )
)
