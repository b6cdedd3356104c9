"""Metrics of vertices and TaskManagers in adjacent windows of time.

Flink answers with the values that it last fetched from the TaskManagers. It fetches them on
request, at most every ten seconds (``metrics.fetcher.update-interval``). So rates are computed
between two times at which counters changed, because both answers are then equally old. A window
begins with the last such time of the previous window, so several windows together are a window.
"""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from streamplace.flink.cpu.threads import PAUSE_SECONDS, as_number
from streamplace.flink.rest.answers import Metric
from streamplace.flink.rest.client import FlinkError, Rest, job_path
from streamplace.model.message_text import shown

UPDATE_SECONDS = 30.0
"""Maximum wait for metrics. Flink has fetched them three times by then, so unchanged counters are
those of idle tasks."""
MAX_MISSING_SHARE = 0.05
"""Maximum share of a window that is missing because its ends were noticed late."""
MONOTONE = ("numRecordsIn", "numRecordsOut", "numBytesIn")
"""Counters that fall only if a subtask restarts or ends.

Bytes of Kafka's sink also fall whenever a transaction gets another producer.
"""
COUNTS = (*MONOTONE, "numBytesOut")
BUSY_MS, BACK_PRESSURED_MS = "accumulateBusyTimeMs", "accumulateBackPressuredTimeMs"
MAX_BACK_PRESSURED_MS = f"{BACK_PRESSURED_MS}.max"
"""Maximum of the back-pressured times of the subtasks of a vertex."""
_METRICS = (*COUNTS, BUSY_MS, BACK_PRESSURED_MS)
PROCESS_CPU = "Status.JVM.CPU.Time"
"""Metric of a TaskManager: nanoseconds of CPU of all its threads."""
PENDING = ".pendingRecords"
"""Suffix of the metric for unread records of a source; few connectors report it."""
Reading = tuple[float, Mapping[str, float]]
"""Time in s, and values of counters at that time."""
MAX_OPERATOR_NAME = 80
"""Maximum length of operator names in the names of Flink's metrics."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Metrics of all subtasks of a vertex together."""

    # Change of each metric per second; times are in ms, between 0 and 1000 × the parallelism.
    # Missing metrics and NaN are left out.
    rates: Mapping[str, float]
    seconds: float  # length of the measurement
    totals: Mapping[str, float] = field(default_factory=dict)  # value of each metric at the end
    # Times at which the metrics had just changed, with their values.
    readings: Sequence[Reading] = ()
    reporting: int = 0  # number of subtasks with metrics; 0 if unknown

    @property
    def records_in(self) -> float:
        """Tuples/s read."""
        return self.rates.get("numRecordsIn", 0.0)

    @property
    def records_out(self) -> float:
        """Tuples/s sent to other vertices; a tuple for several of them counts once."""
        return self.rates.get("numRecordsOut", 0.0)

    @property
    def busy(self) -> float | None:
        """Busy seconds of its threads per second; None if Flink does not report them."""
        return self.rates[BUSY_MS] / 1000 if BUSY_MS in self.rates else None

    @property
    def back_pressured(self) -> float:
        """Back-pressured seconds of its threads per second."""
        return self.rates.get(BACK_PRESSURED_MS, 0.0) / 1000

    @property
    def max_back_pressured(self) -> float:
        """Lower bound on the largest back-pressured share of time of a subtask.

        Times count since the start of the job, so the metric grows only while the subtask with the
        largest time is back-pressured. Also 0 if Flink reports only sums.
        """
        return self.rates.get(MAX_BACK_PRESSURED_MS, 0.0) / 1000

    def growth(self, metric: str) -> float | None:
        """Change of a metric per second, possibly negative; None if it was not read twice."""
        values = self.values(metric)
        if len(values) < 2:
            return None
        (start, low), (end, high) = values[0], values[-1]
        return (high - low) / (end - start)

    def values(self, metric: str) -> list[tuple[float, float]]:
        """Times at which a metric was read, with its values."""
        return [(now, counters[metric]) for now, counters in self.readings if metric in counters]


IDLE = Activity(dict.fromkeys((*COUNTS, BUSY_MS, BACK_PRESSURED_MS), 0.0), 0.0)
"""Activity of a vertex that has ended."""


