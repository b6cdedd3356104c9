"""Predicted and measured rates of recorded runs, and the errors of predictions from them.

The runs are in the package, so that equal graphs have equal intervals on all computers.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter

from streamplace.errors import SettingError
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
"""Command that predicts layouts unlike the measured one, so that its errors differ."""
NOISE = 0.03
"""Relative difference between runs of one placement (docs/results/evidence.md)."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A run with its predicted and its measured rate."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", ser_json_inf_nan="constants")

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
    drift: float | None = None  # share by which the interval was wider as the job was not warm
    kept: float | None = None  # tuples/s of sources that the layout does not limit
    spread: float | None = None  # spread of the profile from which it was predicted

    @property
    def score(self) -> float | None:
        """Logarithm of measured / predicted; None if the run does not determine it.

        A run without back-pressure may carry more than it was offered, so it has a score only if
        its rate is clearly above the prediction. The drift of a job that was not warm is no error,
        as intervals of such jobs are widened by it again. Nor are rates that the layout does not
        limit.
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


RUNS = TypeAdapter(LedgerEntry)


@cache
def recorded_runs() -> tuple[LedgerEntry, ...]:
    """Runs that are recorded in the package."""
    return tuple(map(RUNS.validate_json, RECORDED.read_text("utf-8").splitlines()))


def errors_of_runs(
    runs: Iterable[LedgerEntry], job: str = "", confidence: float = USUAL_CONFIDENCE
) -> PredictionErrors:
    """Return the prediction errors of a steady job, from the runs of all other jobs.

    Scores are in units of the error that is expected for the profile of the run.
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

    They come from recorded tries of moves if ``by`` is `MOVE`, else from all other recorded runs.
    A confidence for a graph that was not measured is refused.
    """
    if confidence == 0:
        return None
    if PROFILE_WINDOWS not in graph.attributes:
        if confidence is None:
            return None
        raise SettingError(
            f"graph {quoted(graph.name)} was not measured, so the errors of its predictions are "
            "unknown; drop the confidence, or measure the graph with streamplace flink profile"
        )
    runs = [run for run in recorded_runs() if (run.by == MOVE) == (by == MOVE)]
    errors = errors_of_runs(runs, graph.name, confidence or USUAL_CONFIDENCE)
    errors = errors.for_spread(profile_spread(graph)).widened(profile_drift(graph))
    return errors.widened(cpu_error(graph))
