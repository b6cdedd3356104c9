"""Doppler: two policies in turn, one for the next task and one for its device (Yao et al. 2025)."""

from typing import Literal

from pydantic import Field

from streamplace.errors import SettingError
from streamplace.learn.config import Config, Preset, TrainingConfig
from streamplace.learn.registry import LearnedModel, imported, register


class DopplerConfig(Config):
    """Options of Doppler."""

    width: int = Field(default=64, ge=1, le=4096)  # width of the messages
    rounds: int = Field(default=6, ge=0, le=64)  # rounds of messages, once per episode
    hidden: int = Field(default=64, ge=1, le=4096)  # hidden units of both heads
    # which task is placed next: a learned choice, or the one with the longest path to an exit
    select: Literal["learned", "critical-path"] = "learned"
    # which device it is placed on: a learned choice, or the device with the earliest start
    place: Literal["learned", "earliest"] = "learned"
    # factor of the members of a path or a device in their sum
    sums: float = Field(default=0.1, gt=0, le=1)
    # unit of the differences between devices: the mean task, or their standard deviation
    device_unit: Literal["seconds", "deviations"] = "seconds"
    # number of first epochs that imitate the critical path; none with --start
    imitation: int = Field(default=10, ge=0)
    straying: float = Field(default=0.2, ge=0, le=1)  # share of random decisions in its first epoch
    steps: int = Field(default=32, ge=1)  # steps per problem and epoch
    # episodes per problem and step, whose costs are compared with each other in units of their
    # deviation; a single one is compared with the mean of all before (a batch of 1)
    episodes: int = Field(default=8, ge=1, le=4096)
    # how the policies decide during training unless they explore; the likeliest decisions
    # are scored by the softmax alone, drawn ones as a mixture with exploration
    drawn: Literal["softmax", "likeliest"] = "softmax"
    # share of random decisions after the imitation
    exploration: float = Field(default=0.0, ge=0, le=1)
    # number of epochs in which that share falls linearly to 0
    exploring: int = Field(default=40, ge=1)
    entropy: float = Field(default=1e-2, ge=0, le=10)  # entropy bonus per nat

    def check_beside(self, training: TrainingConfig) -> None:
        """Raise SettingError if nothing is learned, or a running mean is over several problems."""
        if "learned" not in (self.select, self.place):
            raise SettingError("nothing is learned; set select or place to 'learned'")
        if self.episodes == 1 and training.batch > 1:
            raise SettingError(
                "with episodes = 1, costs are compared with those of earlier steps, one problem at "
                f"a time; [training] batch is {training.batch} and must be 1"
            )


TRAINING = TrainingConfig(
    epochs=60, batch=2, learning_rate=2e-3, final_learning_rate=2e-5, clip=5.0, validation=0.1
)
PAPER = {
    "width": 128,
    "sums": 1.0,
    "device_unit": "deviations",
    "imitation": 20,
    "straying": 1.0,
    "steps": 100,
    "episodes": 1,
    "drawn": "likeliest",
    "exploration": 0.2,
    "exploring": 40,
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
"""For one graph: 2000 episodes of imitation and 4000 of REINFORCE, with a step of Adam each."""


register(
    LearnedModel(
        "doppler",
        "Learns which task to place next and on which device, for one pass (Doppler).",
        DopplerConfig,
        {
            "fast": Preset(DopplerConfig(), TRAINING),
            "paper": Preset(DopplerConfig().model_copy(update=PAPER), PAPER_TRAINING),
        },
        imported("streamplace.papers.doppler.policy:DopplerLearner"),
        imported("streamplace.papers.doppler.policy:trained"),
    )
)
