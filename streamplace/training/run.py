"""A run: which model is trained on what, and how."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamplace.errors import SettingError
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem

if TYPE_CHECKING:
    from streamplace.learn.reward import Measure

REAL = "ray"
REWARDS = ("steady", "engine", REAL)
DEVICES = ("cpu", "cuda")
PRESET = "fast"
SHIPPED = "shipped"


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """What is to be trained, on what, and how.

    Attributes
    ----------
    rates
        Total source rates: a problem at two rates is two. Empty for every graph's own.
    objective
        What is best, by name; others than throughput are rewarded by `streamplace.learn.reward`.
    config
        TOML file that changes options of the preset.
    epochs
        Instead of the preset's.
    reward
        What judges sampled placements: ``steady`` state, the queueing ``engine``, ``ray``, which
        measures passes (`streamplace.engines.ray.passes`), or whoever else measures them.
    start
        Weights file to begin from, or ``shipped`` for those that come with streamplace.
    command
        How the user asked for it; the weights file will tell.
    """

    model: str
    problems: tuple[Problem, ...]
    rates: tuple[float, ...] = ()
    preset: str = PRESET
    config: Path | None = None
    epochs: int | None = None
    device: str = "cpu"
    objective: str = "throughput"
    reward: "str | Measure" = "steady"
    seed: int = 0
    start: str | None = None
    command: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.reward, str):
            _check_choice("reward", self.reward, REWARDS)
        _check_choice("device", self.device, DEVICES)
        if not self.problems:
            raise SettingError("there is no graph to train on; give at least one")

    def at_rates(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Every problem at every rate."""
        return tuple(
            problem if rate is None else problem.at_rate(rate)
            for problem in problems
            for rate in self.rates or (None,)
        )

    def divided(self, share: float) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
        """Problems to train on, and a share of them, chosen by seed, held out to judge by."""
        n = len(self.problems)
        count = min(n - 1, max(1, round(share * n))) if share > 0 else 0
        random = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(0, 0, 0, 0)))
        out = np.zeros(n, bool)
        out[random.permutation(n)[:count]] = True
        pairs = list(zip(self.problems, out.tolist(), strict=True))
        return tuple(p for p, held in pairs if not held), tuple(p for p, held in pairs if held)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingError(f"{name} is {quoted(value)}; it must be {' or '.join(choices)}")
