"""Sampling a running job: what each of its vertices did between two moments."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.rest import Rest

POLL_SECONDS = 0.25
PATIENCE_SECONDS = 30.0
"""For answers that change rarely; what has not changed by then is idle."""
MOST_WINDOWS, ALIKE = 12, 0.1
_METRICS = (
    "numRecordsIn",
    "numRecordsOut",
    "numBytesIn",
    "accumulateBusyTimeMs",
    "accumulateBackPressuredTimeMs",
    "accumulateIdleTimeMs",
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


@dataclass(slots=True)
class _Watch:
    """Looks at one vertex at moments when its counters had just changed."""

    previous: dict[str, float] | None = None
    changed: float | None = None
    first: tuple[float, dict[str, float]] | None = None
    last: tuple[float, dict[str, float]] | None = None

    def see(self, now: float, counters: dict[str, float]) -> None:
        """Take in an answer; the one after a change has the news of all TaskManagers."""
        if self.changed is not None:
            look = (self.changed, counters)
            if self.first is None:
                self.first = look
            else:
                self.last = look
            self.changed = None
        elif self.previous is not None and counters != self.previous:
            self.changed = now
        self.previous = counters

    @property
    def span(self) -> float:
        """Seconds between the first look and the last."""
        return self.last[0] - self.first[0] if self.first and self.last else 0.0

    def activity(self) -> Activity:
        """Rates between the first look and the last; none where nothing ever changed."""
        if self.first is None or self.last is None:
            return Activity(0.0, 0.0, 0.0, 0.0, 0.0)
        before, after = self.first[1], self.last[1]
        rate = {name: (after[name] - before[name]) / self.span for name in _METRICS}
        return Activity(
            rate["numRecordsIn"],
            rate["numRecordsOut"],
            rate["numBytesIn"],
            rate["accumulateBusyTimeMs"] / 1000,
            rate["accumulateBackPressuredTimeMs"] / 1000,
        )


def sample(rest: Rest, job: str, vertices: Sequence[str], seconds: float) -> dict[str, Activity]:
    """Activity of the vertices, each watched for at least ``seconds``.

    Flink answers with what it last fetched from the TaskManagers, which it does when asked and
    every ten seconds at most (``metrics.fetcher.update-interval``). So rates are taken between two
    moments at which a vertex's counters were seen to change: both answers are equally old.
    """
    watches = {vertex: _Watch() for vertex in vertices}
    deadline = time.monotonic() + seconds + PATIENCE_SECONDS
    while time.monotonic() < deadline and any(w.span < seconds for w in watches.values()):
        for vertex, watch in watches.items():
            watch.see(time.monotonic(), _counters(rest, job, vertex))
        time.sleep(POLL_SECONDS)
    return {vertex: watch.activity() for vertex, watch in watches.items()}


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


def _counters(rest: Rest, job: str, vertex: str) -> dict[str, float]:
    """Sums over the subtasks."""
    path = f"/jobs/{quote(job, safe='')}/vertices/{vertex}/subtasks/metrics?agg=sum&get="
    rows: list[dict[str, Any]] = rest.get(path + ",".join(_METRICS))
    found = {row["id"]: _number(row["sum"]) for row in rows}
    return {name: found.get(name, 0.0) for name in _METRICS}


def _number(value: object) -> float:
    """Return a metric as a number; what Flink does not know (NaN, texts) counts as nothing."""
    try:
        number = float(str(value))
    except ValueError:
        return 0.0
    return number if number == number else 0.0
