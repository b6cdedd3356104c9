"""Predicted and measured rates of runs: those of the package, and the ledger of this user.

The errors of predictions come from the runs of the package alone, so that equal graphs have equal
intervals on all computers. The ledger is in the user's store, and decides nothing.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from pydantic import TypeAdapter

from streamplace.errors import FormatError, SettingError
from streamplace.io.placements import Prediction
from streamplace.io.store import WHOLE, Store, Table, utc_now
from streamplace.model.graph import PROFILE_WINDOWS, StreamGraph
from streamplace.model.message_text import counted, quoted
from streamplace.model.prediction_intervals import (
    USUAL_CONFIDENCE,
    PredictionErrors,
    RateInterval,
    expected_error,
)
from streamplace.model.profile_trust import cpu_error, profile_drift, profile_spread

RECORDED = Path(__file__).with_name("recorded_runs.jsonl")
"""Runs of this repository, written by ``benchmarks/recorded_runs.py``."""
MOVE = "flink move"
"""Command whose predictions are of layouts unlike the measured one, so that their errors differ."""
NOISE = 0.03
"""Relative difference between runs of one placement (docs/results/evidence.md)."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A run with its predicted and its measured rate."""

    __pydantic_config__: ClassVar = WHOLE

    job: str  # name of the job, the same in all of its runs
    # Tuples/s of all sources.
    predicted: float
    measured: float
    # Whether back-pressure held the sources back, so that the measured rate is the capacity.
    is_limited: bool = True
    # Ends of the predicted interval; None without one.
    low: float | None = None
    high: float | None = None
    confidence: float | None = None  # confidence of that interval
    by: str = ""  # command that measured it
    when: str = ""  # UTC time in ISO 8601 format; empty if unknown
    drift: float | None = None  # part by which that interval was wider for a job that was not warm
    kept: float | None = None  # tuples/s of sources that the layout does not limit
    spread: float | None = None  # spread of the profile from which it was predicted

    @property
    def score(self) -> float | None:
        """Logarithm of measured / predicted; None if the run does not determine it.

        A run without back-pressure may carry more than it was offered, so it has one only if its
        rate is clearly above the prediction. What was allowed for because the job was not warm is
        no error, as intervals of such jobs are widened by it again. Nor are rates that the layout
        does not limit.
        """
        if not self.is_limited and self.measured <= (1 + NOISE) * self.predicted:
            return None
        kept = self.kept or 0.0
        if kept >= min(self.measured, self.predicted):
            kept = 0.0
        error = math.log((self.measured - kept) / (self.predicted - kept))
        return math.copysign(max(0.0, abs(error) - math.log1p(self.drift or 0.0)), error)

    @property
    def held(self) -> bool | None:
        """Whether the measured rate was in the interval; None if unknown."""
        if self.interval is None:
            return None
        return self.interval.holds(self.measured, is_limited=self.is_limited)

    @property
    def interval(self) -> RateInterval | None:
        """Predicted interval; None without one."""
        if self.low is None or self.high is None:
            return None
        return RateInterval(self.low, self.predicted, self.high)


RATES = Table("rates", TypeAdapter(LedgerEntry))


def user_runs() -> tuple[LedgerEntry, ...]:
    """Runs of this user, in order."""
    return tuple(Store.usual().rows(RATES).values())


def append_entries(entries: Iterable[LedgerEntry]) -> None:
    """Append runs of this user, with the present time."""
    now = utc_now()
    with Store.usual().transaction() as rows:
        for entry in entries:
            rows.add(RATES, entry.job, replace(entry, when=entry.when or now))


def note_in_ledger(
    by: str, predicted: Prediction, rate: float, is_limited: bool, tell: Callable[[str], None]
) -> None:
    """Append to the ledger what a moved job was predicted to carry and what its sources emit."""
    low, value, high = predicted.carries
    if not (0 < rate < math.inf and 0 < value < math.inf):
        return
    entry = LedgerEntry(
        predicted.graph,
        value,
        rate,
        is_limited,
        low,
        high,
        predicted.confidence or None,
        by,
        drift=predicted.drift or None,
        kept=predicted.kept or None,
        spread=predicted.spread or None,
    )
    try:
        append_entries([entry])
    except FormatError as error:  # the job runs, and its move does not fail because of its ledger
        tell(f"warning: {error}")


@cache
def recorded_runs() -> tuple[LedgerEntry, ...]:
    """Runs that are recorded in the package."""
    return tuple(map(RATES.adapter.validate_json, RECORDED.read_text("utf-8").splitlines()))


def errors_of_runs(
    runs: Iterable[LedgerEntry], job: str = "", confidence: float = USUAL_CONFIDENCE
) -> PredictionErrors:
    """Return the prediction errors of a steady job: those of the runs of all other jobs.

    Scores are in units of the errors that are expected of the profiles of their runs.
    """
    scores: dict[str, list[float]] = {}
    for run in runs:
        if run.job != job and (score := run.score) is not None:
            scores.setdefault(run.job, []).append(score / expected_error(run.spread or 0.0))
    number = counted(sum(map(len, scores.values())), "run")
    origin = f"errors of {number} of {counted(len(scores), 'job')} recorded with streamplace"
    return PredictionErrors.of(scores, confidence, origin)


def errors_for(
    graph: StreamGraph, confidence: float | None = None, *, by: str = ""
) -> PredictionErrors | None:
    """Return the prediction errors for a measured graph; None for others, and for confidence 0.

    They come from the recorded runs of layouts that moves tried if ``by`` is `MOVE`, else from all
    others. A confidence that is given for a graph that was not measured is refused.
    """
    if confidence == 0:
        return None
    if PROFILE_WINDOWS not in graph.attributes:
        if confidence is None:
            return None
        raise SettingError(
            f"graph {quoted(graph.name)} was not measured, so nothing is known of the errors of "
            "its predictions; drop the confidence, or measure the graph with "
            "streamplace flink profile"
        )
    runs = [run for run in recorded_runs() if (run.by == MOVE) == (by == MOVE)]
    errors = errors_of_runs(runs, graph.name, confidence or USUAL_CONFIDENCE)
    errors = errors.for_spread(profile_spread(graph)).widened(profile_drift(graph))
    return errors.widened(cpu_error(graph))
