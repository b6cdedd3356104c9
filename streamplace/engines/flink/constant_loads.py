"""CPU that an operator takes per second, whatever the rate: of committers, timers and triggers.

The CPU of a task is

    cores = constant + seconds per tuple · tuples/s

Where the rate changed between windows in which the task was watched, both are fitted. Where it did
not, the two cannot be told apart, and these rules decide:

- A task that read nothing takes all of its CPU whatever the rate.
- So does one that read less than `FEW` of the tuples that its senders count. They do not count what
  they send: the writer of a two-phase sink counts the records that it writes elsewhere, and sends
  its committer one message per checkpoint.
- Else all of its CPU is per tuple.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

FEW = 0.01
"""Part of what was sent below which a task is taken to work per checkpoint or per time."""
LEAST_WINDOWS = 4
LEAST_CHANGE = 0.2
"""Part of its mean by which a rate must vary for the two parts to be told apart."""
CLEAR = 3.0
"""Standard errors that a fitted constant part must be above zero."""
LEAST_PART = 0.1
"""Part of the CPU of a task that a constant part must be, to be worth telling."""


class LoadWindow(NamedTuple):
    """What the tasks of a job did in one window of time, by their ids.

    Attributes
    ----------
    tuples
        Tuples/s that each task worked on.
    cores
        Core seconds per second of each task.
    compilers
        Part of the CPU of the TaskManagers on this machine that compilers took; None where none
        of them is there.
    periodic
        Tasks that worked per checkpoint or per time, not per tuple.
    """

    seconds: float
    tuples: Mapping[str, float]
    cores: Mapping[str, float]
    compilers: float | None = None
    periodic: frozenset[str] = frozenset()


def constant_cores(
    task: str, cores: float, read: float, sent: float, windows: Sequence[LoadWindow]
) -> float:
    """Core seconds per second of a task that do not depend on the rate, at most ``cores``.

    Parameters
    ----------
    cores
        What the task took.
    read
        Tuples/s that it worked on.
    sent
        Tuples/s that its senders count; 0 for a source.

    Examples
    --------
    >>> constant_cores("committer", 0.2, 0.4, 4000.0, []), constant_cores("map", 0.2, 9.0, 9.0, [])
    (0.2, 0.0)
    """
    if read <= 0 or read < FEW * sent:
        return cores
    seen = [w for w in windows if task in w.tuples and task in w.cores]
    if len(seen) < LEAST_WINDOWS:
        return 0.0
    return min(cores, _intercept([w.tuples[task] for w in seen], [w.cores[task] for w in seen]))


def _intercept(tuples: Sequence[float], cores: Sequence[float]) -> float:
    """CPU at a rate of zero, by least squares; 0 where it is not clearly above."""
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
