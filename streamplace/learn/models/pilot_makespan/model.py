"""Pilot for one pass: our own policy for task graphs, on any devices and links."""

from streamplace.learn.config import Preset, TrainingConfig
from streamplace.learn.models.pilot_makespan import PilotMakespanConfig
from streamplace.learn.registry import LearnedModel, imported, register

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
