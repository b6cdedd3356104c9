"""One pass spelled out with Python objects and one heap, step by step, nothing left out."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from streamsim.passes import Rules

TIE = 1e-12


@dataclass(frozen=True)
class Task:
    """One pass through a problem, in the caller's order of operators and streams."""

    problem: Any  # a `Description`, perhaps with latencies
    flows: tuple[tuple[float, float], ...]  # bytes and tuples of every stream
    inputs: tuple[float, ...]  # tuples taken in by every operator
    message: tuple[int, ...]
    priority: tuple[float, ...]
    work_factor: tuple[float, ...]
    send_factor: tuple[float, ...]
    along: tuple[int, ...]  # operators in topological order, which decides between equals in a line

    def seconds(self, v, d):
        """Seconds that operator v runs on device d."""
        problem = self.problem
        return self.inputs[v] * problem.seconds[v][problem.device_type[d]] * self.work_factor[v]

    def alone(self, e, a, b):
        """Seconds that stream e takes on an empty channel, without noise."""
        problem, (size, tuples) = self.problem, self.flows[e]
        slowest = max(problem.seconds_per_byte[a][b], problem.egress[a], problem.ingress[b])
        return size * slowest + tuples * problem.gap

    def held(self, e, a, b):
        """Seconds that stream e takes on an empty channel."""
        return self.alone(e, a, b) * self.send_factor[e]

    def besides(self, e, a, b):
        """Seconds that stream e takes before and after the channel."""
        latency = self.problem.latency[a][b] if self.problem.latency else 0.0
        size, tuples = self.flows[e]
        problem = self.problem
        besides = latency + 2 * (tuples * problem.overhead + size * problem.overhead_per_byte)
        return besides * self.send_factor[e]


