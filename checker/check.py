"""Check a solution of a placement problem, and a bound that no solution beats, exactly.

    python check.py INSTANCE SOLUTION [CERTIFICATE]        three JSON files

One line states value, bound and gap (exit status 0), or why a file is refused (1). All amounts are
whole numbers, nothing is rounded, and nothing that a solver states is trusted.

**Instance.** `objective`; `second`, the units of time in a second; `kinds` of machines with limits
`cpu` (units/s), `memory`, `slots`, `out` and `in` (bits/s), none where missing; `devices`, the kind
of each; `links[k][m]`, units per bit and latency between devices of kinds k and m; `operators` with
`pieces` p, and of each piece `memory` and `work[k]` (null: not on this kind); `streams` [u, v, b],
u < v: b bits from each piece of u to each piece of v.

**Loads** of a machine that runs a(v) pieces of operators v: cpu Σ a(v) work(v), memory, slots
Σ a(v), out Σ b a(u) (p(v) - a(v)), in Σ b a(v) (p(u) - a(u)). A stream between two devices loads
their link by b p(u) p(v) times units per bit; the limit is `second`.

**Throughput**, to be maximised: `place` has the device of every operator, with all its pieces; work
and bits are those of a second at full rate. Memory and slots must suffice. The value is the share
of the full rate at which the first other limit is met: min(1, min limit / load).

**Makespan**, to be minimised: `place`, and the `order` in which operators start. An operator starts
when its inputs have arrived (latency + b units per bit after their ends, 0 on the same device) and
its device has ended what it started before. It takes its work. The value is the last end.

**Plan**, to be minimised: `machines` are pairs of a kind and the pieces [[v, a], ...] on it. All
pieces run within the limits. The value is the sum of `price`; at most `at_most` of a kind are used.

**Certificate**: a `bound`, and a `proof` by searches that no solution is better. A search tries all
choices, but ends a branch where a limit is exceeded, or where weighted sums show that no completion
is better. All `weights` >= 0 and every `order` are valid; good ones end the search soon.
*Throughput* weighs cpu by kinds: what is placed and the least of the rest against all devices.
*Makespan* starts operators by time, and compares with the bound their longest paths and, weighed by
kinds, all work that is left, between its least start and its least path to the end. *Plan* has
`cuts`, with a `worth` of pieces and the `most` that contents of each kind are worth, as one search
per kind and cut shows; so the machines of every plan satisfy Σ most >= Σ worth. A last search shows
that no `numbers` of machines do so for less. These searches look for contents within limits that
are worth more than is allowed. With weights y of limits and z of worths, they end where
Σ y room + Σ z (worth - allowed) + Σ over the rest of max(0, z worth - y load) is not above 0.
"""

import json
import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, product
from math import ceil, inf
from pathlib import Path
from typing import Any

SECONDS, BYTES, NODES, LARGEST = 3600, 1 << 29, 10**7, 10**40
HARD, RESOURCES = ("memory", "slots"), ("cpu", "memory", "slots", "out", "in")
Load = tuple[str, int, Any]
Steps = Sequence[tuple[int, int]]
Times = dict[tuple[int, int], int]


class RefusedError(Exception):
    """A file is refused; the message says why."""


def need(condition: object, message: str) -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise RefusedError(message)


def whole(x: Any, least: int = 0, below: int = LARGEST) -> int:
    """Return a whole number within its range."""
    need(type(x) is int and least <= x < below, f"{str(x)[:40]} is no whole number in its range")
    return int(x)


def permutation(order: list[int], n: int) -> list[int]:
    """Return an order of the first n numbers."""
    need(sorted(order) == [*range(n)], "an order does not contain every number once")
    return [*map(whole, order)]


