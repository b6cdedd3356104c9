"""The request for a training: the model, the problems, the folder and the options."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamplace.errors import SettingError
from streamplace.learn.config import DEFAULT_PRESET
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem
from streamplace.objectives.registry import DEFAULT

if TYPE_CHECKING:
    from streamplace.learn.reward import Measure

REAL = "ray"
REWARDS = ("steady", "engine", REAL)
DEVICES = ("cpu", "cuda")
SHIPPED = "shipped"


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """A training as it was asked for, from the command line or from Python."""

    model: str
    problems: tuple[Problem, ...]
    folder: Path  # folder of the run: weights, checkpoint, history and curve
    rates: tuple[float, ...] = ()  # of the sources: a problem at two counts as two; empty: its own
    preset: str = DEFAULT_PRESET
    config: Path | None = None  # TOML file that changes options of the preset
    epochs: int | None = None  # number of epochs; None for the preset's
    device: str = "cpu"
    objective: str = DEFAULT  # by name; `streamplace.learn.reward` makes rewards of its values
    reward: "str | Measure" = "steady"  # ``ray`` measures passes, as does a function
    seed: int = 0
    start: str | None = None  # weights file, or ``shipped``
    resume: bool = False  # all other values must then be as they were
    on: str | None = None  # address of the Ray that computes; None for the cores of this machine
    command: str = ""  # command that the user typed; it is recorded in the weights file

    def __post_init__(self) -> None:
        if isinstance(self.reward, str):
            _check_choice("reward", self.reward, REWARDS)
        _check_choice("device", self.device, DEVICES)
        if self.on is not None and self.device != "cpu":
            raise SettingError(
                f"training on Ray uses CPUs, not {self.device}; drop the device, or train without "
                "--on"
            )
        if self.on is not None and self.reward == REAL:
            raise SettingError(
                "real passes (the reward ray) are measured one after the other on one machine; "
                "train without --on"
            )
        if not self.problems:
            raise SettingError("there is no graph to train on; give at least one")

    def at_rates(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Every problem at every rate."""
        return tuple(
            problem if rate is None else problem.at_rate(rate)
            for problem in problems
            for rate in self.rates or (None,)
        )

    def rates_of(self, problems: Sequence[Problem]) -> tuple[float, ...]:
        """Rate of every problem of `at_rates`, as asked for: scaled rates are rounded."""
        if self.rates:
            return self.rates * (len(problems) // len(self.rates))
        return tuple(problem.graph.source_rate for problem in problems)

    def objective_entry(self) -> dict[str, str]:
        """The objective as an entry of a document, which the default objective leaves out."""
        return {} if self.objective == DEFAULT else {"objective": self.objective}

    def split(self, share: float) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
        """Problems to train on, and those held out: a share of all, chosen by the seed."""
        n = len(self.problems)
        count = min(n - 1, max(1, round(share * n))) if share > 0 else 0
        random = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(0, 0, 0, 0)))
        out = np.zeros(n, bool)
        out[random.permutation(n)[:count]] = True
        return (
            tuple(compress(self.problems, ~out)),
            tuple(compress(self.problems, out)),
        )


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingError(f"{name} is {quoted(value)}; it must be {' or '.join(choices)}")