@dataclass
class Simulation:
    """Steps are methods, called by one heap of (time, number)."""

    task: Task
    place: Sequence[int]
    rules: Rules
    now: float = 0.0
    heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = field(
        default_factory=list
    )
    numbers: Any = field(default_factory=count)
    start: dict[int, float] = field(default_factory=dict)
    finish: dict[int, float] = field(default_factory=dict)
    departure: dict[int, float] = field(default_factory=dict)
    arrival: dict[int, float] = field(default_factory=dict)

    def __post_init__(self):
        problem = self.task.problem
        self.free = list(problem.cores)
        self.waiting: dict[int, list[Any]] = defaultdict(list)
        self.missing = [problem.target.count(v) + 1 for v in range(problem.n_operators)]
        self.last = [-1] * problem.n_operators  # row of the producer of the last input
        self.inputs: dict[int, list[tuple[float, int]]] = defaultdict(list)
        self.touched: list[int] = []
        self.lines: list[list[int]] = [[] for _ in problem.cores]
        for v in sorted(self.task.along, key=lambda v: -self.task.priority[v]):
            self.lines[self.place[v]].append(v)
        self.wave = 0
        self.network = NETWORKS[self.rules.network](self)

    def at(self, time, step, *arguments):
        """Put a step into the heap."""
        heappush(self.heap, (time, next(self.numbers), step, arguments))

    def run(self):
        """Makespan."""
        for v in range(self.task.problem.n_operators):  # the start is an input like any other
            self.at(0.0, self.started, v)
        while True:
            while self.heap and self.heap[0][0] <= self.now:
                _, _, step, arguments = heappop(self.heap)
                step(*arguments)
            if self.grant() or self.network.settle():
                continue
            upcoming = [self.heap[0][0]] if self.heap else []
            upcoming += self.network.upcoming()
            if not upcoming:
                return self.now
            self.now = min(upcoming)

    def all_there(self, v):
        """All inputs of v are there."""
        d = self.place[v]
        if self.rules.queue != "fifo":
            self.waiting[d].append((self.rank(v), v))
            self.touch(d)
        elif self.free[d]:
            self.free[d] -= 1
            self.at(self.now, self.begin, v)
        else:
            self.waiting[d].append(v)

    def begin(self, v):
        """Operator v has a core."""
        self.start[v] = self.now
        self.at(self.now + self.task.seconds(v, self.place[v]), self.end, v)

    def end(self, v):
        """Operator v is done."""
        self.finish[v] = self.now
        if self.rules.pause and self.task.seconds(v, self.place[v]):
            self.at(self.now + self.rules.pause, self.give_up_core, self.place[v])
        else:
            self.give_up_core(self.place[v])
        self.at(self.now, self.send, v)

    def give_up_core(self, d):
        """A core goes to the head of the queue, or is free."""
        if self.rules.queue == "fifo" and self.waiting[d]:
            self.at(self.now, self.begin, self.waiting[d].pop(0))
        else:
            self.free[d] += 1
            if self.rules.queue != "fifo":
                self.touch(d)

    def send(self, v):
        """Outputs go out in the order of streams."""
        problem = self.task.problem
        posted = set()
        for e, (source, target) in enumerate(zip(problem.source, problem.target, strict=True)):
            if source != v:
                continue
            if self.place[v] == self.place[target]:
                self.departure[e] = self.now
                self.at(self.now, self.came, e)
            elif self.task.message[e] not in posted:
                if self.rules.network != "free":
                    posted.add(self.task.message[e])
                self.network.post(e)

    def started(self, v):
        """The pass has started, for which every operator waits."""
        self.at(self.now, self.counted, v, -1)

    def came(self, e):
        """Stream e is there."""
        self.arrival[e] = self.now
        problem = self.task.problem
        self.at(self.now, self.counted, problem.target[e], problem.source[e])

    def counted(self, v, producer):
        """Count an input of v."""
        self.missing[v] -= 1
        self.inputs[v].append((self.now, producer))
        if self.missing[v] == 0:
            self.last[v] = max(self.inputs[v])[1]
            self.at(self.now, self.all_there, v)

    def rank(self, v):
        """The lower, the sooner."""
        depth = self.depth(v)
        return {
            "rows": (self.wave, self.last[v], v),
            "priority": (-self.task.priority[v], v),
            "depth": (-depth, v),
            "breadth": (depth, v),
            "order": (-self.task.priority[v], self.task.along.index(v)),
        }[self.rules.queue]

    def depth(self, v):
        """Most streams from an operator without inputs."""
        problem = self.task.problem
        ends = zip(problem.source, problem.target, strict=True)
        return max((self.depth(u) + 1 for u, w in ends if w == v), default=0)

    def touch(self, d):
        """Something may start on device d at the end of the instant."""
        if d not in self.touched:
            self.touched.append(d)

    def grant(self):
        """Start what can start on the devices touched in this instant."""
        touched, self.touched = self.touched, []
        self.wave += bool(touched)
        for d in touched:
            while self.free[d] and self.waiting[d]:
                first = min(self.waiting[d])
                if self.rules.queue == "order" and self.lines[d][0] != first[1]:
                    break
                self.lines[d].remove(first[1])
                self.waiting[d].remove(first)
                self.free[d] -= 1
                self.begin(first[1])
        return bool(touched)

    def ends(self, e):
        """Devices that send and receive stream e."""
        problem = self.task.problem
        return self.place[problem.source[e]], self.place[problem.target[e]]

    def remote(self, e):
        """Streams that need the output of stream e elsewhere: a list per receiving device."""
        same = [i for i, m in enumerate(self.task.message) if m == self.task.message[e]]
        groups: dict[int, list[int]] = {}
        for i in same:
            a, b = self.ends(i)
            if a != b:
                groups.setdefault(b, []).append(i)
        return list(groups.values())

    def held(self, transfer):
        """Seconds that a transfer keeps its channel."""
        return max(self.task.held(e, *self.ends(e)) for e in transfer)

    def depart(self, transfer, begin):
        """Begin a transfer that has its channel to itself."""
        for e in transfer:
            self.departure[e] = begin
            besides, held = self.task.besides(e, *self.ends(e)), self.task.held(e, *self.ends(e))
            self.at(begin + (besides + held), self.came, e)


class Free:
    """All transfers at once, every stream by itself."""

    def __init__(self, simulation):
        self.simulation = simulation

    def post(self, e):
        """Take over the output that stream e carries."""
        self.simulation.depart([e], self.simulation.now)

    def settle(self):
        """Decide at the end of an instant who sends; whether anything changed."""
        return False

    def upcoming(self):
        """When something will happen that no step in the heap says."""
        return []


class Link(Free):
    """One transfer at a time on every channel, in the order in which they are posted."""

    def __init__(self, simulation):
        super().__init__(simulation)
        self.until: dict[Any, float] = defaultdict(float)

    def channel(self, transfer):
        """What a transfer needs to itself."""
        return self.simulation.ends(transfer[0])

    def transfers(self, e):
        """Transfers that carry the output of stream e."""
        return self.simulation.remote(e)

    def post(self, e):
        """Let the output that stream e carries begin as soon as its channel is free."""
        simulation = self.simulation
        for transfer in self.transfers(e):
            channel = self.channel(transfer)
            begin = max(simulation.now, self.until[channel])
            simulation.depart(transfer, begin)
            self.until[channel] = begin + simulation.held(transfer) + simulation.rules.spacing
            simulation.at(self.until[channel], lambda: None)


