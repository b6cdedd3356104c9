"""The interruption of a moved job, as its sources show it: predicted and measured.

It lasts from the last tuple before the savepoint to the first second at 90 % of the rate after:

    stop     the savepoint waits for queued tuples, as a checkpoint does: as long as the last one,
             or until the queues are drained
    submit   the main method runs, and the JobManager begins the new job
    start    slots, classes, restored state: as long as the previous start of the job
    warm up  the sources run already, while Java loads and compiles the code of the job again

Flink does not report the warm-up. It takes CPU time, so it is longest on the slowest TaskManagers,
and on *cold* ones, which have never run the job. The prediction is an interval.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Any, NamedTuple
from urllib.parse import quote

from streamplace.display.report import duration
from streamplace.flink.measure.sampling import sent_by
from streamplace.flink.move.savepoints import latest
from streamplace.flink.rest.answers import Job
from streamplace.flink.rest.client import RUNNING, FlinkError, Rest, job_path
from streamplace.flink.rest.plan import plan_of, read_plan, sources_of

INPUT = "Shuffle.Netty.Input.Buffers.inputQueueSize"
OUTPUT = "Shuffle.Netty.Output.Buffers.outputQueueSize"
"""Bytes in the queues before and behind a subtask."""
READ = "numBytesInPerSecond"
LAUNCH_SECONDS = 1.0
"""Time for a submission, 0.5 to 3 s depending on its classes, and minimum for the start of a job
(measured)."""
COLD_CPU, WARM_CPU = (1.1, 2.8, 10.0), (0.0, 0.8, 3.7)
"""Minimum, usual and maximum core seconds to warm up a cold and a warm TaskManager.

Measured in 53 first and 48 later moves of jobs (docs/assets/against-flink.jsonl), as interruptions
less two seconds: half of the first moves are within a factor of 1.4 of the usual value, and half of
the later ones within 1.6; one in ten later ones exceeded the maximum. On a slower computer
(against-flink-again.jsonl), half of fifteen first moves were within a factor of 1.9, and one of
them exceeded the maximum.
"""
LATER_RANGE = (0.1, 0.55, 2.4)
"""Minimum, usual and maximum interruption by a later move of a job, in parts of the one before.

Loaded and compiled code stays. Measured in 51 later moves of 15 jobs in the same file: nine of ten
lie in the range, and half within a factor of 1.5 of the usual value, chosen on the other jobs.
"""
REDEPLOYED_SECONDS, REDEPLOYED_CPU, REDEPLOYED_RANGE = 20.0, 10.0, (0.7, 1.0, 1.8)
"""Usual seconds from the savepoint of a job until it runs, if its whole cluster is started again
(JobManager, main method, TaskManagers), and the core seconds of a TaskManager in addition; minimum,
usual value and maximum, in parts of both.

