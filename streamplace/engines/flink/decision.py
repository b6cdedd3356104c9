"""Decision: which of several layouts a job should have, by predictions that may err.

Every layout is judged by the same model. Layouts whose intervals overlap with that of the best are
equally good as far as anybody knows, so of these the one that costs least to reach is taken: the
present one, then what Flink does by itself with one line of configuration, then the one in which
the fewest subtasks move.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamplace.engines.flink.layouts import MODE_SETTING, Layout, Mode
from streamplace.model.intervals import RateInterval

PREDICTED = 0.097
"""Share by which 90 % of the predictions for layouts of one job err in docs/calibration.md.

That is for comparing them. What one of them carries is less certain: the cost of an operator that
was measured wrong is wrong in all of them.
"""
MEASURED = 0.03
"""Share by which runs of one placement differ in docs/calibration.md."""


def interval(predictions: Sequence[float], width: float = PREDICTED) -> RateInterval:
    """Interval of a layout that is predicted to carry this; or of layouts of which one comes about.

    >>> interval([100.0])
    RateInterval(low=90.3, value=100.0, high=109.7)
    >>> interval([80.0, 100.0, 120.0], 0.5)
    RateInterval(low=40.0, value=100.0, high=180.0)
    """
    middle = sorted(predictions)[(len(predictions) - 1) // 2]
    low, high = (1 - width) * min(predictions), (1 + width) * max(predictions)
    return RateInterval(low, middle, high)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout that a job may have.

    Attributes
    ----------
    name
        In words, as in "the even spread".
    layout
        Where its subtasks are; one of several where Flink decides.
    carries
        Tuples/s, with the interval by which it is compared with the others.
    moves
        Number of subtasks that are not where they are now.
    mode
        The mode of Flink that leads there without pins.
    is_configured
        Whether the cluster is configured with that mode already.
    """

    name: str
    layout: Layout
    carries: RateInterval
    moves: int = 0
    mode: Mode | None = None
    is_configured: bool = False

    @property
    def line(self) -> str:
        """The line of configuration that does it; empty where none does or none is missing."""
        is_missing = self.mode is not None and not self.is_configured
        return f"{MODE_SETTING}: {self.mode}" if is_missing else ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What should become of a job.

    Attributes
    ----------
    present
        Where it runs.
    best
        The layout of the highest prediction.
    chosen
        Where it should run.
    candidates
        All layouts, the highest predictions first.
    """

    present: Candidate
    best: Candidate
    chosen: Candidate
    candidates: tuple[Candidate, ...]

    @property
    def stays(self) -> bool:
        """Whether the job should stay where it is."""
        return self.chosen is self.present

    @property
    def gain(self) -> float:
        """Tuples/s that the job reads more at least, if the predictions hold."""
        return max(0.0, self.chosen.carries.low - self.present.carries.value)

    def damped(self, share: float) -> "Decision":
        """Decide again, where only a share of every gain is believed.

        A model whose last promise came true in part is believed in part: otherwise a correction may
        overshoot as much as what it corrects.
        """
        if share >= 1:
            return self
        now = self.present.carries.value
        others = [
            replace(
                one, carries=RateInterval(*(now + share * (rate - now) for rate in one.carries))
            )
            for one in self.candidates
            if one is not self.present
        ]
        return decide(self.present, others)

    def sentences(self) -> list[str]:
        """What was found and what should be done, for a reader."""
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

    The job stays unless one is better for sure, which that of the highest prediction need not be:
    where Flink decides, one of several layouts comes about. If the one that is chosen is not the
    present one, even the lower end of its interval is not below what that carries.
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
    """Count the subtasks that are on other devices, whichever of an operator's they are.

    >>> moved_subtasks({"map": ["a", "b"]}, {"map": ["b", "a"]})
    0
    >>> moved_subtasks({"map": ["a", "b"]}, {"map": ["b", "b"]})
    1
    """
    return sum(
        (Counter(devices) - Counter(before.get(name, ()))).total()
        for name, devices in after.items()
    )
