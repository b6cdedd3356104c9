"""CPU of an operator that does not depend on its rate: of its threads, timers and triggers.

- All CPU of a task that read nothing is constant.
- So is that of a task that read less than `FEW` of the tuples that its senders count, if that is
  no side output or other rare branch (`counted_for`). Senders may count tuples that they do not
  send: the writer of a two-phase sink counts the records that it writes elsewhere, and sends its
  committer one message per checkpoint.
- Otherwise, the rates and the CPU of its subtasks are fitted (`fit.task_cost`).
- Without the CPU of its threads, all of it is per tuple.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from streamplace.engines.flink.measure.fit import Observation, task_cost
from streamplace.engines.flink.rest.plan import Edge, FlinkTask

FEW = 0.01
"""Below this part of the sent tuples, a task is assumed to work per checkpoint or per time."""
WRITER, COMMITTER = ": Writer", ": Committer"
"""Ends of the names that Flink gives the two operators of a two-phase sink."""
GLOBAL_COMMITTER = ": Global Committer"
"""End of the name of one that some sinks have behind these."""


def constant_cores(
    cores: float, read: float, sent: float, subtasks: Sequence[Observation], parallelism: int
) -> float:
    """Core seconds per second of a task that do not depend on the rate, at most ``cores``.

    ``cores``: CPU of the task.
    ``read``: tuples/s that it processed.
    ``sent``: tuples/s that its senders count for it; 0 if none do (see `counted_for`).
    ``subtasks``: rates and CPU of its subtasks, in any number of windows.

    >>> constant_cores(0.2, 0.4, 4000.0, [], 1), constant_cores(0.2, 9.0, 9.0, [], 1)
    (0.2, 0.0)
    """
    if read <= 0 or read < FEW * sent:
        return cores
    if not subtasks:
        return 0.0
    cost = task_cost(subtasks)
    fixed = parallelism * cost.fixed
    return cores * fixed / (fixed + cost.per_tuple * read)


def counted_for(
    tasks: Sequence[FlinkTask], edges: Sequence[Edge], counts: Mapping[str, float]
) -> dict[str, float]:
    """Task → tuples/s that its senders count for it alone, for tasks of which this is known.

    A sender with several outputs counts all of them together, and one with a chained sink what that
    writes, so their counts say nothing of a rare side output. The committer of a two-phase sink is
    known by its name; other senders must have one output, and no sink without committer.

    ``counts``: tuples/s that each task counts as sent.
    """
    by_id = {task.id: task for task in tasks}
    outputs = Counter(edge.source for edge in edges)
    answer: dict[str, float] = {}
    for task in tasks:
        inputs = [edge for edge in edges if edge.target == task.id]
        if task.operators[0].endswith((COMMITTER, GLOBAL_COMMITTER)) or all(
            outputs[edge.source] == 1 and not writes_elsewhere(by_id[edge.source], tasks)
            for edge in inputs
        ):
            answer[task.id] = sum(counts.get(edge.source, 0.0) * edge.copies for edge in inputs)
    return answer


def writes_elsewhere(sender: FlinkTask, tasks: Sequence[FlinkTask]) -> bool:
    """Whether a task contains a sink that sends nothing to a committer in another task."""
    others = {name for task in tasks if task.id != sender.id for name in task.operators}
    sinks = (name.removesuffix(WRITER) for name in sender.operators if name.endswith(WRITER))
    return any(sink + COMMITTER not in others for sink in sinks)
