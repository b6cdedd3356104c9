"""Pilot: streamplace's own policy, for any number of devices of any speed."""

from streamplace.learn.config import Preset, TrainingConfig
from streamplace.learn.models.pilot import PilotConfig
from streamplace.learn.registry import LearnedModel, imported, register

FAST = TrainingConfig(
    epochs=40,
    batch=64,
    shards=4,  # whose tensors fit the cache of a core
    learning_rate=2e-3,
    final_learning_rate=4e-5,
    clip=5.0,
)


register(
    LearnedModel(
        "pilot",
        "Places operators one by one, knowing the load of every device; for any cluster.",
        PilotConfig,
        {"fast": Preset(PilotConfig(), FAST)},
        imported("streamplace.learn.models.pilot.learner:PilotLearner"),
        supervised=True,
        objectives=("throughput",),
    )
)
