"""Portfolio: cheap placers, with estimates of their running times.

Estimates decide which placers run, not the clock, so that a busy machine runs the same placers as
an idle one. On a busy machine, a second of CPU time may take ten seconds of wall-clock time.
Therefore no placer with a long estimate runs before the search, whatever the budget, and only
placers with very short estimates may finish after the time is over.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.meter import Meter
from streamplace.placers.metis import RECURSIVE_UP_TO
from streamplace.placers.registry import PLACERS, Budget

ASSUMED_SECONDS = 1.0
"""Budget that is assumed if the budget has no seconds."""
MAX_SECONDS = 0.5
"""Seconds of work; a placer with a longer estimate is not cheap for any budget."""
LITTLE = 0.1
"""Seconds of work; a placer with a longer estimate stops when the time is over."""


@dataclass(frozen=True, slots=True)
class Member:
    """A placer that is cheap if it is estimated to take at most `MAX_SECONDS` and its share."""

    name: str
    seconds: Callable[[int, int], float]  # estimate for a number of operators and of devices
    share: float = 0.15  # of the budget
    per_device: bool = True  # whether it evaluates one placement per device, and not one in total

    def calls(self, problem: Problem) -> int:
        """Placements that it evaluates."""
        return problem.n_devices if self.per_device else 1

    def cheap(self, problem: Problem, budget: Budget) -> bool:
        """Return whether its expected time is at most its share of the budget."""
        within = self.share * (budget.seconds or ASSUMED_SECONDS)
        return self._work(problem) <= min(within, MAX_SECONDS)

    def ends_with_clock(self, problem: Problem) -> bool:
        """Whether the clock may end it: if it may take long, or tries unlike devices for parts."""
        kind = problem.interchangeable
        return self._work(problem) > LITTLE or bool((kind != kind[0]).any())

    def _work(self, problem: Problem) -> float:
        return self.seconds(problem.n_operators, problem.n_devices)


def _metis(n: int, d: int) -> float:
    """Estimate METIS; direct cuts into many parts take long on any graph."""
    return 8e-5 + 2e-6 * n + (0.0 if d <= RECURSIVE_UP_TO else 2e-3 + 3e-4 * d)


METIS_ORACLE = Member(
    "metis-oracle", lambda n, d: sum(_metis(n, k) for k in range(1, d + 1)), share=0.25
)
CHEAP = (
    Member("single", lambda n, d: d * (2e-5 + 4e-8 * n)),
    METIS_ORACLE,
    Member("fuser-oracle", lambda n, d: d * (3e-4 + 5e-5 * n)),
    Member("metis", _metis, per_device=False),
)


def metis_start(
    problem: Problem, objective: Objective, seed: int, budget: Budget, meter: Meter | None = None
) -> tuple[Placement, ...]:
    """Best placement of METIS over all numbers of parts, if that is cheap.

    Only for quick objectives. If evaluations are limited, the meter counts one per number of
    parts, if more remain; without a meter, there is no such placement then.
    """
    calls, limit = METIS_ORACLE.calls(problem), budget.evaluations
    few = limit is None or (meter is not None and calls < limit)
    if not (few and objective.quick and METIS_ORACLE.cheap(problem, budget)):
        return ()
    oracle = PLACERS[METIS_ORACLE.name]
    timed = budget.seconds is not None and METIS_ORACLE.ends_with_clock(problem)
    limits = Budget((budget.seconds or 0.0) * METIS_ORACLE.share if timed else None)
    placement = oracle.place(problem, objective, seed=seed, budget=limits).placement
    if meter is not None and limit is not None:
        meter.spend(calls)
    return (placement,)