Measured on Kubernetes (docs/assets/plans-on-pods.jsonl): 79 to 94 on TaskManagers of 0.2 cores, 58
to 69 on 0.3 and 47 to 73 on 0.4; on a computer that was half as fast again, 23 and 26 on one core,
and 53 while it was busy.
"""
RECOVERED_SHARE, MIN_INTERVAL_SECONDS = 0.9, 1.0
"""Share of its rate at which a job counts as recovered, and minimum time between two readings."""
Sent = tuple[float, float]
"""Seconds since all subtasks ran, and tuples sent by the sources since their start."""


class Interruption(NamedTuple):
    """Interval of the interruption of a job by a move, in seconds."""

    low: float
    value: float
    high: float

    def __str__(self) -> str:
        """Format the interval.

        >>> str(Interruption(5.0, 9.0, 20.0))
        '9 s (5 to 20 s)'
        """
        return f"{self.value:.0f} s ({self.low:.0f} to {duration(round(self.high))})"


class Interruptions(NamedTuple):
    """Input of predictions of interruptions by moves."""

    stop: float  # seconds until its savepoint is written
    start: float  # seconds of its previous start
    is_redeployed: bool = False  # whether each move starts its whole cluster again

    def on(
        self, warm: Sequence[float], cold: Sequence[float] = (), last: float | None = None
    ) -> Interruption:
        """Predict the interruption by a move to warm and cold TaskManagers, by their cores.

        If all are warm, the start may be quicker than the previous one, which loaded classes; the
        interruption by the ``last`` move of the job is then the better predictor.

        >>> str(Interruptions(1.0, 2.0).on([0.3], [0.1])), str(Interruptions(1.0, 2.0).on([2.0]))
        ('32 s (15 to 1 min 44 s)', '4 s (3 to 8 s)')
        >>> str(Interruptions(1.0, 2.0).on([2.0], last=20.0))
        '11 s (2 to 48 s)'
        >>> str(Interruptions(1.0, 2.0, is_redeployed=True).on([0.5]))
        '41 s (29 to 1 min 13 s)'
        """
        if self.is_redeployed:
            usual = REDEPLOYED_SECONDS + REDEPLOYED_CPU / min([1.0, *warm, *cold])
            return Interruption(*(self.stop + share * usual for share in REDEPLOYED_RANGE))
        if last and not cold:
            minimum = self.stop + LAUNCH_SECONDS
            return Interruption(*(max(minimum, share * last) for share in LATER_RANGE))
        cold_start = LAUNCH_SECONDS + max(LAUNCH_SECONDS, self.start)
        start = cold_start if cold else 2 * LAUNCH_SECONDS
        kinds = [(cpu, cores) for cpu, cores in ((WARM_CPU, warm), (COLD_CPU, cold)) if cores]
        low, value, high = (
            max((cpu[end] / min(1.0, *cores) for cpu, cores in kinds), default=0.0)
            for end in range(3)
        )
        return Interruption(
            self.stop + start + low, self.stop + start + value, self.stop + cold_start + high
        )


def expected_interruptions(rest: Rest, job: str, *, is_redeployed: bool = False) -> Interruptions:
    """Read the input of predictions of interruptions of a running job."""
    stop = max(last_checkpoint_seconds(rest, job), draining_seconds(rest, job))
    return Interruptions(stop, started_seconds(rest, job), is_redeployed)


def interruption_of(rest: Rest, old: str, new: str) -> float | None:
    """Seconds from the savepoint of a job until all subtasks of its successor ran.

    None if Flink does not report them. The command may learn of it much later, so it measures no
    time itself.
    """
    with suppress(FlinkError):
        began = latest(rest, old).get("savepoint", {}).get("trigger_timestamp", 0)
        ended = _all_running_ms(_times(rest, new))
        if 0 < began <= ended:
            return (ended - began) / 1000
    return None


class SentReadings:
    """Reads in the background how many tuples the sources of a job send, while a block runs."""

    def __init__(self, rest: Rest, job: str) -> None:
        self._rest, self._job, self._ends = rest.patient(0.0, lambda _: None), job, Event()
        self._thread = Thread(target=self._read, daemon=True)
        self.readings: list[Sent] = []
        """Empty if Flink reports none."""

    def __enter__(self) -> "SentReadings":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _read(self) -> None:
        """Read until the block ends; skip values that Flink repeats until it fetches new ones."""
        ran, before = 0.0, None
        while not self._ends.wait(MIN_INTERVAL_SECONDS / 2):
            with suppress(FlinkError):
                ran = ran or _all_running_ms(_times(self._rest, self._job))
                document = self._rest.job(self._job)
                sent = _sent(self._rest, self._job, document)
                if ran and sent is not None and before is not None and sent != before:
                    self.readings.append(((document.get("now", 0.0) - ran) / 1000, sent))
                before = sent


def warm_up_seconds(readings: Iterable[Sent], rate: float) -> float:
    """Seconds from the moment when all subtasks ran until the sources had 90 % of their rate.

    They reach it in the last slow interval before the first fast one; intervals are between two
    readings, and last a second or more. Within one, the rate is assumed to rise evenly.

    >>> warm_up_seconds([(1.0, 10.0), (2.0, 60.0), (3.0, 155.0), (4.0, 255.0)], 100.0)
    1.9
    >>> warm_up_seconds([(10.0, 600.0), (20.0, 1600.0)], 100.0), warm_up_seconds([], 100.0)
    (7.2, 0.0)
    """
    began, before, recovered = 0.0, 0.0, 0.0
    for now, sent in readings:
        if now - began < MIN_INTERVAL_SECONDS:
            continue
        lacking = (now - began) - (sent - before) / rate if rate > 0 else 0.0
        if lacking <= (1 - RECOVERED_SHARE) * (now - began):
            break
        recovered = began + min(now - began, 2 * RECOVERED_SHARE * lacking)
        began, before = now, sent
    return recovered


def started_seconds(rest: Rest, job: str) -> float:
    """Seconds from the deployment of the first subtask of a job until all ran; 0 if unknown."""
    with suppress(FlinkError):
        times = _times(rest, job)
        deployed = [row["DEPLOYING"] for row in times if row.get("DEPLOYING")]
        if deployed:
            return max(0.0, _all_running_ms(times) - min(deployed)) / 1000
    return 0.0


def last_checkpoint_seconds(rest: Rest, job: str, *more: str) -> float:
    """Duration of the last checkpoint of a job in seconds; 0 if there is none.

    ``more``: another kind to count if it took longer, such as ``savepoint``.
    """
    rows = latest(rest, job)
    times = (rows.get(kind, {}).get("end_to_end_duration", 0) for kind in ("completed", *more))
    return max(times) / 1000


def _times(rest: Rest, job: str) -> list[Mapping[str, float]]:
    """State → time in ms at which it began, of each subtask of a job."""
    paths = (job_path(job, "vertices", v["id"], "subtasktimes") for v in rest.job(job)["vertices"])
    return [row["timestamps"] for path in paths for row in rest.get(path)["subtasks"]]


def _all_running_ms(times: Iterable[Mapping[str, float]]) -> float:
    """Time at which the last subtask began to run, in ms; 0 if unknown."""
    return max((row.get(RUNNING, 0.0) for row in times), default=0.0)


def _sent(rest: Rest, job: str, document: Job) -> float | None:
    """Tuples that the sources of a job have sent since they began; None if Flink reports none."""
    total = 0.0
    _, tasks, edges = plan_of(document)
    for source in sources_of(tasks, edges):
        sums = _metrics(rest, _path(job, source.id), [sent_by(source.operators[0])])
        if not sums:
            return None
        total += sum(sums.values())
    return total


def _path(job: str, vertex: str) -> str:
    return job_path(job, "vertices", vertex, "subtasks", "metrics")


def _metrics(rest: Rest, path: str, names: Collection[str], how: str = "sum") -> dict[str, float]:
    """Metrics of a task by name, combined over its subtasks; values must be numbers."""
    if not names:
        return {}
    query = ",".join(quote(name, safe="") for name in names)
    rows: list[dict[str, Any]] = rest.get(f"{path}?agg={how}&get={query}")
    return {row["id"]: row[how] for row in rows if isinstance(row.get(how), int | float)}


def draining_seconds(rest: Rest, job: str) -> float:
    """Seconds until the queued tuples are processed, along the slowest path; 0 if unknown.

    All subtasks of a task count as the one with the fullest queues, for which the others wait. The
    queues of p senders are divided among q readers, so each reader reads p/q of one queue. A queue
    may be for several outputs; it is divided among them by the bytes that their readers read.
    """
    with suppress(FlinkError):
        _, tasks, edges = read_plan(rest, job)
        waiting: dict[str, float] = {}
        queues = {task.id: _queue_metrics(rest, job, task.id) for task in tasks}
        number = {task.id: task.parallelism for task in tasks}
        read = {task: row.get(READ, 0.0) * number[task] for task, row in queues.items()}
        sent_on = {task: sum(read[e.target] for e in edges if e.source == task) for task in number}
        for task in tasks:
            senders = [edge.source for edge in edges if edge.target == task.id]
            sent = sum(
                queues[sender].get(OUTPUT, 0.0) * number[sender] * read[task.id] / sent_on[sender]
                for sender in senders
                if sent_on[sender] > 0
            )
            queued = queues[task.id].get(INPUT, 0.0) + sent / task.parallelism
            rate = queues[task.id].get(READ, 0.0)
            seconds = queued / rate if rate > 0 else 0.0
            # Flink lists tasks after their inputs.
            before = max((waiting.get(sender, 0.0) for sender in senders), default=0.0)
            waiting[task.id] = before + seconds
        return max(waiting.values(), default=0.0)
    return 0.0


def _queue_metrics(rest: Rest, job: str, vertex: str) -> dict[str, float]:
    """Largest bytes in queues, and mean bytes/s read, of the subtasks of a task."""
    path = _path(job, vertex)
    names = {row["id"] for row in rest.get(path)}
    queues = [name for name in (INPUT, OUTPUT) if name in names]
    return _metrics(rest, path, queues, "max") | _metrics(rest, path, {READ} & names, "avg")