class Instance:
    """Kinds of machines, operators and streams; work has the kinds on which an operator may run."""

    def __init__(self, document: dict[str, Any]) -> None:
        rows, self.second = document["operators"], whole(document["second"], 1)
        self.kinds = [{name: whole(x) for name, x in kind.items()} for kind in document["kinds"]]
        self.links = [[[whole(x) for x in pair] for pair in line] for line in document["links"]]
        self.devices = [whole(k, 0, len(self.kinds)) for k in document["devices"]]
        self.n, self.pieces = len(rows), [whole(row["pieces"], 1, 10**6) for row in rows]
        self.memory = [whole(row["memory"]) for row in rows]
        self.work = [
            {k: whole(x) for k, x in enumerate(row["work"]) if x is not None} for row in rows
        ]
        need(all(self.work), "an operator may not run on any kind")
        self.bits: list[int] = []
        self.into: list[list[tuple[int, int]]] = [[] for _ in rows]
        self.out: list[list[tuple[int, int]]] = [[] for _ in rows]
        for e, (u, v, bits) in enumerate(document["streams"]):
            self.out[whole(u)].append((e, whole(v, u + 1, self.n)))
            self.into[v].append((e, u))
            self.bits.append(whole(bits))

    def loads(self, kind: int, contents: dict[int, int], rest: Any = ()) -> Iterator[Load]:
        """Loads of a machine, with limits; operators of the rest count as being with all others."""
        total = Counter[str]()
        for v, a in contents.items():
            need(a == 0 or kind in self.work[v], "an operator is where it may not run")
            total["cpu"] += a * self.work[v].get(kind, 0)
            total["memory"] += a * self.memory[v]
            total["slots"] += a
            for way, streams in (("out", self.out[v]), ("in", self.into[v])):
                for e, u in streams:
                    far = 0 if u in rest else self.pieces[u] - contents.get(u, 0)
                    total[way] += self.bits[e] * a * far
        return ((name, x, self.kinds[kind].get(name, inf)) for name, x in total.items())

    def placed(self, place: dict[int, int], rest: Any = ()) -> Iterator[Load]:
        """Loads of devices and links, with limits, where each operator is on one device."""
        contents, links = defaultdict[int, dict[int, int]](dict), Counter[tuple[int, int]]()
        for v, d in place.items():
            contents[d][v] = self.pieces[v]
            for e, u in self.into[v]:
                if u in place and place[u] != d:
                    per_bit, _ = self.links[self.devices[place[u]]][self.devices[d]]
                    bits = self.bits[e] * self.pieces[u] * self.pieces[v]
                    links[place[u], d] += bits * per_bit
        for d, pieces in contents.items():
            yield from self.loads(self.devices[d], pieces, rest)
        for x in links.values():
            yield "link", x, self.second

    def delay(self, e: int, k: int, m: int) -> int:
        """Time of a transfer between different devices of these kinds."""
        per_bit, latency = self.links[k][m]
        return latency + self.bits[e] * per_bit

    def far(self, e: int, k: int, m: int) -> int:
        """Least time of a transfer between devices of these kinds."""
        return self.delay(e, k, m) if k != m else 0

    def schedule(self, steps: Steps) -> tuple[dict[int, int], dict[int, int], list[int]]:
        """Starts and ends of operators that start on devices in turn, and the ends of devices."""
        start, end, place = dict[int, int](), dict[int, int](), dict(steps)
        free = [0] * len(self.devices)
        for v, d in steps:
            need(self.devices[d] in self.work[v], "an operator is where it may not run")
            need(all(u in end for _, u in self.into[v]), "an operator starts before its inputs")
            far = [(e, u) for e, u in self.into[v] if place[u] != d]
            late = [self.delay(e, self.devices[place[u]], self.devices[d]) + end[u] for e, u in far]
            start[v] = max([free[d], *late])
            end[v] = free[d] = start[v] + self.work[v][self.devices[d]]
        return start, end, free


