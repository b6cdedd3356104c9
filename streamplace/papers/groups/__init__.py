"""Policies that place groups of operators (`hdp`, `hsdag`): the groups, their features, placing.

The options that both share are here, so that the registry imports no torch.
"""

from typing import Literal

from streamplace.learn.config import TrainingConfig

UnitTrait = Literal["kind", "structure", "position", "output", "work"]
"""Groups of features of a node; see `streamplace.papers.groups.nodes`."""
Trait = UnitTrait | Literal["neighbours"]
"""The same and the neighbours, whose columns require a largest number of nodes."""

FAST_TRAINING = TrainingConfig(
    epochs=200, batch=16, learning_rate=5e-3, final_learning_rate=2e-4, clip=1.0
)
"""Training of the preset ``fast``."""
