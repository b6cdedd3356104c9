"""Network memory: how much of it the slots of a placement need at least, by Flink's own rule.

A slot with a resource profile gets network memory for the maximum number of buffers of each task
of its slot sharing group: of every input and every output, so many per channel, and so many more.
Flink adds it to the profile if that requests none, and allocates the slot only where it is free.

Only what is certain is counted. Flink may chain operators of a group anew, so a stream that it
could replace by a chain counts nothing, nor does one whose ends get other numbers of subtasks.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.pin.pinning import Pinning
from streamplace.engines.flink.program.chains import is_line, operators_in
from streamplace.engines.flink.rest.plan import Edge, FlinkTask, JobPlan
from streamplace.engines.flink.rest.settings import BUFFER_SIZE, memory_bytes

MIB = 2**20
_SHUFFLE = "shuffle-service-factory.class"


class Buffers(NamedTuple):
    """Network buffers of a cluster."""

    size: int  # bytes of one
    # Number per channel, and additional number per input or output.
    each: int
    more: int

    def of(self, channels: int) -> int:
        """Bytes of an input or output with a number of channels."""
        return self.size * (channels * self.each + self.more)


def buffers_of(settings: Mapping[str, str]) -> Buffers | None:
    """Network buffers by the configuration of the JobManager; None if they are not known."""
    if _SHUFFLE in settings:
        return None
    size = memory_bytes(settings.get(BUFFER_SIZE, "32kb"))
    numbers = [
        settings.get(f"taskmanager.network.memory.{key}", usual)
        for key, usual in (("buffers-per-channel", "2"), ("floating-buffers-per-gate", "8"))
    ]
    if size is None or not all(re.fullmatch(r"\d{1,9}", number) for number in numbers):
        return None
    return Buffers(int(size), *map(int, numbers))


def network_bytes(
    plan: JobPlan, layout: Layout, answer: Pinning, buffers: Buffers
) -> dict[str, int]:
    """Group → bytes of network memory that each of its slots needs at least.

    ``plan`` is that of the job as it runs now.
    """
    _, tasks, edges = plan
    ends = [*_between(tasks, edges, layout, answer), *_within(tasks, layout, answer)]
    needed: dict[str, int] = defaultdict(int)
    for group, channels in ends:
        needed[group] += buffers.of(channels)
    return dict(needed)


def _between(
    tasks: Iterable[FlinkTask], edges: Iterable[Edge], layout: Layout, answer: Pinning
) -> Iterator[tuple[str, int]]:
    """Group and channels of each end of the streams between tasks."""
    task_of = {task.id: task for task in tasks}
    groups = {
        id_: [answer.operators[name] for name in operators_in(task.name)]
        for id_, task in task_of.items()
        if _keeps_parallelism(task, layout)
    }
    for edge in edges:
        if not groups.keys() >= {edge.source, edge.target}:
            continue
        senders, receivers = groups[edge.source], groups[edge.target]
        if edge.partitioning == "forward" and set(senders) & set(receivers):
            continue
        n, m = task_of[edge.source].parallelism, task_of[edge.target].parallelism
        if len(set(senders)) == 1:  # otherwise, any operator of the chain may send
            yield senders[0], -(-m // n) if edge.is_pointwise else m
        yield receivers[0], -(-n // m) if edge.is_pointwise else n


def _within(
    tasks: Iterable[FlinkTask], layout: Layout, answer: Pinning
) -> Iterator[tuple[str, int]]:
    """Group and channels of each end of the streams between operators that are chained now."""
    for task in tasks:
        names = operators_in(task.name)
        if len(names) != len(task.operators) or not is_line(task.thread_name, task.operators):
            continue
        if _keeps_parallelism(task, layout):
            groups = [answer.operators[name] for name in names]
            for one, other in pairwise(groups):
                if one != other:
                    yield one, 1
                    yield other, 1


def _keeps_parallelism(task: FlinkTask, layout: Layout) -> bool:
    """Whether all operators of a task are placed with the parallelism that they have."""
    names = operators_in(task.name)
    return bool(names) and all(
        name in layout and (name in layout.uncounted or len(layout[name]) == task.parallelism)
        for name in names
    )
