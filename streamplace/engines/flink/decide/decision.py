"""Decisions: layouts of a job compared by the same model, given the errors of predictions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from streamplace.engines.flink.decide.layouts import MODE_SETTING, Layout, Mode
from streamplace.model.intervals import RateInterval

PREDICTED = 0.098
"""Relative error of predictions when layouts of one job are compared, from docs/evidence.md.

Intervals of this width do not overlap if the ratio of two predictions exceeds 1.217; the errors of
such ratios are at most 17 % in nine of ten pairs. The rate of a single layout is less certain.
"""
MEASURED = 0.03
"""Relative difference between runs of one placement, from docs/evidence.md."""
PRESENT = "present layout"


def interval(
    predictions: Sequence[float], width: float = PREDICTED, kept: Sequence[float] = ()
) -> RateInterval:
    """Interval around the prediction for a layout, or for several of which Flink chooses one.

    ``kept`` is the part of each prediction that is known, because no layout changes it.

    >>> interval([1000.0])
    RateInterval(low=902.0, value=1000.0, high=1098.0)
    >>> interval([80.0, 100.0, 120.0], 0.5)
    RateInterval(low=40.0, value=100.0, high=180.0)
    >>> interval([110.0], 0.5, [100.0])
    RateInterval(low=105.0, value=110.0, high=115.0)
    """
    known = kept or [0.0] * len(predictions)
    parts = [(part, rate - part) for rate, part in zip(predictions, known, strict=True)]
    middle = sorted(predictions)[(len(predictions) - 1) // 2]
    low = min(part + (1 - width) * rest for part, rest in parts)
    high = max(part + (1 + width) * rest for part, rest in parts)
    return RateInterval(low, middle, high)


def is_better(found: float, now: float) -> bool:
    """Whether a layout carries more than the present one, beyond the error of comparisons."""
    return interval([found]).low > interval([now], MEASURED).high


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout that a job may have."""

    name: str  # description, as in "the even spread"
    layout: Layout  # devices of its subtasks; one of several layouts if Flink decides
    carries: RateInterval  # tuples/s, with the interval for comparisons with other candidates
    moves: int = 0  # number of subtasks that are on another device than now
    mode: Mode | None = None  # Flink's mode that produces the layout without pins
    is_configured: bool = False  # whether the cluster already has that mode
    kept: float = 0.0  # tuples/s of sources whose rates do not depend on the layout
    # Tuples/s that it carries by the model, however few are asked for; None if those are the value
    # of ``carries``.
    capacity: float | None = None
    can_be_pinned: bool = True  # whether the cluster can run the job in this layout
    order: int = 0  # position among layouts of which nothing is known

    @property
    def line(self) -> str:
        """Line of configuration that sets the mode; empty if there is none or it is set already."""
        is_missing = self.mode is not None and not self.is_configured
        return f"{MODE_SETTING}: {self.mode}" if is_missing else ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Layouts of a job, by what they should carry."""

    present: Candidate  # the layout with which it runs
    candidates: tuple[Candidate, ...]  # all layouts, the highest predictions first

    @property
    def best(self) -> Candidate:
        """The layout with the highest prediction."""
        return max((self.present, *self.candidates), key=lambda one: one.carries.value)

    @property
    def stays(self) -> bool:
        """Whether no layout carries more than the present one for sure."""
        return self.chosen is self.present

    @property
    def chosen(self) -> Candidate:
        """The layout that carries more than the present one, beyond the errors of comparisons.

        Of several that cannot be distinguished, the one that moves the fewest subtasks; the present
        one if there is none.
        """
        now = self.present.carries
        pinned = [one for one in self.candidates if one.can_be_pinned]
        better = [one for one in pinned if one.carries.low > now.high]
        if not better:
            return self.present
        first = max(better, key=lambda one: one.carries.value)
        equal = [one for one in better if one.carries.overlaps(first.carries)]
        return min(equal, key=lambda one: (one.moves, -one.carries.value))


def decide(present: Candidate, others: Sequence[Candidate]) -> Decision:
    """Order layouts by their predictions."""
    ordered = sorted((present, *others), key=lambda one: -one.carries.value)
    return Decision(present, tuple(ordered))


def moved_subtasks(before: Layout, after: Layout) -> int:
    """Count the subtasks that are on other devices; subtasks of one operator are interchangeable.

    >>> moved_subtasks({"map": ["a", "b"]}, {"map": ["b", "a"]})
    0
    >>> moved_subtasks({"map": ["a", "b"]}, {"map": ["b", "b"]})
    1
    """
    return sum(
        (Counter(devices) - Counter(before.get(name, ()))).total()
        for name, devices in after.items()
    )
