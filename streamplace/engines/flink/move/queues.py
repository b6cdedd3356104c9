"""Seconds for which the queues of a job delay its savepoint.

Sources stop at the beginning of a savepoint that ends the job. Its barriers reach a task behind
everything that is queued before it, so under back-pressure the savepoint waits until all queues
are processed. The job works meanwhile, but reads nothing new.
"""

from contextlib import suppress
from urllib.parse import quote

from streamplace.engines.flink.rest.answer_shapes import Metric
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.plan import JobPlan, read_plan

INPUT = "Shuffle.Netty.Input.Buffers.inputQueueSize"
OUTPUT = "Shuffle.Netty.Output.Buffers.outputQueueSize"
"""Bytes in the queues before and behind a subtask."""
READ = "numBytesInPerSecond"


def draining_seconds(rest: Rest, job: str, plan: JobPlan | None = None) -> float:
    """Seconds until what is queued now is processed, along the slowest path; 0 if unknown.

    Queues between two tasks hold what the fullest subtask has; other subtasks wait for it. What p
    senders have is divided among q readers, so each of these reads p/q of one sender's queue.
    """
    with suppress(FlinkError):
        _, tasks, edges = plan or read_plan(rest, job)
        waiting: dict[str, float] = {}
        seen = {task.id: _largest(rest, job, task.id) for task in tasks}
        outputs = [edge.source for edge in edges]
        number = {task.id: task.parallelism for task in tasks}
        for task in tasks:
            senders = [edge.source for edge in edges if edge.target == task.id]
            sent = sum(
                seen[sender].get(OUTPUT, 0.0) / outputs.count(sender) * number[sender]
                for sender in senders
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
