"""Sample a running job: rates of the metrics of its vertices between two moments."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote

from streamplace.engines.flink.rest.answers import Metric
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.settings import shown_settings
from streamplace.model.messages import shown

POLL_SECONDS = 0.25
PATIENCE_SECONDS = 30.0
"""Maximum wait for metrics that change rarely; one that has not changed by then is idle."""
SILENCE_SECONDS = 10.0
"""If Flink reports no metric of a job for this time, it never will."""
LEAST_LOOKS = 25
"""Answers without metrics that a Flink must have given by then: a busy one answers slowly."""
YOUNG_MS = 60_000
"""Maximum age of a job without metrics, which Flink fetches every ten seconds."""
FETCH_INTERVAL, FETCH_TIMEOUT = "metrics.fetcher.update-interval", "web.timeout"
LATE = 0.05
"""Part of a window that may be missing because its ends were noticed late."""
RISING = ("numRecordsIn", "numRecordsOut", "numBytesIn")
"""Counters that fall only if a subtask begins again or ends.

Kafka's sink lets its bytes fall whenever a transaction gets another producer.
"""
COUNTS = (*RISING, "numBytesOut")
BUSY, BACK_PRESSURED = "accumulateBusyTimeMs", "accumulateBackPressuredTimeMs"
IDLE_TIME = "accumulateIdleTimeMs"
MOST_BACK_PRESSURED = f"{BACK_PRESSURED}.max"
"""Largest back-pressured time of a subtask of a vertex, which Flink tells beside the sum."""
_METRICS = (*COUNTS, BUSY, BACK_PRESSURED, IDLE_TIME)
PENDING = ".pendingRecords"
"""Suffix of the metric for unread records of a source; few connectors report it."""
_PARTITION = re.compile(r"\.KafkaSourceReader\.topic\.(.+)\.partition\.(\d+)\.currentOffset")
"""End of the name of a metric that Kafka's source has for each partition that it reads."""
Look = tuple[float, Mapping[str, float]]
"""Time in s, and values of counters at that time."""
LONGEST_OPERATOR = 80
"""Length to which Flink cuts the names of operators in the names of their metrics."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Metrics of all subtasks of a vertex together."""

    # Change of each metric per second; times are in ms, between 0 and 1000 × the parallelism.
    # Missing metrics and NaN are left out.
    rates: Mapping[str, float]
    seconds: float  # length of the measurement
    totals: Mapping[str, float] = field(default_factory=dict)  # value of each metric at the end
    looks: Sequence[Look] = ()  # times at which the metrics had just changed, with their values
    # Maximum error of such a time in seconds: the interval between two requests.
    unsure: float = 0.0
    reporting: int = 0  # number of subtasks whose metrics Flink tells; 0 if that is unknown
    partitions: int = 0  # partitions of Kafka that it reads; 0 if it reads others

    @property
    def records_in(self) -> float:
        """Tuples/s that it read."""
        return self.rates.get("numRecordsIn", 0.0)

    @property
    def records_out(self) -> float:
        """Tuples/s that it sent to other vertices; a tuple to several of them counts once."""
        return self.rates.get("numRecordsOut", 0.0)

    @property
    def busy(self) -> float | None:
        """Busy seconds of its threads per second; None if Flink does not report them."""
        return self.rates[BUSY] / 1000 if BUSY in self.rates else None

    @property
    def is_silent(self) -> bool:
        """Whether it is a source in the old interface that has sent nothing, if Flink reads it.

        Nothing of it changes then, because Flink does not report its times.
        """
        return self.seconds == 0 and self.busy is None

    @property
    def back_pressured(self) -> float:
        """Back-pressured seconds of its threads per second."""
        return self.rates.get(BACK_PRESSURED, 0.0) / 1000

    @property
    def most_back_pressured(self) -> float:
        """Share of the time for which one of its subtasks was back-pressured at least.

        The times of subtasks are counted since their start, so while that of another subtask is
        larger, nothing is known of a subtask; 0 also if Flink reports only sums.
        """
        return self.rates.get(MOST_BACK_PRESSURED, 0.0) / 1000

    @property
    def idle(self) -> float:
        """Seconds in which its threads waited for input, per second; 0 if not reported."""
        return self.rates.get(IDLE_TIME, 0.0) / 1000

    def halves(self, metric: str) -> tuple[float, float] | None:
        """Change of a metric per second in the first half of the time and in the second.

        None if the metric was not read at three times.
        """
        seen = self._values(metric)
        if len(seen) < 3:
            return None
        (start, low), *inner, (end, high) = seen
        middle, half = min(inner, key=lambda look: abs(look[0] - (start + end) / 2))
        return (half - low) / (middle - start), (high - half) / (end - middle)

    def lows(self, metric: str) -> tuple[float, float] | None:
        """Least value of a metric in the first half of the time and in the second.

        None if the metric was not read at three times.
        """
        seen = self._values(metric)
        if len(seen) < 3:
            return None
        middle = (seen[0][0] + seen[-1][0]) / 2
        first = min(value for now, value in seen if now <= middle)
        return first, min(value for now, value in seen if now > middle)

    def growth(self, metric: str) -> float | None:
        """Change of a metric per second, possibly negative; None if it was not read twice."""
        seen = self._values(metric)
        if len(seen) < 2:
            return None
        (start, low), (end, high) = seen[0], seen[-1]
        return (high - low) / (end - start)

    def _values(self, metric: str) -> list[tuple[float, float]]:
        """Times at which a metric was read, with its values."""
        return [(now, counters[metric]) for now, counters in self.looks if metric in counters]


