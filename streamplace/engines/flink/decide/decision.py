"""Decision: which of several layouts a job should have, given the errors of predictions.

Every layout is predicted by the same model. Layouts whose intervals overlap with that of the best
one cannot be distinguished from it, so the cheapest of these to reach is chosen: the present one,
then one that Flink produces by itself with one line of configuration, then the one that moves the
fewest subtasks.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamplace.engines.flink.decide.layouts import MODE_SETTING, Layout, Mode
from streamplace.model.intervals import RateInterval

PREDICTED = 0.098
"""Relative error of predictions when layouts of one job are compared, from docs/evidence.md.

Intervals of this width do not overlap if the ratio of two predictions exceeds 1.217; the errors of
such ratios are at most 17 % in nine of ten pairs. The rate of a single layout is less certain.
"""
MEASURED = 0.03
"""Relative difference between runs of one placement, from docs/evidence.md."""


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
    # The same layout with all of its predicted gain; None if nothing was taken off.
    undamped: "Candidate | None" = None

    @property
    def line(self) -> str:
        """Line of configuration that sets the mode; empty if there is none or it is set already."""
        is_missing = self.mode is not None and not self.is_configured
        return f"{MODE_SETTING}: {self.mode}" if is_missing else ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Layout that a job should have."""

    present: Candidate  # the layout with which it runs
    best: Candidate  # the layout with the highest prediction
    chosen: Candidate  # the layout that it should have
    candidates: tuple[Candidate, ...]  # all layouts, the highest predictions first

    @property
    def stays(self) -> bool:
        """Whether the job should stay where it is."""
        return self.chosen is self.present

    @property
    def gain(self) -> float:
        """Minimum increase of the rate in tuples/s, if the predictions hold."""
        return max(0.0, self.chosen.carries.low - self.present.carries.value)

    def damped(self, share: float) -> "Decision":
        """Decide again with only this share of every predicted gain.

        It is meant for a model whose last prediction came true in part only: with the full gain,
        the next correction could be as wrong in the other direction.
        """
        if share >= 1:
            return self
        now = self.present.carries.value

        def less(rate: float) -> float:
            return now + share * (rate - now)

        others = [
            replace(
                one,
                carries=RateInterval(*map(less, one.carries)),
                capacity=None if one.capacity is None else less(one.capacity),
                undamped=one,
            )
            for one in self.candidates
            if one is not self.present
        ]
        return decide(self.present, others)

    def sentences(self) -> list[str]:
        """Sentences on the result and on the action to take."""
        best, present = self.best, self.present
        if self.stays and best is not present:
            return [
                f"{best.name} would carry {best.carries}, which the predictions do not tell from "
                f"the present layout's {present.carries}, so nothing is moved"
            ]
        if self.stays:
            return [f"no layout was found that carries more than the present one ({best.carries})"]
        chosen = self.chosen
        if chosen.mode is None:
            return [f"{chosen.name} should carry {chosen.carries}"]
        than = "" if best is chosen else f", and {best.name} {best.carries}, which may be the same"
        text = f"{chosen.name} should carry {chosen.carries}{than}; it needs no pins, so nothing is"
        if chosen.is_configured:
            return [
                f"{text} moved. The cluster is configured for it: submit the job again, with its "
                "state and without a placement"
            ]
        return [
            f"{text} moved. Add this line to the configuration of the JobManager, restart it, and "
            f"submit the job again: {chosen.line}"
        ]


def decide(present: Candidate, others: Sequence[Candidate]) -> Decision:
    """Choose among layouts.

    The job stays unless the interval of another layout is entirely above that of the present one.
    That layout need not have the highest prediction: if Flink decides, one of several layouts
    results. The lower end of the chosen interval is not below the rate of the present layout.
    """
    everything = sorted((present, *others), key=lambda one: -one.carries.value)
    best = max((present, *others), key=lambda one: one.carries.value)
    better = [one for one in everything if one.carries.low > present.carries.high]
    if better:
        equal = [
            one
            for one in everything
            if one.carries.overlaps(better[0].carries) and one.carries.low >= present.carries.value
        ]
        chosen = min(equal, key=lambda one: (one.mode is None, one.moves, -one.carries.value))
    else:
        chosen = present
    return Decision(present, best, chosen, tuple(everything))


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
