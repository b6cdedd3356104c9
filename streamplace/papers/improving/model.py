"""Policies that improve a placement step by step (GiPH, Placeto): problems, messages, learner.

`batch` holds problems side by side in tensors, `messages` sends messages through their graphs, and
`episodes` runs a policy, from which `reinforce` learns. The options of learning are here, so that
the registry imports no torch.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from streamplace.learn.config import Config, Preset
from streamplace.learn.registry import LearnedModel, imported, register


class ImprovingConfig(Config):
    """Options of learning from episodes."""

    discount: float = Field(default=0.97, ge=0, le=1)  # discount of later rewards, per step
    # episodes per problem and epoch, all from one placement
    episodes: int = Field(default=4, ge=1, le=1024)
    # first placement of episodes: a random one, or the best one so far, at first everything on one
    # device
    start: Literal["random", "best"] = "random"
    # cost that steps lower: the value in multiples of the problem's yardstick, or the logarithm of
    # the reward
    cost: Literal["multiple", "logarithm"] = "multiple"
    # baseline that returns are compared with: the mean of earlier rewards, with steps that count
    # less by the discount; the mean return of the other episodes, in units of their deviation; or
    # the mean return of this and all earlier episodes
    comparison: Literal["running-mean", "others", "earlier"] = "others"
    entropy: float = Field(default=0.0, ge=0, le=10)  # entropy bonus per nat


PAPER_LEARNING: dict[str, object] = {"episodes": 1, "comparison": "running-mean"}
"""Learning as in the papers: from one episode at a time."""


def improving_model(
    name: str, summary: str, config: type[Config], presets: Mapping[str, Preset], policy: str
) -> LearnedModel:
    """Register a model whose policy is a class ``module:name`` that takes the options."""
    learner = imported("streamplace.papers.improving.reinforce:learner_of", policy)
    improver = imported("streamplace.papers.improving.episodes:trained", name, config, policy)
    return register(LearnedModel(name, summary, config, presets, learner, improver=improver))
