"""Policies that place groups of operators (`hdp`, `hsdag`): the groups, their features, placing.

The options that both share are here, so that the registry imports no torch.
"""

from collections.abc import Mapping
from typing import Any, Literal

from streamplace.learn.config import Config, Preset, TrainingConfig
from streamplace.learn.registry import LearnedModel, imported, register

UnitTrait = Literal["kind", "structure", "position", "output", "work"]
"""Groups of features of a node; see `streamplace.papers.groups.nodes`."""
Trait = UnitTrait | Literal["neighbours"]
"""The same and the neighbours, whose columns require a largest number of nodes."""

FAST_TRAINING = TrainingConfig(
    epochs=200, batch=16, learning_rate=5e-3, final_learning_rate=2e-4, clip=1.0
)
"""Training of the preset ``fast``."""


def group_model(
    name: str,
    summary: str,
    config: type[Config],
    paper: Mapping[str, Any],
    paper_training: TrainingConfig,
) -> LearnedModel:
    """Register a model that decides by traits, with ``traits_of`` and ``build`` in its policy."""
    policy, placing = f"streamplace.papers.{name}.policy", "streamplace.papers.groups.placing"
    presets = {
        "fast": Preset(config(), FAST_TRAINING),
        "paper": Preset(config.model_validate(paper), paper_training),
    }
    learner = imported(f"{placing}:learner_of", policy)
    trained = imported(f"{placing}:trained", name, config, policy)
    return register(LearnedModel(name, summary, config, presets, learner, trained))
