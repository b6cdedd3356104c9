"""Options of training and of models: presets, overridden by a TOML file, checked by name."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streamplace.errors import FormatError, SettingError, StreamplaceError
from streamplace.io.parsing import first_fault
from streamplace.model.message_text import quoted

if TYPE_CHECKING:
    from streamplace.model.problem import Problem

C = TypeVar("C", bound="Config")

MAX_DEVICES = 128
"""Largest number of devices of a model with a limit: memories hold numbers in signed bytes."""
MAX_OPERATORS = 4096
"""Largest number of operators of a graph, which takes a few tensors of pairs, of 64 MB each."""
MAX_FRESH_DEVICES = 64
"""Largest number of devices of problems that a training makes anew."""
Order = Literal[
    "topological", "bfs", "dfs-preorder", "dfs-postorder", "reversed-topological", "lexicographic"
]
"""Orders of `streamplace.learn.algorithms.orders`."""


class Config(BaseModel):
    """Frozen options; unknown names and values of another type are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def check_beside(self, training: "TrainingConfig") -> None:
        """Raise SettingError if a model with these options cannot be trained like this."""


class TrainingConfig(Config):
    """How a model is trained, whatever the model."""

    epochs: int = Field(default=40, ge=1, le=1_000_000)  # passes over the data
    batch: int = Field(default=64, ge=1, le=1_000_000)  # problems per step
    # number of parts of a batch, summed in fixed order: at most as many cores or workers of Ray can
    # share a step
    shards: int = Field(default=2, ge=1, le=1024)
    learning_rate: float = Field(default=1e-3, gt=0, le=10)  # initial learning rate of Adam
    # final learning rate of Adam, after its decay
    final_learning_rate: float = Field(default=1e-3, ge=0, le=10)
    # decay of the learning rate: half a cosine, or linear
    decay: Literal["cosine", "linear"] = "cosine"
    # largest norm of a step's gradient; larger ones are scaled down
    clip: float = Field(default=1.0, gt=0)
    # share of the graphs held out for validation
    validation: float = Field(default=0.1, ge=0, le=0.9)
    patience: int = Field(default=0, ge=0)  # epochs without progress before stopping; 0 never stops


class ConstructiveConfig(Config):
    """Options of learning from sampled placements."""

    on_policy: int = Field(default=8, ge=1, le=1024)  # samples per problem
    # signal to learn from: the reward r, or -1 / √r, where 1 / r is in proportion to the makespan
    signal: Literal["reward", "root"] = "reward"
    # baseline that is subtracted from the signal: the mean of all samples of a problem, a moving
    # average, the mean of the best 2 r - 1 of the memory if r are replayed, or none
    baseline: Literal["mean", "moving", "memory", "none"] = "mean"
    normalised: bool = True  # divide advantages by their standard deviation
    # factor of positive advantages; unless it is 1, negative ones of placements whose probability
    # underflows do not count
    gain: float = Field(default=1.0, gt=0, le=1000)
    entropy: float = Field(default=0.003, ge=0, le=10)  # entropy bonus per nat


class MemoryConfig(ConstructiveConfig):
    """Further options of a memory of good placements."""

    replayed: int = Field(default=2, ge=0, le=1024)  # maximum number of replayed samples
    places: int = Field(default=8, ge=1, le=1024)  # number of placements in the memory of a problem
    threshold: float = Field(default=0.8, ge=0, le=1)  # minimum reward of replayed samples
    replay_best: bool = True  # replay the best placement if none is good enough
    # open all unused devices that are alike, not only the first, and learn from each placement
    # once, with such devices numbered by first use
    renumbered: bool = False
    per_device: bool = False  # divide rewards by the number of devices in use
    # evaluations of a search for every problem; the memory begins with its best placement
    searched: int = Field(default=0, ge=0, le=10_000_000)
    # number of random samples in the first epoch
    exploration: float = Field(default=256.0, ge=0, le=1e5)
    # decay of the number of random samples, per epoch
    exploration_decay: float = Field(default=0.1, ge=0, le=100)
    # random samples are uniform over all placements, or each over its own number of devices
    exploration_over: Literal["placements", "devices"] = "devices"
    # number of first epochs, which imitate the results of the search and draw nothing
    imitation: int = Field(default=0, ge=0, le=1_000_000)
    # number of problems that are made anew in every epoch after these, on the topologies of the
    # given problems, instead of them; 0: none
    fresh: int = Field(default=0, ge=0, le=10_000_000)
    # share of these problems that have the costs of the family branched
    fresh_branched: float = Field(default=0.4, ge=0, le=1)
    # number of random samples while the best known reward is below poor_below
    exploration_while_poor: int = Field(default=0, ge=0, le=100_000)
    poor_below: float = Field(default=0.8, ge=0, le=1)


class OptionTables(Config):
    """Tables of a TOML file of options."""

    training: dict[str, Any] = Field(default_factory=dict)
    model: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preset:
    """Options of a model and of its training that go well together."""

    model: Config
    training: TrainingConfig


def validated(
    kind: type[C],
    values: Mapping[str, Any],
    where: str,
    error: type[StreamplaceError] = FormatError,
) -> C:
    """Options of a kind from values by name, all of them checked; ``where`` names their origin."""
    fields = kind.model_fields
    for name in values:
        if name not in fields:
            raise error(f"{where} has no option {quoted(name)}; it takes {', '.join(fields)}")
    try:
        return kind.model_validate_json(json.dumps(values, default=str))
    except ValidationError as fault:
        raise error(f"{where}: {first_fault(fault, kind)}") from None
    except (RecursionError, ValueError):
        raise error(f"{where} is nested too deep, or a number is too long; correct it") from None


def check_devices(problem: "Problem", limit: int) -> None:
    """Raise SettingError if there are more devices than a model supports."""
    n = problem.n_devices
    if n <= limit:
        return
    train = f"train it with 'devices = {n}' under [model] in a --config file, or "
    raise SettingError(
        f"the cluster has {n} devices, but the model supports at most {limit}; "
        f"{train if n <= MAX_DEVICES else ''}use the placer pilot, which supports any number"
    )
