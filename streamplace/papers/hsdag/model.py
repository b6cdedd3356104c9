"""HSDAG learns how to group operators and where each group goes (Duan et al. 2024)."""

from typing import Any

from pydantic import Field

from streamplace.errors import SettingError
from streamplace.learn.config import MAX_DEVICES, ConstructiveConfig, TrainingConfig
from streamplace.papers.groups.model import UnitTrait, group_model


class HsdagConfig(ConstructiveConfig):
    """Options of HSDAG."""

    width: int = Field(default=64, ge=1, le=4096)  # width of all vectors
    # largest number of devices that the model supports
    devices: int = Field(default=8, ge=1, le=MAX_DEVICES)
    # features of operators: the paper's, and their work
    traits: tuple[UnitTrait, ...] = Field(
        default=("kind", "structure", "position", "output", "work"), min_length=1
    )
    # a round continues with the groups of the round before as nodes; otherwise with the graph
    coarsened: bool = False
    # rounds of an episode, among which the samples are divided
    rounds: int = Field(default=4, ge=1, le=1024)
    discount: float = Field(default=0.95, ge=0, le=1)  # discount of a reward, per round
    # share of streams that do not join operators into a group
    dropout: float = Field(default=0.2, ge=0, lt=1)

    def check_beside(self, training: TrainingConfig) -> None:
        """Raise SettingError if there are fewer samples than rounds."""
        if self.rounds > self.on_policy:
            raise SettingError(
                f"on_policy is {self.on_policy}, fewer samples than the {self.rounds} rounds; every"
                " round needs one, so raise on_policy or lower rounds"
            )


HOPS = 2
"""Layers of the graph encoder."""
PAPER: dict[str, Any] = {
    "width": 128,
    "coarsened": True,
    "traits": ("kind", "structure", "position", "output"),
    "rounds": 20,
    "on_policy": 20,
    "baseline": "none",
    "normalised": False,
    "entropy": 0.0,
}
"""Options of the paper that differ from the defaults."""

PAPER_TRAINING = TrainingConfig(
    epochs=400, batch=1, learning_rate=1e-4, final_learning_rate=1e-4, clip=1e6
)
"""A hundred episodes, each learned from four times; here every time from fresh samples."""


group_model(
    "hsdag",
    "Learns to group operators, without a given number of groups, and to place the groups (HSDAG).",
    HsdagConfig,
    PAPER,
    PAPER_TRAINING,
)
