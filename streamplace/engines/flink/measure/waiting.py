"""Limits of operators that wait for something other than CPU.

A subtask that sleeps, waits for an answer or a disk, or has as many asynchronous requests under way
as it may have, reads no further tuples meanwhile: Flink counts it as busy, and its thread takes no
CPU. Per second, the threads of a task wait

    waiting = busy - CPU - run delay

seconds for something other than CPU. If that is most of what is left of the busy time without the
run delay, the operator is limited by waiting, and a subtask reads at most

    max_rate = tuples/s / (busy - run delay)

whatever CPU it has, because it is busy for one second per second at most. All quantities are sums
over the subtasks.

A thread that is woken by input is idle for Flink until it gets a core, so a part of the run delay
may not belong to the busy time. Waiting is then longer, and the limit lower, than computed: what is
found is certain.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from typing import NamedTuple

from streamplace.engines.flink.cpu.helpers import GARBAGE, kind_of
from streamplace.engines.flink.cpu.task_cpu import RunningSubtask, TaskCpu
from streamplace.engines.flink.cpu.threads import ThreadLoad
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.model.units import digits

LEAST_PART = 0.5
"""Minimum part of waiting in the busy time without run delay.

Below it, the CPU alone predicts the limit of a subtask within a factor of two.
"""
LEAST_WAITING = 0.1
"""Minimum of waiting in seconds per second and subtask.

Less may be due to locks and page faults, or to counters and threads that are read at different
times.
"""


class ThreadTimes(NamedTuple):
    """Seconds per second of the threads of a task, without their helpers; NaN if unknown."""

    cpu: float
    delay: float  # run delay: they could run, and waited for a core
    paused: float  # maximum for which garbage collection stopped them


class WaitingLimit(NamedTuple):
    """Limit of an operator that waits."""

    rate: float  # tuples/s that a subtask reads at most
    part: float  # part of its busy time in which it waits for something other than CPU

    def __str__(self) -> str:
        return (
            f"it waits {100 * self.part:.0f} % of its busy time for something other than CPU: a "
            f"subtask reads at most {digits(self.rate, 3)} tuples/s"
        )


def thread_times(
    subtasks: Iterable[tuple[RunningSubtask, TaskCpu]], loads: Mapping[str, Sequence[ThreadLoad]]
) -> dict[str, ThreadTimes]:
    """Times of the threads of every task, by vertex.

    Garbage collection stops threads for no longer than the threads that collect run, or wait for a
    core.

    ``subtasks``: subtasks of a job with their CPU.
    ``loads``: TaskManager → loads of its threads.
    """
    pauses = {
        device: sum(one.cores + one.delay for one in own if kind_of(one.name) == GARBAGE)
        for device, own in loads.items()
    }
    times: dict[str, ThreadTimes] = {}
    for one, cpu in subtasks:
        before = times.get(one.vertex, ThreadTimes(0.0, 0.0, 0.0))
        thread = cpu.thread or ThreadLoad(0, one.thread, nan)
        times[one.vertex] = ThreadTimes(
            before.cpu + thread.cores,
            before.delay + thread.delay,
            before.paused + pauses.get(one.device, nan),
        )
    return times


def waiting_limit(task: FlinkTask, seen: Activity, times: ThreadTimes) -> WaitingLimit | None:
    """Limit of a task with inputs; None if waiting does not limit it, as far as is known.

    >>> task = FlinkTask("v1", "look up", "look up", 2, ("look up",))
    >>> seen = Activity({"numRecordsIn": 150.0, "accumulateBusyTimeMs": 1000.0}, 10.0)
    >>> waiting_limit(task, seen, ThreadTimes(cpu=0.1, delay=0.25, paused=0.0))
    WaitingLimit(rate=200.0, part=0.65)
    >>> waiting_limit(task, seen, ThreadTimes(cpu=0.5, delay=0.25, paused=0.0))
    """
    if seen.busy is None or seen.records_in <= 0:
        return None
    able = seen.busy - times.delay
    waiting = able - times.cpu
    least = max(LEAST_PART * able, LEAST_WAITING * task.parallelism)
    if not waiting - times.paused >= least:  # NaN is not, either
        return None
    return WaitingLimit(float(f"{seen.records_in / able:.3g}"), waiting / seen.busy)
