"""The ledger: predicted and measured rates of runs, in the user's store, to learn from.

The package has the runs of this repository's calibration, as JSON lines.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import TypeAdapter

from streamplace.errors import SettingError
from streamplace.io.store import WHOLE, Store, Table
from streamplace.model.graph import PROFILE_WINDOWS, StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.prediction_intervals import (
    USUAL_CONFIDENCE,
    PredictionErrors,
    RateInterval,
    check_confidence,
    count_in_words,
    expected_error,
    least_jobs,
)
from streamplace.model.profile_trust import profile_drift, profile_spread

RECORDED = Path(__file__).with_name("recorded_runs.jsonl")
"""Runs of this repository, written by ``benchmarks/recorded_runs.py``."""
UNNAMED = ("", "Flink Streaming Job")
"""Names of jobs whose program sets none: many jobs may have them."""
MOVE = "flink move"
"""Command whose predictions are of layouts unlike the measured one, so that their errors differ."""
NOISE = 0.03
"""Relative difference between runs of one placement (docs/evidence.md)."""


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
        return self._error if self._is_determined else None

    @property
    def carried(self) -> float | None:
        """Least score that the run may have, where it does not determine it; else None."""
        return None if self._is_determined else self._error

    @property
    def _is_determined(self) -> bool:
        return self.is_limited or self.measured > (1 + NOISE) * self.predicted

    @property
    def _error(self) -> float:
        known = self.kept or 0.0
        if known >= min(self.measured, self.predicted):
            known = 0.0
        error = math.log((self.measured - known) / (self.predicted - known))
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
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with Store.usual().transaction() as rows:
        for entry in entries:
            rows.add(RATES, entry.job, replace(entry, when=entry.when or now))


@cache
def recorded_runs() -> tuple[LedgerEntry, ...]:
    """Runs that are recorded in the package."""
    return tuple(map(RATES.adapter.validate_json, RECORDED.read_text("utf-8").splitlines()))


def of_kind(runs: Iterable[LedgerEntry], by: str = "") -> list[LedgerEntry]:
    """Runs of layouts that moves tried if ``by`` is `MOVE`, else all others."""
    return [one for one in runs if (one.by == MOVE) == (by == MOVE)]


def known_errors(
    job: str = "",
    own: Sequence[LedgerEntry] = (),
    confidence: float = USUAL_CONFIDENCE,
    recorded: Sequence[LedgerEntry] | None = None,
) -> PredictionErrors:
    """Return the prediction errors that apply to a job.

    The runs of the job itself are used if its program names it and they are enough for the
    confidence, else the user's jobs, else those and the recorded ones. The errors are those for a
    steady job; see `PredictionErrors.for_spread`. Recorded runs of the job itself are ignored, so
    that its errors do not come from the package's records of it, and so are those of the user's
    jobs, which would count twice. ``own`` are the runs of the user;
    ``recorded`` are by default those of the package, without layouts that moves tried.
    """
    check_confidence(confidence)
    needed = least_jobs(confidence)
    mine, carried = _by_job(own, "score"), _by_job(own, "carried")
    runs = mine.get(job, [])
    if len(runs) >= needed and job not in UNNAMED:
        alone = {f"run {i}": [score] for i, score in enumerate(runs)}
        more = {f"bound {i}": [score] for i, score in enumerate(carried.get(job, []))}
        return PredictionErrors.of(alone, confidence, f"{len(runs)} runs of this job", more)
    if len(mine) >= needed:
        return PredictionErrors.of(mine, confidence, count_in_words(len(mine), 0), carried)
    if recorded is None:
        recorded = of_kind(recorded_runs())
    known = _by_job(recorded, "score").items()
    others = {name: scores for name, scores in known if name != job and name not in mine}
    origin = count_in_words(len(mine), len(others))
    return PredictionErrors.of(others | mine, confidence, origin, carried)


def errors_for(
    graph: StreamGraph, confidence: float | None = None, *, by: str = ""
) -> PredictionErrors | None:
    """Return the prediction errors for a measured graph; None for others, and for confidence 0.

    Those of moves and of all else are kept apart; ``by`` is `MOVE` for the former. A confidence
    that is given for a graph that was not measured is refused.
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
    mine, recorded = of_kind(user_runs(), by), of_kind(recorded_runs(), by)
    errors = known_errors(graph.name, mine, confidence or USUAL_CONFIDENCE, recorded)
    return errors.for_spread(profile_spread(graph)).widened(profile_drift(graph))


def _by_job(
    entries: Iterable[LedgerEntry], of: Literal["score", "carried"]
) -> dict[str, list[float]]:
    """Scores of the runs that have one, or what the others carry at least, by job.

    They are in units of the errors that are expected of their profiles.
    """
    by_job: dict[str, list[float]] = {}
    for entry in entries:
        known: float | None = getattr(entry, of)
        if known is not None:
            unit = expected_error(entry.spread or 0.0)
            by_job.setdefault(entry.job, []).append(known / unit)
    return by_job
