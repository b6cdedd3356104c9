"""Incumbent: the best solution of a search so far; each change is recorded by its meter.

A search that Ctrl-C interrupts hands its best answer on in the interrupt (`handing_on`).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from streamplace.model.placement import Placement
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found
from streamplace.placers.result import Improvement

S = TypeVar("S")

Better = Callable[[float, float], bool]
"""Function that tells whether the first value is better than the second."""


class Incumbent(Generic[S]):
    """The best solution so far: a placement, or a search's own representation of one.

    ``better`` says whether a value replaces another; the first solution is always kept, before
    which ``solution`` and ``value`` are unset. ``reported`` maps a value of the search to one of
    the objective, if these differ.
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
def handing_on(best: Callable[[], Found]) -> Iterator[None]:
    """Let Ctrl-C in this block raise a `SearchInterrupt` with the best answer so far."""
    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        raise SearchInterrupt(best()) from error


def is_interrupt(error: BaseException) -> bool:
    """Whether an error is Ctrl-C; numba raises a SystemError for one while it loads a kernel."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt)


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
