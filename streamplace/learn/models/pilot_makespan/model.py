"""Pilot for one pass: it rebuilds a schedule task by task, knowing the previous one."""

from pydantic import Field

from streamplace.learn.config import Config, Preset, TrainingConfig
from streamplace.learn.registry import LearnedModel, imported, register


class PilotMakespanConfig(Config):
    """Options of pilot for makespan."""

    width: int = Field(default=32, ge=1, le=1024)  # units of every layer
    # number of times in a row that the schedule is rebuilt by which the model is validated
    sweeps: int = Field(default=3, ge=1, le=100)
    # number of times that a training schedule is rebuilt
    rebuilt: int = Field(default=2, ge=0, le=100)


FAST = TrainingConfig(epochs=60, learning_rate=5e-3, final_learning_rate=4e-5, clip=5.0, batch=64)


register(
    LearnedModel(
        "pilot-makespan",
        "Rebuilds a schedule task by task, knowing the previous one; for any devices and links.",
        PilotMakespanConfig,
        {"fast": Preset(PilotMakespanConfig(), FAST)},
        imported("streamplace.learn.models.pilot_makespan.learner:PilotMakespanLearner"),
        supervised=True,
        objectives=("makespan",),
    )
)
