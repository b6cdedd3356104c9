"""Pilot: a policy that places operators one by one, seeing what every device already carries."""

from pydantic import Field

from streamplace.learn.config import Config, Preset, TrainingConfig
from streamplace.learn.registry import LearnedModel, imported, register

ROLLOUTS, SWEEPS = 2, 3
"""Default numbers of rollouts, and of sweeps over all operators in each."""


class PilotConfig(Config):
    """Options of pilot."""

    width: int = Field(default=128, ge=1, le=4096)  # units of every layer
    rounds: int = Field(default=4, ge=0, le=32)  # rounds of messages
    samples: int = Field(default=2, ge=1)  # rollouts per problem and epoch
    # share of decisions that are sampled; the others are the most likely ones
    exploration: float = Field(default=0.3, ge=0, le=1)
    # number of decisions of a rollout whose alternatives are tried
    forks: int = Field(default=5, ge=1)
    # temperature of relative throughput; lower values learn greedier
    temperature: float = Field(default=0.01, gt=0)
    warm_up: int = Field(default=3, ge=0)  # number of first epochs with imitation only
    # weight of imitating the best known placement afterwards
    imitation: float = Field(default=0.1, ge=0)
    variety: float = Field(default=0.25, ge=0, le=1)  # share of rollouts on random clusters


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
