"""Incumbent: the best solution of a search so far; each change is recorded by its meter.

A search that Ctrl-C interrupts hands its best answer on in the interrupt (`interruptible`). Another
search may continue from an answer with the remaining budget (`refined`).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from streamplace.errors import SettingError
from streamplace.model.arrays import Ints
from streamplace.model.message_text import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found, remaining_budget
from streamplace.placers.result import Improvement
from streamplace.placers.stopwatch import now

S = TypeVar("S")

Better = Callable[[float, float], bool]
"""Function that tells whether the first value is better than the second."""
NONE = "none"


class Incumbent(Generic[S]):
    """The best solution so far: a placement, or a search's own representation of one.

    ``better`` says whether a value replaces another. The first solution is always kept; until then
    ``solution`` and ``value`` are unset. ``reported`` maps a value of the search to one of the
    objective, if these differ.
    """

    def __init__(
        self, better: Better, meter: Meter, reported: Callable[[float], float] = float
    ) -> None:
        self._better, self._reported = better, reported
        self.meter = meter
        self.empty = True
        self.solution: S
        self.value: float

    def offer(self, solution: S, value: float) -> bool:
        """Keep a solution if it is better; return whether it is."""
        if not (self.empty or self._better(value, self.value)):
            return False
        self.empty = False
        self.solution, self.value = solution, float(value)
        self.meter.note(self._reported(value))
        return True

    def answer(self, placement: Placement, bound: float | None = None) -> Found:
        """Result of the search, with the placement of the best solution and the trace."""
        return Found(placement, bound, tuple(self.meter.trace))


class SearchInterrupt(KeyboardInterrupt):
    """Ctrl-C during a search, with its best answer so far."""

    def __init__(self, best: Found) -> None:
        super().__init__()
        self.best = best


@contextmanager
def interruptible(best: Callable[[], Found | None]) -> Iterator[None]:
    """Let Ctrl-C in this block raise a `SearchInterrupt` with the best answer so far, if any."""
    try:
        yield
    except KeyboardInterrupt as error:
        if (found := best()) is None:
            raise
        raise SearchInterrupt(found) from error


def best_row(problem: Problem, objective: Objective, rows: Ints, began: float) -> Found:
    """Best of placements [B, N] that were all made since a moment; of equals the first."""
    values = objective.evaluate(problem, rows)
    best = objective.best(values)
    improvement = Improvement(now() - began, float(values[best]), len(rows))
    return Found(problem.placement(rows[best]), trace=(improvement,))


def continued(
    trace: Iterable[Improvement],
    later: Iterable[Improvement],
    seconds: float,
    evaluations: int,
    better: Better,
) -> list[Improvement]:
    """Append the trace of a later search that began after ``seconds`` and ``evaluations``.

    Only its steps that improve on everything before are kept.
    """
    whole = list(trace)
    for step in later:
        if not whole or better(step.value, whole[-1].value):
            moment = seconds + step.seconds
            whole.append(Improvement(moment, step.value, evaluations + step.evaluations))
    return whole


def check_refiner(name: str) -> None:
    """Raise SettingError unless a placer of this name can start from a placement."""
    if name != NONE and "start" not in PLACERS[name].defaults():
        raise SettingError(
            f"placer {quoted(name)} cannot start from a placement; refine with anneal"
        )


def refined(
    answer: Found,
    began: float,
    evaluations: int,
    refine: str,
    problem: Problem,
    objective: Objective,
    seed: int,
    budget: Budget,
    others: Callable[[], tuple[Placement, ...]] = lambda: (),
) -> Found:
    """Continue from a first answer by another placer, unless none is named or no budget remains.

    The search for the first answer began at ``began`` and took ``evaluations``. With a quick
    objective, time never runs out. ``others`` makes further placements to start from.
    """
    late = budget.seconds is not None and budget.seconds <= now() - began and not objective.quick
    used_up = budget.evaluations is not None and budget.evaluations <= evaluations
    if refine == NONE or late or used_up:
        return answer
    search = PLACERS[refine].with_options(start=(answer.placement, *others()))
    seconds = now() - began
    remaining = remaining_budget(
        None if budget.seconds is None else budget.seconds - seconds,
        None if budget.evaluations is None else budget.evaluations - evaluations,
    )
    result = search.attempt(problem, objective, seed=seed, budget=remaining)
    trace = continued(answer.trace, result.trace, seconds, evaluations, objective.better)
    return Found(result.placement, result.bound, tuple(trace))