def sent_by(operator: str) -> str:
    """Metric that counts the output of one operator of a vertex, even to a fused operator.

    >>> sent_by("Source: rides, v1.0")
    'Source__rides__v1_0.numRecordsOut'
    """
    return f"{_prefix(operator)}.numRecordsOut"


def pending_of(operator: str) -> str:
    """Metric that counts the unread records of a source."""
    return f"{_prefix(operator)}{PENDING}"


def source_metrics(operator: str) -> tuple[str, str, str]:
    """Metrics of a source that count read records, unread records, and sent tuples."""
    return f"{_prefix(operator)}.numRecordsIn", pending_of(operator), sent_by(operator)


def tuples_per_record(operator: str, activity: Activity) -> float:
    """Number of tuples that a source makes from a record; 1 if unknown."""
    read, _, sent = (activity.rates.get(name, 0.0) for name in source_metrics(operator))
    return sent / read if sent > 0 and read > 0 else 1.0


def _prefix(operator: str) -> str:
    return re.sub("[ .:,]", "_", operator[:MAX_OPERATOR_NAME])


@dataclass(slots=True)
class _Counters:
    """Records the counters of a vertex or a TaskManager at times when they have just changed."""

    path: str
    wanted: tuple[str, ...]  # metrics to read
    available: frozenset[str] = frozenset()  # metrics that Flink has listed
    previous: dict[str, float] | None = None  # last answer
    changed: float | None = None  # time of the last answer, if it differs from the one before
    readings: list[Reading] = field(default_factory=list)
    requested: float | None = None  # time of the last request
    max_pause: float = 0.0  # longest time between two requests
    reporting: int = 0  # number of subtasks with metrics
    is_used: bool = False  # whether a window has been measured by its recorded times

    def read(self, rest: Rest, job: str) -> None:
        """Read the current counters; ignore an answer without values."""
        needed = [name for name in self.wanted if not name.endswith(PENDING)]
        # A source of Kafka reports pending records only from its first record on.
        may_report = self.changed is not None and not self.available.issuperset(self.wanted)
        if may_report or (not self.readings and not self.available.issuperset(needed)):
            rows = rest.get(self.path.partition("?")[0])
            self.available |= {row["id"] for row in rows}  # a list may be incomplete
        requested = [name for name in self.wanted if name in self.available]
        if not requested:
            return
        # only known metrics are requested: if one is unknown, Flink returns none at all
        now, query = time.monotonic(), ",".join(quote(name, safe="") for name in requested)
        rows = rest.get(f"{self.path}get={query}")
        counters, reporting = _numbers(rows), _reporting(rows)
        before, change = self.previous or {}, reporting - self.reporting
        has_fallen = any(counters.get(name, math.inf) < before.get(name, 0.0) for name in MONOTONE)
        if has_fallen or (reporting and change < 0) or (self.is_used and change > 0):
            raise restart_error(job)
        if counters:
            self._add(now, counters, reporting)

    def _add(self, now: float, counters: dict[str, float], reporting: int) -> None:
        """Add an answer; the answer after a change contains the new values of all TaskManagers.

        Flink fetches values from each TaskManager separately. The first values of a TaskManager
        would seem to be an increase, so earlier times are dropped when it first answers.
        """
        if reporting > self.reporting:
            self.reporting, self.previous, self.changed = reporting, None, None
            self.readings.clear()
        if self.requested is not None:
            self.max_pause = max(self.max_pause, now - self.requested)
        self.requested = now
        if self.changed is not None:
            self.readings.append((self.changed, counters))
            self.changed = None
        elif self.previous is not None and not self.previous.items() <= counters.items():
            self.changed = now  # an additional metric alone is no change
        self.previous = counters

    def span(self, since: int) -> float:
        """Seconds since a recorded time; 0 if there is none."""
        return self.readings[-1][0] - self.readings[since][0] if self.readings[since:] else 0.0

    def activity(self, since: int, until: int) -> Activity:
        """Rates between two recorded times; 0 if nothing changed between them."""
        readings = self.readings[since : until + 1]
        if len(readings) < 2:
            totals = self.previous or {}
            return Activity(dict.fromkeys(totals, 0.0), 0.0, totals, reporting=self.reporting)
        (start, before), (end, after) = readings[0], readings[-1]
        metrics = before.keys() & after.keys()
        rates = {name: max(0.0, (after[name] - before[name]) / (end - start)) for name in metrics}
        return Activity(rates, end - start, after, tuple(readings), self.reporting)


