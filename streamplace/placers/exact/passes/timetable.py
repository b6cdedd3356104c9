"""CP-SAT model of the shortest pass: device and start of every task.

One Boolean x per unit and device that its windows allow, one start per task, an optional interval
per task and device; at most as many intervals of a device overlap as it has cores. One Boolean y
per stream and compatible pair of devices selects the link, and

    start(v) ≥ start(u) + Σ_b w(u, b) x(u, b) + Σ_ab c(a, b) y(a, b)        for every stream (u, v).

Times are rounded down.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from streamsim.passes.sending import sending_times

from streamplace.model.arrays import Ints
from streamplace.placers.exact.passes.windows import Windows
from streamplace.placers.exact.solver import SCALE, PlacementModel
from streamplace.scheduling.insertion import ListSchedule
from streamplace.scheduling.tasks import Tasks

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from streamplace.placers.exact.solver import Choices

CLEARANCE = 1e-7
MOST_BOOLEANS = 150_000


class TimetableModel(PlacementModel):
    """The CP-SAT model of all schedules with a makespan below a cut."""

    def __init__(self, tasks: Tasks, windows: Windows, classes: Ints, cut: float) -> None:
        super().__init__(cut, CLEARANCE)
        self._tasks, self._windows = tasks, windows
        floor = min(self._whole(windows.path), self.ceiling)
        self.makespan = self.cp.new_int_var(floor, self.ceiling, "makespan")
        self.x = [self._unit_choices(u) for u in range(len(tasks.member_start) - 1)]
        self.start = [self._start_of(v) for v in range(tasks.n_tasks)]
        self._run_one_by_one()
        for e in range(len(tasks.source)):
            self._send(e)
        self.keep_apart(_rival_pairs(tasks))
        self.limit_memory(tasks.memory, tasks.room)
        self.open_in_order(classes, self.x)
        self.cp.minimize(self.makespan)

    def timetable(self, value_of: "Callable[[cp_model.IntVar], int]") -> ListSchedule:
        """Schedule of a solution."""
        place = self.devices(value_of)[self._tasks.unit]
        start = np.array([value_of(s) for s in self.start])
        work = [self._whole(self._tasks.work[v, a]) for v, a in enumerate(place)]
        return ListSchedule(place, start / self.scale, (start + np.array(work)) / self.scale)

    def _whole(self, time: float) -> int:
        return int(min(time * self.scale, 4 * SCALE))

    def _of(self, v: int) -> "Choices":
        return self.x[self._tasks.unit[v]]

    def _unit_choices(self, u: int) -> "Choices":
        members = self._tasks.members[self._tasks.member_start[u] : self._tasks.member_start[u + 1]]
        open_to = np.isfinite(self._windows.work[members]).all(axis=0)
        return self.choices(u, np.flatnonzero(open_to).tolist())

    def _start_of(self, v: int) -> "cp_model.IntVar":
        """Create the start of a task, within the window of its device."""
        head, work, tail = (part[v] for part in self._windows)
        row = self._of(v)
        first = min(self._whole(head[a]) for a in row)
        start = self.cp.new_int_var(first, self.ceiling, f"s{v}")
        self.cp.add(start >= sum(self._whole(head[a]) * x for a, x in row.items()))
        after = sum((self._whole(work[a]) + self._whole(tail[a])) * x for a, x in row.items())
        self.cp.add(start + after <= self.makespan)
        return start

    def _run_one_by_one(self) -> None:
        """Limit the number of tasks that a device runs at once to its cores."""
        tasks = self._tasks
        on: dict[int, list[cp_model.IntervalVar]] = {}
        for v in range(tasks.n_tasks):
            for a, x in self._of(v).items():
                work = self._whole(tasks.work[v, a])
                if work:
                    interval = self.cp.new_optional_fixed_size_interval_var(
                        self.start[v], work, x, f"i{v},{a}"
                    )
                    on.setdefault(a, []).append(interval)
        for a, intervals in on.items():
            cores = int(tasks.core_start[a + 1] - tasks.core_start[a])
            if cores == 1:
                self.cp.add_no_overlap(intervals)
            elif len(intervals) > cores:
                self.cp.add_cumulative(intervals, [1] * len(intervals), cores)

    def _send(self, e: int) -> None:
        """Let the receiver of a stream start after its arrival."""
        tasks, windows = self._tasks, self._windows
        u, v = int(tasks.source[e]), int(tasks.target[e])
        senders, receivers = self._of(u), self._of(v)
        worked = sum(self._whole(tasks.work[u, a]) * x for a, x in senders.items())
        if tasks.unit[u] == tasks.unit[v]:
            self.cp.add(self.start[v] >= self.start[u] + worked)
            return
        y: dict[tuple[int, int], cp_model.IntVar] = {}
        sending = []
        for a in senders:
            for b in receivers:
                seconds = self._transfer(e, a, b)
                before = windows.head[u, a] + windows.work[u, a] + seconds
                if before + windows.work[v, b] + windows.tail[v, b] > self.unscaled(self.ceiling):
                    continue
                y[a, b] = self.cp.new_bool_var(f"y{e},{a},{b}")
                if self._whole(seconds):
                    sending.append(self._whole(seconds) * y[a, b])
        for a, x in senders.items():
            self.cp.add(sum(y[a, b] for b in receivers if (a, b) in y) == x)
        for b, x in receivers.items():
            self.cp.add(sum(y[a, b] for a in senders if (a, b) in y) == x)
        self.cp.add(self.start[v] >= self.start[u] + worked + sum(sending))

    def _transfer(self, e: int, a: int, b: int) -> float:
        tasks = self._tasks
        if a == b:
            return 0.0
        latency, wire = tasks.latency[a, b], tasks.wire[a, b]
        return float(sending_times(latency, tasks.size[e], wire, tasks.fixed_s[e]))


def _rival_pairs(tasks: Tasks) -> Iterator[tuple[int, int]]:
    """Yield every pair of units that must not share a device, once."""
    for u in range(len(tasks.member_start) - 1):
        for w in tasks.rivals[tasks.rival_start[u] : tasks.rival_start[u + 1]].tolist():
            if u < w:
                yield u, w


def n_booleans(tasks: Tasks, windows: Windows) -> int:
    """Upper bound of the model's Booleans; above `MOST_BOOLEANS` solving takes too long."""
    left = np.isfinite(windows.work).sum(axis=1)
    return int((left[tasks.source] * left[tasks.target]).sum() + left.sum())