class Sender(Link):
    """One transfer at a time out of a device, to all who need it."""

    def channel(self, transfer):
        """What a transfer needs to itself."""
        return self.simulation.ends(transfer[0])[0]

    def transfers(self, e):
        """Transfers that carry the output of stream e."""
        return [sorted(i for streams in self.simulation.remote(e) for i in streams)]


class Port(Free):
    """One transfer out of a device and one into it at a time."""

    def __init__(self, simulation):
        super().__init__(simulation)
        self.busy: set[tuple[str, int]] = set()
        self.line: list[list[int]] = []
        self.changed = False

    def ports(self, transfer):
        """What a transfer needs to itself."""
        a, b = self.simulation.ends(transfer[0])
        return {("out", a), ("in", b)}

    def post(self, e):
        """Let the output that stream e carries wait in line."""
        self.line += self.simulation.remote(e)
        self.changed = True

    def clear(self, transfer):
        """A transfer has left its ports."""
        self.busy -= self.ports(transfer)
        self.changed = True

    def settle(self):
        """Go through the line at the end of an instant; whether anything changed."""
        changed, self.changed = self.changed, False
        for transfer in list(self.line) if changed else []:
            if not self.ports(transfer) & self.busy:
                self.busy |= self.ports(transfer)
                self.line.remove(transfer)
                simulation = self.simulation
                simulation.depart(transfer, simulation.now)
                through = simulation.now + simulation.held(transfer) + simulation.rules.spacing
                simulation.at(through, self.clear, transfer)
        return changed


@dataclass
class Flow:
    """A transfer under way in the shared network."""

    streams: list[int]
    alone: float
    uses: Mapping[tuple[str, int, int], float]
    left: float = 1.0
    share: float = 0.0
    due: float = float("inf")


class Shared(Free):
    """Transfers share links and cards: all gain until something they use is full."""

    def __init__(self, simulation):
        super().__init__(simulation)
        self.flows: list[Flow] = []
        self.changed, self.settled = False, 0.0

    def post(self, e):
        """Take over the output that stream e carries."""
        simulation = self.simulation
        for streams in simulation.remote(e):
            for i in streams:
                simulation.departure[i] = simulation.now
            flow = Flow(streams, simulation.held(streams), self.uses(streams[0]))
            if flow.alone == 0:
                self.deliver(flow)
            else:
                self.flows.append(flow)
                self.changed = True

    def uses(self, e):
        """What full speed takes of a link and two cards."""
        task, (a, b) = self.simulation.task, self.simulation.ends(e)
        problem, (size, tuples) = task.problem, task.flows[e]
        alone = task.alone(e, a, b) or 1.0
        return {
            ("link", a, b): (size * problem.seconds_per_byte[a][b] + tuples * problem.gap) / alone,
            ("out", a, -1): size * problem.egress[a] / alone,
            ("in", b, -1): size * problem.ingress[b] / alone,
        }

    def deliver(self, flow):
        """All streams of a transfer arrive."""
        simulation = self.simulation
        for e in flow.streams:
            besides = simulation.task.besides(e, *simulation.ends(e))
            simulation.at(simulation.now + besides, simulation.came, e)

    def settle(self):
        """Decide at the end of an instant who sends; whether anything changed."""
        if not self.changed and self.simulation.now not in self.upcoming():
            return False
        now, self.changed = self.simulation.now, False
        for flow in self.flows:
            flow.left -= flow.share * (now - self.settled) / flow.alone
        self.settled = now
        through = [flow for flow in self.flows if flow.due <= now or flow.left <= TIE]
        self.flows = [flow for flow in self.flows if flow not in through]
        for flow in through:
            self.deliver(flow)
        self.fill()
        for flow in self.flows:
            flow.due = now + flow.left * flow.alone / flow.share
        return True

    def fill(self):
        """Raise all shares together."""
        gaining, used = list(self.flows), defaultdict(float)
        while gaining:
            demand: dict[Any, float] = defaultdict(float)
            for flow in gaining:
                for resource, use in flow.uses.items():
                    demand[resource] += use
            levels = {r: max(0.0, 1 - used[r]) / total for r, total in demand.items() if total}
            level = min([1.0, *levels.values()])
            full = {r for r, limit in levels.items() if limit <= level * (1 + TIE)}
            stays = [
                flow
                for flow in gaining
                if level >= 1 or any(use and r in full for r, use in flow.uses.items())
            ]
            for flow in stays:
                flow.share = level
                for resource, use in flow.uses.items():
                    used[resource] += use * level
            gaining = [flow for flow in gaining if flow not in stays]

    def upcoming(self):
        """When something will happen that no step in the heap says."""
        return [min(flow.due for flow in self.flows)] if self.flows else []


NETWORKS = {"free": Free, "sender": Sender, "link": Link, "port": Port, "shared": Shared}