def sample(
    rest: Rest,
    job: str,
    vertices: Sequence[str],
    seconds: float,
    further: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Activity]:
    """Activity of the vertices, each measured for at least ``seconds``, as by `Sampler`."""
    sampler = Sampler(rest, job, vertices, further or {})
    sampler.measure(seconds)
    return sampler.between(0, 1)


class Sampler:
    """Measures vertices and TaskManagers in adjacent windows.

    ``further``: vertex → additional metrics to read.
    ``managers``: TaskManagers whose CPU is read as a whole.
    """

    def __init__(
        self,
        rest: Rest,
        job: str,
        vertices: Sequence[str],
        further: Mapping[str, Sequence[str]],
        managers: Sequence[str] = (),
    ) -> None:
        self._rest, self._job, self._vertices = rest, job, vertices
        self._counters = {
            v: _Counters(
                f"{job_path(job, 'vertices', v, 'subtasks', 'metrics')}?agg=sum,max,avg&",
                (*_METRICS, *further.get(v, ())),
            )
            for v in vertices
        }
        self._counters |= {
            m: _Counters(f"/taskmanagers/{quote(m, safe='')}/metrics?", (PROCESS_CPU,))
            for m in managers
        }
        self._marks = [dict.fromkeys(self._counters, 0)]

    def measure(self, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Measure one more window of at least ``seconds`` for each vertex.

        ``meanwhile``: called between two readings.
        """
        began = time.monotonic()
        deadline = began + seconds + UPDATE_SECONDS
        while time.monotonic() < deadline and self._is_short(seconds):
            self._rest.running_job(self._job)
            for counters in self._counters.values():
                if time.monotonic() < deadline:
                    counters.read(self._rest, self._job)
            is_silent = all(self._counters[v].previous is None for v in self._vertices)
            if is_silent and time.monotonic() >= began + UPDATE_SECONDS:
                raise FlinkError(
                    f"Flink has reported no metrics of job {shown(self._job)} for "
                    f"{UPDATE_SECONDS:g} s, so nothing can be measured; after the loss of a "
                    "TaskManager it reports none for up to web.timeout (by default 10 min): wait "
                    "that long, or set it to 1 min; otherwise check that "
                    "metrics.fetcher.update-interval is not 0, and that the JobManager reaches "
                    "metrics.internal.query-service.port of its TaskManagers"
                )
            time.sleep(PAUSE_SECONDS)
            meanwhile()
        for counters in self._counters.values():
            counters.is_used = bool(counters.readings)
        self._marks.append(
            {key: max(0, len(row.readings) - 1) for key, row in self._counters.items()}
        )

    def between(self, first: int, last: int) -> dict[str, Activity]:
        """Activity of vertices and of TaskManagers between the ends of two windows.

        Windows are numbered from 1; 0 is the beginning.
        """
        return {
            key: counters.activity(self._marks[first][key], self._marks[last][key])
            for key, counters in self._counters.items()
        }

    def _is_short(self, seconds: float) -> bool:
        """Whether the window of a vertex or TaskManager is too short; changes are noticed late."""
        return any(
            counters.span(self._marks[-1][key])
            < seconds - min(counters.max_pause, MAX_MISSING_SHARE * seconds)
            for key, counters in self._counters.items()
        )


def restart_error(job: str) -> FlinkError:
    """Error of a measurement during which the job, or one of its subtasks, restarted."""
    return FlinkError(
        f"job {shown(job)} was restarted during the measurement, or metrics of some of its "
        "subtasks began or ended; profile it when it runs steadily"
    )


def _reporting(rows: Sequence[Metric]) -> int:
    """Number of subtasks with metrics; 0 if unknown."""
    sums = ((as_number(row.get("sum")), as_number(row.get("avg"))) for row in rows)
    numbers = (total / mean for total, mean in sums if mean > 0)
    return max([0, *(round(number) for number in numbers if math.isfinite(number))])


def _numbers(rows: Sequence[Metric]) -> dict[str, float]:
    """Finite sums over the subtasks, or values of a TaskManager."""
    values = {row["id"]: as_number(row.get("sum", row.get("value"))) for row in rows}
    largest = next((row.get("max") for row in rows if row["id"] == BACK_PRESSURED_MS), None)
    values[MAX_BACK_PRESSURED_MS] = as_number(largest)
    return {name: value for name, value in values.items() if math.isfinite(value)}
