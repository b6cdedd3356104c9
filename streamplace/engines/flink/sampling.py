"""Sampling a running job: what each of its vertices did between two looks."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.rest import Rest

SETTLING_SECONDS = 1.2
"""A look returns what Flink fetched at the look before, so each is taken twice."""
MOST_WINDOWS, ALIKE = 12, 0.1
_METRICS = (
    "numRecordsIn",
    "numRecordsOut",
    "numBytesIn",
    "accumulateBusyTimeMs",
    "accumulateBackPressuredTimeMs",
)


@dataclass(frozen=True, slots=True)
class Activity:
    """What all subtasks of a vertex together did per second.

    Attributes
    ----------
    busy, back_pressured
        Seconds of their threads per second, between 0 and the parallelism.
    """

    records_in: float
    records_out: float
    bytes_in: float
    busy: float
    back_pressured: float


def sample(rest: Rest, job: str, vertices: Sequence[str], seconds: float) -> dict[str, Activity]:
    """Activity of the vertices, each watched for about ``seconds``.

    Every vertex is measured against its own clock: the time between its two answers.
    """
    _look(rest, job, vertices)
    time.sleep(SETTLING_SECONDS)
    first = _look(rest, job, vertices)
    time.sleep(max(0.0, seconds - SETTLING_SECONDS))
    _look(rest, job, vertices)
    time.sleep(SETTLING_SECONDS)
    second = _look(rest, job, vertices)
    return {vertex: _activity(first[vertex], second[vertex]) for vertex in vertices}


def settled_rate(rest: Rest, job: str, vertex: str, seconds: float) -> float:
    """Tuples/s that a vertex reads, once two windows of ``seconds`` in a row agree within 10 %.

    A job begins slowly: its classes are loaded and compiled, and its queues fill. After twelve
    windows the last one counts, whatever it says.
    """
    before = rate = 0.0
    for _ in range(MOST_WINDOWS):
        before, rate = rate, sample(rest, job, [vertex], seconds)[vertex].records_in
        if abs(rate - before) < ALIKE * before:
            break
    return rate


def _look(rest: Rest, job: str, vertices: Sequence[str]) -> dict[str, dict[str, float]]:
    return {vertex: _counters(rest, job, vertex) for vertex in vertices}


def _counters(rest: Rest, job: str, vertex: str) -> dict[str, float]:
    """Sums over the subtasks, and when they were read."""
    path = f"/jobs/{quote(job, safe='')}/vertices/{vertex}/subtasks/metrics?agg=sum&get="
    rows: list[dict[str, Any]] = rest.get(path + ",".join(_METRICS))
    found = {row["id"]: _number(row["sum"]) for row in rows}
    return {
        "at": time.monotonic(),
        **{name: found.get(name, 0.0) for name in _METRICS},
    }


def _activity(first: dict[str, float], second: dict[str, float]) -> Activity:
    """Rates between two looks."""
    span = second["at"] - first["at"]
    rate = {name: (second[name] - first[name]) / span for name in first if name != "at"}
    return Activity(
        rate["numRecordsIn"],
        rate["numRecordsOut"],
        rate["numBytesIn"],
        rate["accumulateBusyTimeMs"] / 1000,
        rate["accumulateBackPressuredTimeMs"] / 1000,
    )


def _number(value: object) -> float:
    """Return a metric as a number; what Flink does not know (NaN, texts) counts as nothing."""
    try:
        number = float(str(value))
    except ValueError:
        return 0.0
    return number if number == number else 0.0
