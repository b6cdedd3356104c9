"""HEFT with insertion spelled out in plain loops, for devices of one core.

Of the rules it knows where a task may run.
"""

from dataclasses import dataclass, field

import numpy as np

from streamplace.model import Problem


@dataclass
class Heft:
    """The schedule of a problem, each task in turn on the allowed device where it is done first."""

    problem: Problem
    device: dict[int, int] = field(default_factory=dict)
    start: dict[int, float] = field(default_factory=dict)
    finish: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one, rules = self.problem.one_pass, self.problem.rules
        self.devices = range(self.problem.n_devices)
        work = one.work[:, one.devices["type"]]
        if rules is not None:
            work = np.where(rules.allowed[rules.unit], work, np.inf)
        self.work = work.tolist()
        self.latency = one.links["latency"].tolist()
        self.wire = one.links["seconds_per_byte"].tolist()
        streams = one.streams
        self.besides = (streams["tuples"] * (one.gap + 2 * one.overhead)).tolist()
        self.size = streams["size"].tolist()
        ends = zip(streams["source"].tolist(), streams["target"].tolist(), strict=True)
        self.streams = list(ends)
        pairs = [(a, b) for a in self.devices for b in self.devices if a != b]
        self.mean_latency = sum(self.latency[a][b] for a, b in pairs) / max(1, len(pairs))
        self.mean_wire = sum(self.wire[a][b] for a, b in pairs) / max(1, len(pairs))

    @property
    def makespan(self) -> float:
        """When the last task is done."""
        for v in self.order():
            self.place(v)
        return max(self.finish.values())

    def order(self) -> list[int]:
        """Ready tasks by falling rank, of equals the first row."""
        ranks: dict[int, float] = {}
        left, order = set(range(len(self.work))), []
        while left:
            ready = left - {w for u, w in self.streams if u in left}
            v = max(ready, key=lambda v: (self.rank(v, ranks), -v))
            order.append(v)
            left.remove(v)
        return order

    def rank(self, v: int, known: dict[int, float]) -> float:
        """Upward rank: mean work, and the longest way that follows."""
        if v in known:
            return known[v]
        allowed = [seconds for seconds in self.work[v] if seconds < np.inf]
        mean = sum(allowed) / len(allowed)
        known[v] = mean
        for e, (u, w) in enumerate(self.streams):
            if u == v:
                sending = self.mean_latency + self.size[e] * self.mean_wire + self.besides[e]
                known[v] = max(known[v], mean + sending + self.rank(w, known))
        return known[v]

    def place(self, v: int) -> None:
        """Put a task where it is done first, into the first idle time that is long enough."""
        ends = [(self.begin(v, d) + self.work[v][d], d) for d in self.devices]
        end, device = min(ends)
        self.start[v] = self.begin(v, device)
        self.finish[v], self.device[v] = end, device

    def begin(self, v: int, d: int) -> float:
        """When a task could start on a device."""
        begin = self.ready(v, d)
        there = [u for u, device in self.device.items() if device == d]
        for u in sorted(there, key=lambda u: self.start[u]):
            if begin + self.work[v][d] <= self.start[u]:
                break
            begin = max(begin, self.finish[u])
        return begin

    def ready(self, v: int, d: int) -> float:
        """When all that a task waits for is on a device."""
        ready = 0.0
        for e, (u, w) in enumerate(self.streams):
            if w != v:
                continue
            a = self.device[u]
            sending = self.latency[a][d] + self.size[e] * self.wire[a][d] + self.besides[e]
            ready = max(ready, self.finish[u] + (0.0 if a == d else sending))
        return ready
