"""Doubts about a profile: what could not be measured, or only roughly."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from streamplace.engines.flink.cpu.helpers import share_of_others
from streamplace.engines.flink.cpu.task_cpu import RunningSubtask, TaskCpu
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.measure.sending_cost import SendingCost
from streamplace.engines.flink.rest.plan import Edge, FlinkTask
from streamplace.model.messages import listed, shown

MUCH = 0.2
"""Least part of the CPU of operators in threads that name no task that is a doubt."""
UNMEASURED_PYTHON = (
    "ipt of Python operators: without the CPU of their Python processes; to measure it, run the "
    "job with python.execution-mode: thread"
)
"""Doubt about operators that Python processes run."""


def uncounted(
    tasks: Sequence[FlinkTask], edges: Sequence[Edge], activity: Mapping[str, Activity]
) -> Iterator[str]:
    """Doubts about counts that Flink does not report."""
    fed, sending = {edge.target for edge in edges}, {edge.source for edge in edges}
    for task in tasks:
        needed = ["numRecordsIn", "numBytesIn"] if task.id in fed else []
        needed += ["numRecordsOut"] if task.id in sending else []
        if missing := [name for name in needed if name not in activity[task.id].rates]:
            yield f"{task.name}: Flink does not report its {' and '.join(missing)}"


def unreported(
    tasks: Sequence[FlinkTask],
    activity: Mapping[str, Activity],
    subtasks: Iterable[RunningSubtask],
) -> Iterator[str]:
    """Doubts about tasks of which Flink tells the metrics of some subtasks only.

    ``subtasks``: those of the job; Flink may have dropped the metrics of those that have ended.
    """
    ended = Counter(one.vertex for one in subtasks if one.has_ended)
    for task in tasks:
        number, expected = activity[task.id].reporting, task.parallelism - ended[task.id]
        if 0 < number < expected:
            yield (
                f"rate and ipt of {task.name}: wrong, because Flink tells the metrics of only "
                f"{number} of {expected} subtasks; check whether the JobManager reaches "
                "metrics.internal.query-service.port of all TaskManagers"
            )


def doubts_of_cpu(tasks: Sequence[FlinkTask], cpu: Mapping[str, TaskCpu]) -> Iterator[str]:
    """Doubts about CPU that was not measured by thread."""
    return (f"ipt of {task.name}: {cpu[task.id].source}" for task in tasks if cpu[task.id].source)


def doubts_of_threads(kinds: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Doubt about CPU of threads that name no task, if it is much.

    ``kinds``: TaskManager → cores of its threads, by kind of work.
    """
    if (share := share_of_others(kinds)) >= MUCH:
        yield (
            f"ipt of all operators: {share:.0%} of the CPU is of threads that name no task, such "
            "as those of clients, state backends and garbage collection, and is divided in "
            "proportion to what the tasks take"
        )


def doubts_of_sending(cost: SendingCost | None) -> Iterator[str]:
    """Doubt about the cost of remote tuples, if all that exchange any had no CPU left."""
    if cost is not None and cost.is_of_full:
        yield (
            "cost of remote tuples: it was measured while TaskManagers were full, and where they "
            "are not, it may be several times as much per tuple; measure it at a lower rate"
        )


def doubts_of_names(tasks: Sequence[FlinkTask]) -> Iterator[str]:
    """Doubt about operators of SQL that share a name in several tasks."""
    if unsure := [name for task in tasks for name in task.unsure]:
        yield (
            f"{listed(unsure)}: which of the same name is which cannot be told, so a placement may "
            "swap them"
        )


def doubts_of_jobs(unread: Iterable[str]) -> Iterator[str]:
    """Doubts about the CPU of jobs that could not be read while another one was measured."""
    return (
        f"ipt of all operators: job {shown(job)} could not be read, so CPU of it may be counted "
        "for this job"
        for job in sorted(unread)
    )