IDLE = Activity(dict.fromkeys((*COUNTS, BUSY, BACK_PRESSURED), 0.0), 0.0)
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


def _prefix(operator: str) -> str:
    return re.sub("[ .:,]", "_", operator[:LONGEST_OPERATOR])


@dataclass(slots=True)
class _Watch:
    """Records the counters of a vertex or a TaskManager at times when they have just changed."""

    path: str
    wanted: tuple[str, ...]
    offered: frozenset[str] = frozenset()
    previous: dict[str, float] | None = None
    changed: float | None = None
    looks: list[Look] = field(default_factory=list)
    asked: float | None = None
    unsure: float = 0.0
    reporting: int = 0
    is_used: bool = False  # whether a window has been measured by its recorded times

    def see(self, now: float, counters: dict[str, float], reporting: int = 0) -> None:
        """Add an answer; the one after a change contains the new values of all TaskManagers.

        Flink asks each TaskManager separately. If one answers for the first time, what it has
        counted since its start would seem to be new, so earlier times are forgotten.
        """
        if reporting > self.reporting:
            self.reporting, self.previous, self.changed = reporting, None, None
            self.looks.clear()
        if self.asked is not None:
            self.unsure = max(self.unsure, now - self.asked)
        self.asked = now
        if self.changed is not None:
            self.looks.append((self.changed, counters))
            self.changed = None
        elif self.previous is not None and counters != self.previous:
            self.changed = now
        self.previous = counters

    def has_fallen(self, counters: Mapping[str, float], reporting: int) -> bool:
        """Whether a counter has restarted from 0, or that of a subtask is missing."""
        before = self.previous or {}
        is_less = 0 < reporting < self.reporting
        return is_less or any(
            counters.get(name, math.inf) < before.get(name, 0.0) for name in RISING
        )

    @property
    def partitions(self) -> int:
        """Partitions of Kafka of which there are metrics."""
        return len({match.groups() for name in self.offered if (match := _PARTITION.search(name))})

    def span(self, since: int) -> float:
        """Seconds since a recorded time; 0 if there is none."""
        return self.looks[-1][0] - self.looks[since][0] if self.looks[since:] else 0.0

    def activity(self, since: int, until: int) -> Activity:
        """Rates between two recorded times; 0 if nothing changed meanwhile."""
        looks, told = self.looks[since : until + 1], (self.reporting, self.partitions)
        if len(looks) < 2:
            totals = self.previous or {}
            return Activity(dict.fromkeys(totals, 0.0), 0.0, totals, (), 0.0, *told)
        (start, before), (end, after) = looks[0], looks[-1]
        metrics = before.keys() & after.keys()
        rates = {name: max(0.0, (after[name] - before[name]) / (end - start)) for name in metrics}
        return Activity(rates, end - start, after, tuple(looks), self.unsure, *told)


def sample(
    rest: Rest,
    job: str,
    vertices: Sequence[str],
    seconds: float,
    further: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Activity]:
    """Activity of the vertices, each measured for at least ``seconds``.

    ``further``: vertex → additional metrics to read.
    """
    sampler = Sampler(rest, job, vertices, further)
    sampler.watch(seconds)
    return sampler.between(0, 1)[0]