def throughput(p: Instance, solution: dict[str, Any]) -> Fraction:
    """Share of the full rate that a placement carries."""
    share, place = Fraction(1), [whole(d, 0, len(p.devices)) for d in solution["place"]]
    need(len(place) == p.n, "an operator has no device")
    for name, x, limit in p.placed(dict(enumerate(place))):
        need(name not in HARD or x <= limit, f"a device has too little {name}")
        share = min(share, Fraction(limit, x)) if x > limit else share
    return share


def makespan(p: Instance, solution: dict[str, Any]) -> Fraction:
    """Last end of a schedule."""
    place = [whole(d, 0, len(p.devices)) for d in solution["place"]]
    order = permutation(solution["order"], p.n)
    need(len(place) == p.n, "an operator has no device")
    end = p.schedule([(v, place[v]) for v in order])[1]
    return Fraction(max(end.values()), p.second)


def plan(p: Instance, solution: dict[str, Any]) -> Fraction:
    """Cost of machines that run all pieces."""
    pieces, bought = Counter[int](), Counter[int]()
    for kind, pairs in solution["machines"]:
        contents = {whole(v, 0, p.n): whole(a) for v, a in pairs}
        for name, x, limit in p.loads(whole(kind, 0, len(p.kinds)), contents):
            need(x <= limit, f"a machine has too little {name}")
        pieces.update(contents)
        bought[kind] += 1
    need([pieces[v] for v in range(p.n)] == p.pieces, "pieces are missing or too many")
    need(all(x <= p.kinds[k]["at_most"] for k, x in bought.items()), "machines are too many")
    return Fraction(sum(x * p.kinds[k]["price"] for k, x in bought.items()))


def search(n: int, options: Callable[[Any], Iterable[Any]], ends: Callable[[Any], bool]) -> None:
    """Try all sequences of n choices but those that begin with what cannot beat the bound."""
    nodes = 0
    stack: list[Any] = [()]
    while stack:
        chosen = stack.pop()
        nodes += 1
        need(nodes <= NODES, f"a search takes more than {NODES} nodes")
        if not ends(chosen):
            need(len(chosen) < n, "a solution is better than the bound")
            stack.extend((*chosen, option) for option in options(chosen))


def unlike(p: Instance, v: int, used: set[int]) -> list[int]:
    """Devices for an operator: those in use, and one unused of each kind for all others."""
    unused = {k: d for d, k in enumerate(p.devices) if d not in used}
    return [d for d in used | set(unused.values()) if p.devices[d] in p.work[v]]


def least(p: Instance, v: int, weight: list[int]) -> int:
    """Least weighted work of an operator."""
    return p.pieces[v] * min(weight[k] * x for k, x in p.work[v].items())


def no_placement(p: Instance, bound: Fraction, proof: dict[str, Any]) -> None:
    """Search for a placement that carries more than a bound."""
    order, weights = permutation(proof["order"], p.n), [[*map(whole, g)] for g in proof["weights"]]
    room = [sum(g[k] * p.kinds[k]["cpu"] for k in p.devices) for g in weights]
    need(all(room), "the weights of the devices are zero")
    rest = [[*accumulate((least(p, v, g) for v in order[::-1]), initial=0)] for g in weights]

    def ends(chosen: tuple[int, ...]) -> bool:
        place, left = dict(zip(order, chosen)), order[len(chosen) :]
        for name, x, limit in p.placed(place, {*left}):
            if x > limit if name in HARD else x * bound >= limit:
                return True
        kinds = [(v, p.devices[d]) for v, d in place.items()]
        used = [sum(g[k] * p.pieces[v] * p.work[v][k] for v, k in kinds) for g in weights]
        return any((x + r[len(left)]) * bound >= y for x, r, y in zip(used, rest, room))

    search(p.n, lambda chosen: unlike(p, order[len(chosen)], {*chosen}), ends)


def tails(p: Instance) -> Times:
    """Least times from the end of an operator on a kind to the end of its longest path."""
    tail: Times = {}
    for v, k in product(range(p.n)[::-1], range(len(p.kinds))):
        ends = (
            min(p.far(e, k, m) + x + tail[u, m] for m, x in p.work[u].items()) for e, u in p.out[v]
        )
        tail[v, k] = max(ends, default=0)
    return tail


