"""Portfolio: placers that cost little, and how little that is expected to be.

Who is asked is decided by what it is expected to cost, not by the clock: what a budget can well
afford is done on a busy machine too. A busy machine may take ten seconds of the clock for one of
work, so nobody is asked before the search who is expected to work for long, whatever the budget;
and only what is expected to take next to no work is done to its end when the clock has run out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.metis import RECURSIVE_UP_TO
from streamplace.placers.registry import PLACERS, Budget

ASSUMED_SECONDS = 1.0
"""What costs are measured against where the budget has no seconds."""
LONGEST = 0.5
"""Seconds of work; whoever is expected to take more is not cheap in any budget."""
LITTLE = 0.1
"""Seconds of work; whoever is expected to take more ends with the clock."""


@dataclass(frozen=True, slots=True)
class Member:
    """A placer that costs little.

    Attributes
    ----------
    seconds
        What it is expected to take, for a number of operators and of devices.
    share
        It is cheap where that is no more than this share of the budget, and than `LONGEST`.
    per_device
        Whether it tries a placement per device; else it tries one.
    """

    name: str
    seconds: Callable[[int, int], float]
    share: float = 0.15
    per_device: bool = True

    def calls(self, problem: Problem) -> int:
        """Placements that it evaluates."""
        return problem.n_devices if self.per_device else 1

    def cheap(self, problem: Problem, budget: Budget) -> bool:
        """Whether the budget can well afford it."""
        within = self.share * (budget.seconds or ASSUMED_SECONDS)
        return self._work(problem) <= min(within, LONGEST)

    def ends_with_clock(self, problem: Problem) -> bool:
        """Whether it is expected to take more than a little work."""
        return self._work(problem) > LITTLE

    def _work(self, problem: Problem) -> float:
        return self.seconds(problem.n_operators, problem.n_devices)


def _single(n: int, d: int) -> float:
    return d * (2e-5 + 4e-8 * n)


def _fuser_oracle(n: int, d: int) -> float:
    return d * (3e-4 + 5e-5 * n)


def _metis(n: int, d: int) -> float:
    """METIS cuts directly into many parts, which takes long on any graph."""
    return 8e-5 + 2e-6 * n + (0.0 if d <= RECURSIVE_UP_TO else 2e-3 + 3e-4 * d)


def _metis_oracle(n: int, d: int) -> float:
    return sum(_metis(n, k) for k in range(1, d + 1))


EVERY_METIS = Member("metis-oracle", _metis_oracle, share=0.25)
CHEAP = (
    Member("single", _single),
    EVERY_METIS,
    Member("fuser-oracle", _fuser_oracle),
    Member("metis", _metis, per_device=False),
)


def metis_to_begin_with(
    problem: Problem, objective: Objective, seed: int, budget: Budget
) -> tuple[Placement, ...]:
    """Best placement of METIS with every number of parts, where that is cheap.

    Only by a quick objective, and not where the budget counts evaluations: METIS would spend them.
    """
    affordable = objective.quick and budget.evaluations is None
    if not (affordable and EVERY_METIS.cheap(problem, budget)):
        return ()
    oracle = PLACERS[EVERY_METIS.name]
    given = budget if EVERY_METIS.ends_with_clock(problem) else Budget(None)
    return (oracle.place(problem, objective, seed=seed, budget=given).placement,)
