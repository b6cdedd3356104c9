"""A contest: who is compared on what, by what, and on which terms."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from streamplace.io.files import is_file
from streamplace.io.weights import stamped
from streamplace.learn.loading import shipped
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import Condition, subject_to
from streamplace.objectives.registry import Objective, named_objective
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget, Placer


@dataclass(frozen=True, slots=True)
class Comparison:
    """Who is compared on what.

    Attributes
    ----------
    placers
        Placers by name, options after colons (``metis:k=3``).
    rates
        Total source rates; empty for every graph's own, in one table.
    objective, require
        What is best, and what has to hold besides, by name.
    beside
        Other objectives by which every answer is valued.
    """

    placers: tuple[str, ...]
    rates: tuple[float, ...] = ()
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    objective: str = "throughput"
    require: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def judge(self) -> Objective:
        """The objective, subject to the conditions."""
        return judge_of(self.objective, self.require)

    def terms(self, placer: str) -> str:
        """Budget, seed and weights as a text, part of what makes a result a repetition."""
        return terms_of(named_placer(placer), self.budget, self.seed)

    def at_rates(self, problem: Problem) -> Iterator[tuple[float | None, Problem]]:
        """Yield a problem at every rate, or as it is, whose rate is told as None."""
        for rate in self.rates or (None,):
            yield rate, problem if rate is None else problem.at_rate(rate)


def terms_of(placer: Placer, budget: Budget, seed: int) -> str:
    """Budget, seed and weights as a text, part of what makes a result a repetition."""
    seconds = "no time limit" if budget.seconds is None else f"{budget.seconds:g} s"
    text = f"{seconds}, {budget.evaluations or 'any'} evaluations, seed {seed}"
    weights = _weights_of(placer)
    return text if weights is None else f"{text}, weights {_digest(*stamped(weights))}"


@lru_cache(maxsize=8)
def judge_of(objective: str, require: tuple[str, ...]) -> Objective:
    """Objective of a name, subject to conditions."""
    return subject_to(named_objective(objective), [Condition.of(text) for text in require])


def _weights_of(placer: Placer) -> Path | None:
    """Weights that a learned placer works with, None for any other."""
    if "weights" not in placer.defaults():
        return None
    named = placer.options.get("weights")
    return Path(named) if named else shipped(placer.name)


@lru_cache(maxsize=64)
def _digest(path: Path, stamp: tuple[int, int]) -> str:
    """Digest of a file's content, short; a file that is not there is told when placing."""
    return sha256(path.read_bytes()).hexdigest()[:12] if is_file(path) else "missing"
