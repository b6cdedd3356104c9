"""List schedules said literally: slow, plain Python, with nothing in common with the kernels."""

from functools import cache

from giph_reference import devices_of, ends, seconds, sending


def mean_sending(problem):
    """Seconds that every stream takes over the mean of the links between two devices."""
    one, devices = problem.one_pass, range(problem.n_devices)
    pairs = [(a, b) for a in devices for b in devices if a != b]
    latency, wire = (
        sum(float(one.links[name][pair]) for pair in pairs) / max(1, len(pairs))
        for name in ("latency", "seconds_per_byte")
    )
    besides = one.streams["tuples"] * (one.gap + 2 * one.overhead)
    sizes = one.streams["size"].tolist()
    return [latency + s * wire + more for s, more in zip(sizes, besides.tolist(), strict=True)]


def longest_ways(problem, work, *, to_exit=True):
    """Longest way from every task, to an exit or to an entry: its seconds, and its tasks.

    ``work`` are the mean seconds of every task.
    """
    streams, sent = ends(problem), mean_sending(problem)
    if not to_exit:
        streams = [(w, u) for u, w in streams]

    @cache
    def longest(v):
        ways = []
        for e, (u, w) in enumerate(streams):
            if u == v:
                length, tasks = longest(w)
                ways.append((work[v] + sent[e] + length, [v, *tasks]))
        return max(ways, key=lambda way: way[0], default=(work[v], [v]))

    return [longest(v) for v in range(problem.n_operators)]


class ScheduleInProgress:
    """A schedule in the making: lists of what every core has to do.

    Tasks begin in the first idle time that is long enough, or, if it ``appends``, after all that
    the core has to do which is free first.
    """

    def __init__(self, problem, *, appends=False):
        self.problem, self.appends = problem, appends
        self.streams, self.work = ends(problem), seconds(problem)
        self.place: dict[int, int] = {}
        self.start: dict[int, float] = {}
        self.finish: dict[int, float] = {}
        self.busy: list[list[list[tuple[float, float]]]] = [
            [[] for _ in range(cores)] for cores in problem.one_pass.devices["cores"]
        ]

    def into(self, v):
        """Streams into a task."""
        return [e for e, (_, w) in enumerate(self.streams) if w == v]

    def out_of(self, v):
        """Streams out of a task."""
        return [e for e, (u, _) in enumerate(self.streams) if u == v]

    def open(self, v):
        """Devices on which a task may run: where it is allowed, and its unit is."""
        rules = self.problem.rules
        homes = {
            a for u, a in self.place.items() if rules is not None and rules.unit[u] == rules.unit[v]
        }
        return [a for a in devices_of(self.problem, v) if not homes or a in homes]

    def ready(self, v, a):
        """When the inputs of a task are there."""
        arrivals = [
            self.finish[u] + sending(self.problem, e, self.place[u], a)
            for e in self.into(v)
            for u in [self.streams[e][0]]
        ]
        return max([0.0, *arrivals])

    def begin(self, v, a):
        """Soonest start on a device, and the core."""
        ready, work = self.ready(v, a), float(self.work[v, a])
        starts = []
        for c, busy in enumerate(self.busy[a]):
            free = max((end for _, end in busy), default=0.0) if self.appends else 0.0
            begin = max(ready, free)
            for start, end in [] if self.appends else sorted(busy):
                if begin + work <= start:
                    break
                begin = max(begin, end)
            starts.append((begin, free, c))
        begin, _, core = min(starts)
        return begin, core

    def ends(self, v):
        """Soonest end on every open device."""
        return {a: self.begin(v, a)[0] + float(self.work[v, a]) for a in self.open(v)}

    def soonest(self, v):
        """First of the devices on which a task ends soonest."""
        ends = self.ends(v)
        return min(ends, key=ends.__getitem__)

    def run(self, v, a):
        """Decide about a task."""
        begin, core = self.begin(v, a)
        self.place[v], self.start[v] = a, begin
        self.finish[v] = begin + float(self.work[v, a])
        self.busy[a][core].append((begin, self.finish[v]))
