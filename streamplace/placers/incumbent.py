"""Incumbent: the best solution of a search so far, noted on its meter whenever it changes."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from streamplace.model.placement import Placement
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found, Improvement

S = TypeVar("S")

Better = Callable[[float, float], bool]
"""Whether the first value is better than the second."""


class Incumbent(Generic[S]):
    """The best solution so far: a placement, or whatever a search uses for one.

    Parameters
    ----------
    better
        Whether a value replaces another; the first solution is taken in any case.
    reported
        Value of the objective for a value of the search, where these differ.

    Attributes
    ----------
    solution, value
        The best solution and its value; unset before the first offer.
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
        """Take a solution if it is better; whether it was."""
        if not (self.empty or self._better(value, self.value)):
            return False
        self.empty = False
        self.solution, self.value = solution, float(value)
        self.meter.note(self._reported(value))
        return True

    def answer(self, placement: Placement, bound: float | None = None) -> Found:
        """Answer of the search: the placement that the best solution is, and the way there."""
        return Found(placement, bound, tuple(self.meter.trace))


def continued(
    trace: Iterable[Improvement],
    later: Iterable[Improvement],
    seconds: float,
    evaluations: int,
    better: Better,
) -> list[Improvement]:
    """Trace of a search, and of a later one that began after so many seconds and evaluations.

    Of the later one only what is better than everything before.
    """
    whole = list(trace)
    for step in later:
        if not whole or better(step.value, whole[-1].value):
            moment = seconds + step.seconds
            whole.append(Improvement(moment, step.value, evaluations + step.evaluations))
    return whole
