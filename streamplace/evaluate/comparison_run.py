"""Settings of a comparison: placers, rates, objectives, conditions and budget."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from streamplace.io.files import is_file
from streamplace.io.weights import stamped
from streamplace.learn.loading import shipped
from streamplace.model.problem import Problem
from streamplace.model.units import exact_digits
from streamplace.objectives.conditions import composed_objective
from streamplace.objectives.registry import DEFAULT, Objective, named_objective
from streamplace.placers.named import AliasedPlacer, aliased_placers
from streamplace.placers.registry import USUAL_BUDGET, Budget, Placer
from streamplace.placers.request import PlacementRequest


@dataclass(frozen=True, slots=True)
class ComparisonRun:
    """A comparison, in which every placer places every problem at every rate for every objective.

    Attributes
    ----------
    placers
        Placers by name, options after colons (``metis:k=3``), aliases before the name
        (``three=metis:k=3``).
    rates
        Total source rates; empty for every graph's own rate, in one table.
    objectives
        Objectives by name. Every placement is valued by all of them.
    require
        Conditions that every placement must meet.
    """

    placers: tuple[str, ...]
    rates: tuple[float, ...] = ()
    seed: int = 0
    budget: Budget = USUAL_BUDGET
    objectives: tuple[str, ...] = (DEFAULT,)
    require: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = dict.fromkeys(named_objective(name).name for name in self.objectives)
        object.__setattr__(self, "objectives", tuple(names))

    @property
    def aliased(self) -> tuple[AliasedPlacer, ...]:
        """Placers with their aliases."""
        return aliased_placers(self.placers)

    @property
    def aliases(self) -> dict[str, str]:
        """Alias → placer, for placers that have one."""
        return {placer.alias: placer.spec for placer in self.aliased if placer.alias}

    @property
    def judges(self) -> tuple[Objective, ...]:
        """Objectives, subject to the conditions."""
        return tuple(composed_objective(name, self.require) for name in self.objectives)

    def request(self, placer: Placer, objective: Objective) -> PlacementRequest:
        """Request of one placer for one objective, which has its conditions already."""
        return PlacementRequest(placer, objective=objective, seed=self.seed, budget=self.budget)

    @property
    def per_problem(self) -> int:
        """Number of placements of every problem."""
        return len(self.placers) * max(1, len(self.rates)) * len(self.objectives)

    def at_rates(self, problem: Problem) -> Iterator[tuple[float | None, Problem]]:
        """Yield a problem at every rate, or at its own rate (None) if there are none."""
        for rate in self.rates or (None,):
            yield rate, problem if rate is None else problem.at_rate(rate)


def terms_of(placer: Placer, budget: Budget, seed: int) -> str:
    """Budget, seed and weights as a text; results are reused only if it is equal."""
    seconds = "no time limit" if budget.seconds is None else f"{exact_digits(budget.seconds)} s"
    text = f"{seconds}, {budget.evaluations or 'any'} evaluations, seed {seed}"
    weights = weights_of(placer)
    return text if weights is None else f"{text}, weights {_digest(*stamped(weights))}"


def weights_of(placer: Placer) -> Path | None:
    """Weights file of a learned placer; None for any other placer."""
    if "weights" not in placer.defaults():
        return None
    path = placer.options.get("weights")
    return Path(path) if path else shipped(placer.name)


@lru_cache(maxsize=64)
def _digest(path: Path, stamp: tuple[int, int]) -> str:
    """Short digest of a file's content; a missing file is reported when the placer reads it."""
    return sha256(path.read_bytes()).hexdigest()[:12] if is_file(path) else "missing"