class Sampler:
    """Measures vertices and TaskManagers in adjacent windows.

    Flink answers with the values that it last fetched from the TaskManagers. It fetches them on
    request, at most every ten seconds (``metrics.fetcher.update-interval``). So rates are computed
    between two times at which counters changed, because both answers are then equally old. A window
    begins with the last such time of the previous window.

    ``further``: vertex → additional metrics to read.
    ``managers``: TaskManager → metrics to read.
    """

    def __init__(
        self,
        rest: Rest,
        job: str,
        vertices: Sequence[str],
        further: Mapping[str, Sequence[str]] | None = None,
        managers: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        more = further or {}
        root = f"/jobs/{quote(job, safe='')}/vertices"
        self._rest, self._job = rest, job
        self._tasks = {
            v: _Watch(
                f"{root}/{quote(v, safe='')}/subtasks/metrics?agg=sum,max,avg&",
                (*_METRICS, *more.get(v, ())),
            )
            for v in vertices
        }
        self._processes = {
            m: _Watch(f"/taskmanagers/{quote(m, safe='')}/metrics?", tuple(names))
            for m, names in (managers or {}).items()
        }
        self._watches = [*self._tasks.values(), *self._processes.values()]
        self._marks = [[0] * len(self._watches)]

    def watch(self, seconds: float) -> None:
        """Measure one more window of at least ``seconds`` for each vertex."""
        began, looks = time.monotonic(), 0
        deadline = began + seconds + PATIENCE_SECONDS
        while time.monotonic() < deadline and self._is_short(seconds):
            age = self._rest.running_job(self._job).get("duration", YOUNG_MS)
            for watch in self._watches:
                if time.monotonic() < deadline:
                    _look(self._rest, self._job, watch)
            looks += 1
            is_silent = all(watch.previous is None for watch in self._tasks.values())
            is_silent = is_silent and looks >= LEAST_LOOKS
            if is_silent and age >= YOUNG_MS and time.monotonic() >= began + SILENCE_SECONDS:
                raise FlinkError(_why_silent(self._rest, self._job))
            time.sleep(POLL_SECONDS)
        for watch in self._watches:
            watch.is_used = bool(watch.looks)
        self._marks.append([max(0, len(watch.looks) - 1) for watch in self._watches])

    def between(self, first: int, last: int) -> tuple[dict[str, Activity], dict[str, Activity]]:
        """Activity of vertices and of TaskManagers from the end of one window to that of another.

        Windows are numbered from 1; 0 is the beginning.
        """
        seen = iter(
            watch.activity(since, until)
            for watch, since, until in zip(
                self._watches, self._marks[first], self._marks[last], strict=True
            )
        )
        return (
            {vertex: next(seen) for vertex in self._tasks},
            {manager: next(seen) for manager in self._processes},
        )

    def _is_short(self, seconds: float) -> bool:
        """Whether a vertex or TaskManager needs more time; changes are noticed late."""
        begins = zip(self._watches, self._marks[-1], strict=True)
        return any(
            watch.span(since) < seconds - min(watch.unsure, LATE * seconds)
            for watch, since in begins
        )


def restarted(job: str) -> FlinkError:
    """Error of a job of which some subtasks began again, or ended, while it was measured."""
    return FlinkError(
        f"job {shown(job)} was restarted during the measurement, or some of its subtasks ended; "
        "profile it when it runs steadily"
    )


def _why_silent(rest: Rest, job: str) -> str:
    """Reasons for which Flink reports no metrics of a job, according to its configuration.

    Flink fetches the metrics of all TaskManagers together. If one of them is lost meanwhile, Flink
    waits for its answer until ``web.timeout``, and fetches nothing in this time.
    """
    settings = shown_settings(rest) or {}
    told = f"Flink has reported no metrics of job {shown(job)} for {SILENCE_SECONDS:g} s"
    if re.fullmatch(r"0+\s*[a-z]*", settings.get(FETCH_INTERVAL, "").strip()):
        return f"{told}, because {FETCH_INTERVAL} is 0: set it to 10 s"
    return (
        f"{told}, so nothing can be measured; after the loss of a TaskManager it reports none for "
        f"up to {FETCH_TIMEOUT}, which is {settings.get(FETCH_TIMEOUT, '10 min')} here: wait "
        "that long, or set it to 1 min; otherwise check whether the JobManager reaches "
        "metrics.internal.query-service.port of its TaskManagers"
    )


def _look(rest: Rest, job: str, watch: _Watch) -> None:
    """Read the current counters of a watch; ignore an answer without values."""
    needed = [name for name in watch.wanted if not name.endswith(PENDING)]
    if not watch.looks and not watch.offered.issuperset(needed):
        rows = rest.get(watch.path.partition("?")[0])
        watch.offered = frozenset(row["id"] for row in rows)
    offered = [name for name in watch.wanted if name in watch.offered]
    if not offered:
        return
    # if one metric is unknown, Flink returns none at all, so only known ones are requested
    now, query = time.monotonic(), ",".join(quote(name, safe="") for name in offered)
    rows = rest.get(f"{watch.path}get={query}")
    counters, reporting = _numbers(rows), _reporting(rows)
    if watch.has_fallen(counters, reporting):
        raise restarted(job)
    if watch.is_used and reporting > watch.reporting:
        raise FlinkError(
            f"until now, Flink has told no metrics of some subtasks of job {shown(job)}; measure "
            "it again"
        )
    if counters:
        watch.see(now, counters, reporting)


def _reporting(rows: Sequence[Metric]) -> int:
    """Number of subtasks whose metrics were summed up; 0 if that is unknown."""
    numbers = [0]
    for row in rows:
        with suppress(KeyError, ValueError, OverflowError):
            total, mean = float(row["sum"]), float(row["avg"])
            if mean > 0 and math.isfinite(total):
                numbers.append(round(total / mean))
    return max(numbers)


def _numbers(rows: Sequence[Metric]) -> dict[str, float]:
    """Sums over the subtasks, or values of a TaskManager, that are numbers."""
    told = [(row["id"], row.get("sum", row.get("value", math.nan))) for row in rows]
    told += [
        (MOST_BACK_PRESSURED, row["max"])
        for row in rows
        if row["id"] == BACK_PRESSURED and "max" in row
    ]
    numbers = {}
    for name, text in told:
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value):
            numbers[name] = value
    return numbers
