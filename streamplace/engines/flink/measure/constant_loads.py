"""CPU of an operator that does not depend on its rate: of committers, timers and triggers.

The CPU of a task is

    cores = constant + seconds per tuple · tuples/s

If the rate changed between measured windows, both parts are fitted. If it did not, they cannot be
separated, and these rules decide:

- All CPU of a task that read nothing is constant.
- So is that of a task that read less than `FEW` of the tuples that its senders count, if that is
  no side output or other rare branch (`counted_for`). Senders may count tuples that they do not
  send: the writer of a two-phase sink counts the records that it writes elsewhere, and sends its
  committer one message per checkpoint.
- Otherwise all CPU is per tuple.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from streamplace.engines.flink.measure.job_windows import LoadWindow
from streamplace.engines.flink.rest.plan import Edge, FlinkTask

FEW = 0.01
"""Below this part of the sent tuples, a task is assumed to work per checkpoint or per time."""
WRITER, COMMITTER = ": Writer", ": Committer"
"""Ends of the names that Flink gives the two operators of a two-phase sink."""
GLOBAL_COMMITTER = ": Global Committer"
"""End of the name of one that some sinks have behind these."""
LEAST_WINDOWS = 4
LEAST_CHANGE = 0.2
"""Minimum variation of a rate, relative to its mean, for separating the two parts."""
CLEAR = 3.0
"""Minimum constant part, in standard errors of the fit."""
LEAST_PART = 0.1
"""Minimum constant part that is reported, relative to the CPU of the task."""


def constant_cores(
    task: str, cores: float, read: float, sent: float, windows: Sequence[LoadWindow]
) -> float:
    """Core seconds per second of a task that do not depend on the rate, at most ``cores``.

    ``cores``: CPU of the task.
    ``read``: tuples/s that it processed.
    ``sent``: tuples/s that its senders count for it; 0 if none do (see `counted_for`).

    >>> constant_cores("committer", 0.2, 0.4, 4000.0, []), constant_cores("map", 0.2, 9.0, 9.0, [])
    (0.2, 0.0)
    """
    if read <= 0 or read < FEW * sent:
        return cores
    seen = [w for w in windows if task in w.tuples and task in w.cores]
    if len(seen) < LEAST_WINDOWS:
        return 0.0
    return min(cores, _intercept([w.tuples[task] for w in seen], [w.cores[task] for w in seen]))


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


def _intercept(tuples: Sequence[float], cores: Sequence[float]) -> float:
    """CPU at a rate of zero, by least squares; 0 if it is not clearly positive."""
    x, y = np.array(tuples, np.float64), np.array(cores, np.float64)
    spread = float(((x - x.mean()) ** 2).sum())
    if np.sqrt(spread / len(x)) < LEAST_CHANGE * x.mean() or not y.mean():
        return 0.0
    slope = max(0.0, float(((x - x.mean()) * y).sum()) / spread)
    constant = float(y.mean() - slope * x.mean())
    rest = float(((y - constant - slope * x) ** 2).sum()) / (len(x) - 2)
    error = float(np.sqrt(rest * (1 / len(x) + x.mean() ** 2 / spread)))
    is_clear = constant > CLEAR * error and constant >= LEAST_PART * float(y.mean())
    return constant if is_clear else 0.0