def heads(p: Instance, kinds: dict[int, int], end: dict[int, int], last: int) -> Times:
    """Least starts, not before the last one, of operators that have not started, on each kind."""
    done: Times = {(v, kinds[v]): t for v, t in end.items()}
    head: Times = {}
    for v, k in ((u, k) for u in range(p.n) if u not in end for k in p.work[u]):
        inputs = (
            min(done[u, m] + p.far(e, m, k) for m in p.work[u] if (u, m) in done)
            for e, u in p.into[v]
        )
        head[v, k] = max([last, *inputs])
        done[v, k] = head[v, k] + p.work[v][k]
    return head


def no_schedule(p: Instance, bound: Fraction, proof: dict[str, Any]) -> None:
    """Search for a schedule that ends before a bound: operators in the order of their starts."""
    most, weights = ceil(bound * p.second) - 1, [[*map(whole, g)] for g in proof["weights"]]
    tail = tails(p)

    def too_much(g: list[int], head: Times, free: list[int]) -> bool:
        work = {v: x for v, _ in head if (x := least(p, v, g))}
        begin = min((t for (v, _), t in head.items() if v in work), default=0)
        end = most - min((tail[v, k] for v, k in head if v in work), default=0)
        time = (g[k] * max(0, end - max(begin, t)) for k, t in zip(p.devices, free))
        return sum(work.values()) > sum(time)

    def ends(steps: Steps) -> bool:
        start, end, free = p.schedule(steps)
        if len(steps) > 1:
            (u, a), (v, b) = steps[-2:]
            if start[v] < start[u] or (start[v] == start[u] and v < u and a != b):
                return True
        kinds = {v: p.devices[d] for v, d in steps}
        head = heads(p, kinds, end, max(start.values(), default=0))
        paths = {v: end[v] + tail[v, k] for v, k in kinds.items()}
        for (v, k), t in head.items():
            path = t + p.work[v][k] + tail[v, k]
            paths[v] = min(path, paths.get(v, path))
        return max(paths.values()) > most or any(too_much(g, head, free) for g in weights)

    def options(steps: Steps) -> Iterator[tuple[int, int]]:
        done = {v for v, _ in steps}
        ready = (v for v in range(p.n) if done.issuperset(u for _, u in p.into[v]))
        for v in (v for v in ready if v not in done):
            yield from ((v, d) for d in unlike(p, v, {d for _, d in steps}))

    search(p.n, options, ends)


def no_packing(
    top: list[int],
    own: list[dict[str, int]],
    limits: dict[str, int],
    used: Callable[[dict[int, int], set[int]], dict[str, int]],
    worths: list[list[int]],
    allowed: list[int],
    proof: dict[str, Any],
) -> None:
    """Search for contents within limits that are worth more than allowed by all worths."""
    order = permutation(proof["order"], len(top))
    weights = [([*map(whole, w["worths"])], w["limits"]) for w in proof["weights"]]
    weights += [([int(i == j) for j in range(len(worths))], {}) for i in range(len(worths))]
    need(all(any(z) for z, _ in weights), "the weights of the worths are zero")

    def most(v: int, z: list[int], y: dict[str, int]) -> int:
        worth = sum(x * w[v] for x, w in zip(z, worths, strict=True))
        return top[v] * max(0, worth - sum(whole(x) * own[v].get(r, 0) for r, x in y.items()))

    rest = [[*accumulate((most(v, *w) for v in order[::-1]), initial=0)] for w in weights]

    def ends(chosen: tuple[int, ...]) -> bool:
        contents, left = dict(zip(order, chosen)), order[len(chosen) :]
        loads = used(contents, {*left})
        room = {r: limit - loads.get(r, 0) for r, limit in limits.items()}
        over = [sum(w[v] * a for v, a in contents.items()) - x for w, x in zip(worths, allowed)]
        return min(room.values(), default=0) < 0 or any(
            sum(x * room[r] for r, x in y.items())
            + sum(x * o for x, o in zip(z, over))
            + r[len(left)]
            <= 0
            for (z, y), r in zip(weights, rest)
        )

    search(len(top), lambda chosen: range(top[order[len(chosen)]] + 1), ends)


