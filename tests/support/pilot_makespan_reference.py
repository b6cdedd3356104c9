"""What the policy that rebuilds schedules sees and prefers, written out in plain Python."""

from math import inf, log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamplace.learn.models.pilot_makespan.features import CompleteSchedule
from streamplace.scheduling.tasks import Tasks, transfer


class ScheduleInProgress:
    """A schedule in the making: lists of what every core has to do."""

    def __init__(self, tasks: Tasks, before: CompleteSchedule) -> None:
        self.tasks, self.before = tasks, before
        self.place: dict[int, int] = {}
        self.start: dict[int, float] = {}
        self.finish: dict[int, float] = {}
        self.busy: dict[int, list[tuple[float, float]]] = {
            c: [] for c in range(int(tasks.core_start[-1]))
        }
        self.home: dict[int, int] = {}

    def into(self, v: int) -> list[int]:
        """Streams into a task."""
        return [e for e, u in enumerate(self.tasks.target) if u == v]

    def out_of(self, v: int) -> list[int]:
        """Streams out of a task."""
        return [e for e, u in enumerate(self.tasks.source) if u == v]

    def open(self, v: int) -> list[int]:
        """Devices on which a task may run."""
        home = self.home.get(int(self.tasks.unit[v]))
        return [
            a
            for a in range(len(self.tasks.latency))
            if self.tasks.work[v, a] < inf and home in (None, a)
        ]

    def ready(self, v: int, a: int) -> float:
        """When the inputs of a task are there."""
        arrivals = [
            self.finish[u] + transfer.py_func(self.tasks, e, self.place[u], a)
            for e in self.into(v)
            for u in [int(self.tasks.source[e])]
        ]
        return max([float(self.tasks.release[v]), *arrivals])

    def begin(self, v: int, a: int) -> tuple[float, int]:
        """Soonest start on a device, between or after what it has to do, and the core."""
        ready, work = self.ready(v, a), float(self.tasks.work[v, a])
        starts = []
        for c in range(self.tasks.core_start[a], self.tasks.core_start[a + 1]):
            begin = ready
            for start, end in sorted(self.busy[c]):
                if begin + work <= start:
                    break
                begin = max(begin, end)
            starts.append((begin, c))
        return min(starts)

    def run(self, v: int, a: int) -> None:
        """Decide about a task."""
        begin, core = self.begin(v, a)
        self.place[v], self.start[v] = a, begin
        self.finish[v] = begin + float(self.tasks.work[v, a])
        self.busy[core].append((begin, self.finish[v]))
        self.home[int(self.tasks.unit[v])] = a


def share(seconds: float, span: float) -> float:
    """Seconds as a share of the span, at most four."""
    return min(4.0, max(-4.0, seconds / span))


def way(tasks: Tasks, v: int, a: int) -> float:
    """Least seconds from the end of a task on a device to the end of the pass."""
    ways = [0.0]
    for e, u in enumerate(tasks.source):
        if u == v:
            w = int(tasks.target[e])
            ways.append(
                min(
                    transfer.py_func(tasks, e, a, b) + tasks.work[w, b] + way(tasks, w, b)
                    for b in range(len(tasks.latency))
                )
            )
    return float(max(ways))


def late(state: ScheduleInProgress, v: int, a: int) -> float:
    """Seconds by which the pass would take longer if all that follows stayed as it was."""
    tasks, before = state.tasks, state.before
    finish = state.begin(v, a)[0] + tasks.work[v, a]
    delays = [finish - before.span]
    for e in state.out_of(v):
        u = int(tasks.target[e])
        there = finish + transfer.py_func(tasks, e, a, before.place[u])
        delays.append(there - before.latest[u])
    return float(max(delays))


def busy(state: ScheduleInProgress, a: int) -> float:
    """When a core of a device has done all that it has."""
    cores = range(state.tasks.core_start[a], state.tasks.core_start[a + 1])
    return min(max((end for _, end in state.busy[c]), default=0.0) for c in cores)


