"""The pause of a job that is moved, in seconds: expected and measured.

Sources stop at the beginning of a savepoint that ends the job. Its barriers reach a task behind
everything that is queued before it, so under back-pressure the savepoint waits until all queues
are processed. The job works meanwhile, but reads nothing new.

Its start is expected to take as long as its last one did, from the deployment of its subtasks until
they ran: with much state, or on machines with little CPU, that is many times the usual.
"""

from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

from streamplace.engines.flink.move.state import last_checkpoint_seconds, latest_checkpoints
from streamplace.engines.flink.rest.answers import Job, Metric
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.plan import JobPlan, read_plan
from streamplace.engines.flink.rest.tasks import restored_seconds, started_seconds

INPUT = "Shuffle.Netty.Input.Buffers.inputQueueSize"
OUTPUT = "Shuffle.Netty.Output.Buffers.outputQueueSize"
"""Bytes in the queues before and behind a subtask."""
READ = "numBytesInPerSecond"
START_SECONDS = 1.0
"""Seconds from the savepoint of a small job until it runs again (docs/how-to/flink-moves.md).

It is the least that is expected of any job.
"""


def expected_pause(rest: Rest, job: str, plan: JobPlan | None = None) -> float:
    """Seconds for which a move is expected to stop a job, whose plan may have been read already."""
    stopping = max(last_checkpoint_seconds(rest, job), draining_seconds(rest, job, plan))
    return max(START_SECONDS, started_seconds(rest, job)) + stopping


def note_slow_start(
    rest: Rest, job: str, document: Job, seconds: float, tell: Callable[[str], None]
) -> None:
    """Note that a job may restore its state for longer than a start may take.

    It is moved with state of about that size, but on other devices; so twice the time is assumed.
    """
    took = restored_seconds(rest, job, document)
    if 2 * took > seconds:
        tell(
            f"note: job {job} initialized for {took:.0f} s when it was started, and may take twice "
            f"as long after the move; give --timeout {2 * took:.0f} or more"
        )


def pause_of(rest: Rest, old: str, new: str) -> float | None:
    """Seconds from the savepoint of a job to the moment when all of its successor ran.

    None if Flink does not report them. The answers of its REST interface may arrive much later, so
    the time that the command waits is no measure of the pause.
    """
    with suppress(FlinkError):
        began, ended = _saved(rest, old), _ran(rest, new)
        if began and ended >= began:
            return (ended - began) / 1000
    return None


def _saved(rest: Rest, job: str) -> float:
    """Time at which the sources of a job were stopped, in ms; 0 if unknown."""
    row = latest_checkpoints(rest, job).get("savepoint")
    return 0.0 if row is None else float(row.get("trigger_timestamp", 0))


def _ran(rest: Rest, job: str) -> float:
    """Time at which the last subtask of a job began to run, in ms; 0 if unknown."""
    root = f"/jobs/{quote(job, safe='')}/vertices"
    answers = [
        rest.get(f"{root}/{quote(vertex['id'], safe='')}/subtasktimes")["subtasks"]
        for vertex in rest.job(job)["vertices"]
    ]
    moments = [row["timestamps"].get("RUNNING", 0.0) for rows in answers for row in rows]
    return max(moments, default=0.0)


def draining_seconds(rest: Rest, job: str, plan: JobPlan | None = None) -> float:
    """Seconds until what is queued now is processed, along the slowest path; 0 if unknown.

    Queues between two tasks hold what the fullest subtask has; other subtasks wait for it. What p
    senders have is divided among q readers, so each of these reads p/q of one sender's queue. Flink
    does not tell which of its outputs a queue is for; it is divided as its readers read bytes.
    """
    with suppress(FlinkError):
        _, tasks, edges = plan or read_plan(rest, job)
        waiting: dict[str, float] = {}
        seen = {task.id: _largest(rest, job, task.id) for task in tasks}
        number = {task.id: task.parallelism for task in tasks}
        whole = {task: one.get(READ, 0.0) * number[task] for task, one in seen.items()}
        left = {task: sum(whole[e.target] for e in edges if e.source == task) for task in number}
        for task in tasks:
            senders = [edge.source for edge in edges if edge.target == task.id]
            sent = sum(
                seen[sender].get(OUTPUT, 0.0) * number[sender] * whole[task.id] / left[sender]
                for sender in senders
                if left[sender] > 0
            )
            queued = seen[task.id].get(INPUT, 0.0) + sent / task.parallelism
            read = seen[task.id].get(READ, 0.0)
            own = queued / read if read > 0 else 0.0
            waiting[task.id] = own + max((waiting[one] for one in senders), default=0.0)
        return max(waiting.values(), default=0.0)
    return 0.0


def _largest(rest: Rest, job: str, vertex: str) -> dict[str, float]:
    """Largest bytes in queues, and mean bytes/s read, of the subtasks of a task."""
    root = f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex, safe='')}/subtasks/metrics"
    known = {row["id"] for row in rest.get(root)}
    offered = [name for name in (INPUT, OUTPUT, READ) if name in known]
    if not offered:
        return {}
    query = ",".join(quote(name, safe="") for name in offered)
    rows: list[Metric] = rest.get(f"{root}?agg=max,avg&get={query}")
    found = {row["id"]: row.get("avg" if row["id"] == READ else "max", 0.0) for row in rows}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}
