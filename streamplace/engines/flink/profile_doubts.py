"""Doubts: sentences on what a profile could not measure."""

from collections.abc import Iterator, Mapping, Sequence

from streamplace.engines.flink.plan import Edge, FlinkTask
from streamplace.engines.flink.sampling import Activity
from streamplace.engines.flink.task_cpu import TaskCpu


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


def doubts_of_cpu(tasks: Sequence[FlinkTask], cpu: Mapping[str, TaskCpu]) -> Iterator[str]:
    """Doubts about CPU that was not measured by thread."""
    return (f"ipt of {task.name}: {cpu[task.id].source}" for task in tasks if cpu[task.id].source)


def doubts_of_names(tasks: Sequence[FlinkTask]) -> Iterator[str]:
    """Doubts about operators with the same name in one chain."""
    return (
        f"{name}: another operator bears its name, and which is which cannot be told, so a "
        "placement may swap the two; to place them apart, give both names of their own"
        for task in tasks
        for name in task.unsure
    )