def coming(state: ScheduleInProgress, a: int) -> float:
    """Seconds per core that tasks still to come worked on a device before."""
    tasks, place = state.tasks, state.before.place
    left = [u for u in range(len(place)) if u not in state.place and place[u] == a]
    cores = tasks.core_start[a + 1] - tasks.core_start[a]
    return float(sum(tasks.work[u, a] / cores for u in left))


def homes(state: ScheduleInProgress, v: int, a: int) -> list[float]:
    """Shares of inputs, outputs and partners that are, or were, on a device."""
    tasks, before = state.tasks, state.before

    def at(task: int) -> int:
        return state.place.get(task, int(before.place[task]))

    inputs = [(at(int(tasks.source[e])), e) for e in state.into(v)]
    outputs = [(int(before.place[tasks.target[e]]), e) for e in state.out_of(v)]
    partners = [
        (at(int(tasks.source[other])), other)
        for e in state.out_of(v)
        for other in state.into(int(tasks.target[e]))
        if tasks.source[other] != v
    ]
    shares = []
    for pairs in (inputs, outputs, partners):
        whole = sum(float(tasks.size[e]) for _, e in pairs)
        part = sum(float(tasks.size[e]) for spot, e in pairs if spot == a)
        shares.append(part / whole if whole else 0.0)
    return shares


def measured(
    state: ScheduleInProgress, v: int, t: int
) -> tuple[dict[int, list[float]], list[float]]:
    """Features of every open device, and of the step."""
    tasks, before, span = state.tasks, state.before, state.before.span
    (n, d), spots = tasks.work.shape, state.open(v)
    begin = {a: state.begin(v, a)[0] for a in spots}
    finish = {a: begin[a] + tasks.work[v, a] for a in spots}
    ahead = {a: finish[a] + way(tasks, v, a) for a in spots}
    lates, until = {a: late(state, v, a) for a in spots}, {a: busy(state, a) for a in spots}
    loads = [coming(state, a) for a in range(d)]
    rows = {}
    for a in spots:
        rows[a] = [
            share(finish[a] - min(finish.values()), span),
            share(ahead[a] - min(ahead.values()), span),
            share(begin[a] - state.ready(v, a), span),
            share(state.ready(v, a) - min(state.ready(v, b) for b in spots), span),
            share(tasks.work[v, a] - min(tasks.work[v, b] for b in spots), span),
            share(lates[a], span),
            share(lates[a] - min(lates.values()), span),
            share(until[a] - min(until.values()), span),
            share(loads[a], span),
            float(before.place[v] == a),
            *homes(state, v, a),
            share(way(tasks, v, a), span),
        ]
    step = [
        share(before.latest[v] - min(begin.values()), span),
        t / n,
        log1p(len(state.out_of(v))) / 3,
        log1p(len(state.into(v))) / 3,
        share(float(tasks.work[v].min()), span),
        share(min(way(tasks, v, a) for a in range(d)), span),
        log(n) / 5,
        log(d) / 3,
        len(spots) / d,
        share(sum(loads) / d, span),
    ]
    return rows, step


def preferences(
    tensors: dict[str, NDArray[Any]], rows: dict[int, list[float]], step: list[float]
) -> dict[int, float]:
    """Preference for every open device, by the equations of the network."""
    relu = lambda x: np.maximum(x, 0)  # noqa: E731
    first = {
        a: relu(
            tensors["device.weight"] @ np.array(row)
            + tensors["device.bias"]
            + tensors["step.weight"] @ np.array(step)
        )
        for a, row in rows.items()
    }
    mean = np.mean(list(first.values()), axis=0)
    second = {
        a: relu(tensors["own.weight"] @ h + tensors["own.bias"] + tensors["mean.weight"] @ mean)
        for a, h in first.items()
    }
    return {
        a: float(
            (tensors["out.weight"] @ second[a]).item()
            + (tensors["skip.weight"] @ np.array(rows[a])).item()
        )
        for a in rows
    }
