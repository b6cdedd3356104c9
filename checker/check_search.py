"""Replay a search: enumerate, in exact arithmetic, all that could be better than a bound.

See check.py for what is enumerated and when a branch ends. Nothing of the search that wrote the
certificate is used but the order of decisions and weights, and any order and weights are valid.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

from check_instance import CELLS, Problem, Table, amount, integers, need

NODES = 10**7


def alike(p: Problem, use: dict[Any, Any], send: dict[Any, Any]) -> list[int]:
    """Class of every device; exchanging two of a class changes no use, transfer or rule."""

    def equal(a: int, b: int) -> bool:
        to = {**dict(enumerate(range(p.k))), a: b, b: a}
        return (
            p.room[a] == p.room[b]
            and p.cores[a] == p.cores[b]
            and all((a in devices) == (b in devices) for devices in p.allowed)
            and all(x == use[v, to[d]] for (v, d), x in use.items())
            and all(x == send[e, to[c], to[d]] for (e, c, d), x in send.items())
        )

    return [next(a for a in range(d + 1) if a == d or equal(a, d)) for d in range(p.k)]


def options(p: Problem, v: int, place: list[int], kinds: list[int]) -> list[int]:
    """Devices for an operator beside those placed (-1: not placed), one empty device per class."""
    mates = {place[u] for group in p.together if v in group for u in group} - {-1}
    rivals = {place[u] for group in p.apart if v in group for u in group} - {-1}
    empty = {kinds[d]: d for d in sorted(p.allowed[v] - set(place), reverse=True)}
    devices = (p.allowed[v] & set(place)) | set(empty.values())
    return sorted(d for d in devices - rivals if mates <= {d})


class Search:
    """Enumeration in exact arithmetic; `place` and `load` hold the present branch."""

    def __init__(self, p: Problem, use: Table, send: Table, proof: dict[str, Any]) -> None:
        self.p, self.place, self.nodes = p, [-1] * p.n, 0
        self.scale, self.use, self.send = integers(use, send)
        self.kinds = alike(p, self.use, self.send)
        self.weight = [int(amount({"": x}, "")) for x in proof.get("weights", [Fraction(1)] * p.k)]
        need(len(self.weight) == p.k and any(self.weight), "there is no weight for every device")
        need(p.n <= 500, "a search has 500 operators at most")
        self.least = [
            min(self.weight[d] * self.use[v, d][0] for d in p.allowed[v]) for v in range(p.n)
        ]

    def count(self) -> None:
        """Count a node."""
        self.nodes += 1
        need(self.nodes <= NODES, f"the search takes more than {NODES} nodes")

    def leaf(self) -> None:
        """Refuse where a legal placement is better than the bound."""
        need(not self.p.legal(self.place), "a placement is better than the bound")


class ThroughputSearch(Search):
    """Placements of a problem with one group of sources that exceed a bound."""

    def __init__(self, p: Problem, bound: Fraction, proof: dict[str, Any]) -> None:
        need(len(p.rates) == 1, "this search is for one group of sources")
        need(p.k**2 * len(p.streams) <= CELLS, "too many streams and devices")
        (g,), pairs = p.rates, list(product(range(p.k), repeat=2))
        use, send = {}, {}
        for v, d in product(range(p.n), range(p.k)):
            use[v, d] = [p.inflow[v][g] * x for _, x in p.uses(v, d)]
        for e, (a, b) in product(range(len(p.streams)), pairs):
            send[e, a, b] = [p.tuples[e][g] * x for _, x in p.sends(e, a, b)]
        super().__init__(p, use, send, proof)
        self.keys = {(a, b): [r for r, _ in p.sends(0, a, b)] for a, b in pairs if p.streams}
        self.order = [p.op[name] for name in proof["order"]]
        need(sorted(self.order) == list(range(p.n)), "the order does not name every operator once")
        self.limit, self.load = ceil(self.scale / bound), defaultdict(int)
        self.full = self.limit * sum(self.weight)

    def added(self, v: int, d: int) -> dict[Any, int] | None:
        """Loads that change with an operator on a device; None where a resource is full."""
        device, core = self.use[v, d]
        more, p = defaultdict(int, {("device", d): device}), self.p
        for e in p.into[v] + p.out[v]:
            a, b = (d if u == v else self.place[u] for u in p.streams[e][:2])
            if min(a, b) >= 0:
                for r, x in zip(self.keys[a, b], self.send[e, a, b], strict=False):
                    more[r] += x
        full = core >= self.limit or any(self.load[r] + x >= self.limit for r, x in more.items())
        return None if full else more

    def visit(self, i: int) -> None:
        """Try all devices for the operator at a position of the order, and for those behind."""
        p, rest = self.p, self.order[i:]
        self.count()
        used = sum(w * self.load["device", d] for d, w in enumerate(self.weight))
        if not rest:
            self.leaf()
        if not rest or used + sum(self.least[v] for v in rest) >= self.full:
            return
        v, streams = rest[0], p.into[rest[0]] + p.out[rest[0]]
        near = {u for e in streams for u in p.streams[e][:2]} & set(rest[1:])
        for d in options(p, v, self.place, self.kinds):
            if (more := self.added(v, d)) is None:
                continue
            self.place[v] = d
            for r, x in more.items():
                self.load[r] += x
            if all(any(self.added(u, b) is not None for b in p.allowed[u]) for u in near):
                self.visit(i + 1)
            for r, x in more.items():
                self.load[r] -= x
            self.place[v] = -1


class PassSearch(Search):
    """Passes that are shorter than a bound: operators in the order of their starts."""

    def __init__(self, p: Problem, bound: Fraction, proof: dict[str, Any]) -> None:
        super().__init__(p, *p.one_pass(), proof)
        self.tail = p.paths(self.use, self.send)[1]
        self.limit, self.end = ceil(self.scale * bound), [0] * p.n
        self.free = [[0] * int(cores) for cores in p.cores]
        self.full = self.limit * sum(
            w * len(free) for w, free in zip(self.weight, self.free, strict=True)
        )
        self.position = {v: i for i, v in enumerate(p.order)}

    def starts(self, v: int, last: int) -> list[tuple[int, int]]:
        """Start and device of an operator, where it and what follows can end before the bound."""
        p, found = self.p, []
        for d in options(p, v, self.place, self.kinds):
            inputs = [self.end[u] + self.send[e, self.place[u], d][0] for e, u in p.inputs(v)]
            start = max([min(self.free[d]), *inputs])
            if max(start, last) + self.use[v, d][0] + self.tail[v, d] < self.limit:
                found.append((start, d))
        return found

    def visit(self, last: int, latest: int) -> None:
        """Start every operator that is ready, on every device, not before the last one started."""
        p, left = self.p, [v for v in self.p.order if self.place[v] < 0]
        self.count()
        used = sum(
            w * max(last, at) for w, free in zip(self.weight, self.free, strict=True) for at in free
        )
        if not left:
            self.leaf()
        if not left or used + sum(self.least[v] for v in left) >= self.full:
            return
        ready = [v for v in left if all(self.place[p.streams[e][0]] >= 0 for e in p.into[v])]
        choices = [(v, self.starts(v, last)) for v in ready]
        if not all(starts for _, starts in choices):
            return
        for v, start, d in [(v, start, d) for v, starts in choices for start, d in starts]:
            if (start, self.position[v]) > (last, latest):
                free = self.free[d]
                core = free.index(min(free))
                self.place[v], self.end[v] = d, start + self.use[v, d][0]
                before, free[core] = free[core], self.end[v]
                self.visit(start, self.position[v])
                free[core], self.place[v] = before, -1