def no_plan(p: Instance, bound: Fraction, proof: dict[str, Any]) -> None:
    """Search for a plan that costs less than a bound."""
    cuts = [
        ([whole(x, -LARGEST) for x in c["worth"]], [*map(whole, c["most"])]) for c in proof["cuts"]
    ]
    for (worth, most), cut in zip(cuts, proof["cuts"], strict=True):
        for k, kind in enumerate(p.kinds):
            top = [a if k in w else 0 for a, w in zip(p.pieces, p.work)]
            own = [{"cpu": w.get(k, 0), "memory": m, "slots": 1} for w, m in zip(p.work, p.memory)]
            limits = {r: kind[r] for r in RESOURCES if r in kind}

            def used(contents: dict[int, int], left: set[int], k: int = k) -> dict[str, int]:
                return {name: x for name, x, _ in p.loads(k, contents, left)}

            no_packing(top, own, limits, used, [worth], [most[k]], cut["contents"][k])
    money, prices = ceil(bound) - 1, [kind["price"] for kind in p.kinds]
    top = [min(kind["at_most"], money // price) for kind, price in zip(p.kinds, prices)]

    def spent(contents: dict[int, int], _: set[int]) -> dict[str, int]:
        return {"money": sum(prices[k] * a for k, a in contents.items())}

    demand = [sum(x * a for x, a in zip(worth, p.pieces, strict=True)) - 1 for worth, _ in cuts]
    own = [{"money": price} for price in prices]
    no_packing(top, own, {"money": money}, spent, [m for _, m in cuts], demand, proof["numbers"])


def check(paths: list[str]) -> str:
    """Check the files; return value, bound and gap in one line."""
    for path in map(Path, paths):
        small = path.is_file() and path.stat().st_size <= BYTES
        need(small, f"a file is larger than {BYTES} bytes, or no file")
    documents = [json.loads(Path(path).read_bytes()) for path in paths]
    p, objective = Instance(documents[0]), documents[0]["objective"]
    judge, prove = CLASSES[objective]
    value = judge(p, documents[1])
    line = f"{objective} {shown(value)}"
    if len(paths) == 2:
        return line
    text = str(documents[2]["bound"])
    need(
        re.fullmatch(r"\d{1,99}(\.\d{1,99}|/[1-9]\d{0,98})?", text, re.ASCII),
        "the bound is no number",
    )
    bound = Fraction(text)
    if objective != "throughput" or bound < 1:
        prove(p, bound, documents[2]["proof"])
    gap = float(abs(value - bound) / (value or 1))
    return f"{line} bound {shown(bound)} gap {gap:.3%}"


def shown(value: Fraction) -> str:
    """Return a number in twelve digits, and exactly where that is short."""
    return f"{float(value):.12g}" + (f" = {value}" if "/" in str(value)[:60] else "")


CLASSES: dict[str, Any] = {
    "throughput": (throughput, no_placement),
    "makespan": (makespan, no_schedule),
    "plan": (plan, no_plan),
}


def main(paths: list[str]) -> int:
    """Check the files that are named; return the exit status."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(SECONDS)
    try:
        need(len(paths) in (2, 3), "usage: python check.py INSTANCE SOLUTION [CERTIFICATE]")
        print("accepted:", check(paths))
    except (Exception, KeyboardInterrupt) as error:  # whatever is wrong with a file of a stranger
        print(ascii(f"refused: {error} ({type(error).__name__})")[1:-1][:300])
        return 1
    finally:
        signal.alarm(0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
