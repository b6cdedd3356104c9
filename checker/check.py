"""Check a solution of a placement problem, and a bound that no solution beats, exactly.

    python check.py INSTANCE SOLUTION [CERTIFICATE]        three JSON files

One line states value, bound and gap (exit status 0), or why a file is refused (1). All amounts are
whole numbers from 0 on, nothing is rounded, and nothing that a solver states is trusted.

**Instance**: `objective`; `second`, the units of time in a second; `kinds` of machines with limits
`cpu` (units/s), `memory`, `slots`, `out` and `in` (bits/s), none where missing; `devices`, the kind
of each; `links[k][m]`, units per bit and latency from a device of kind k to another of kind m;
`operators` with `pieces` p (1 except in plans), and of each piece `memory` and `work[k]` (null: not
on this kind); `streams` [u, v, b], u < v: b bits from each piece of u to each piece of v.
**Loads** of a machine that runs a(v) pieces of operators v: cpu Σ a(v) work(v), memory, slots
Σ a(v), out Σ b a(u) (p(v) - a(v)), in Σ b a(v) (p(u) - a(u)). The streams from a device to another
load their link by Σ b times units per bit; the limit is `second`.

**Throughput**, to be maximised: `place` has the device of every operator; work and bits are those
of a second at full rate. The value is the share of the full rate at which the first limit is met,
min(1, min limit / load), but 0, which is refused, where memory or slots do not suffice.
**Makespan**, to be minimised: `place`, and the `order` in which operators start. An operator starts
when its inputs have arrived (latency + b units per bit after their ends, 0 on the same device) and
its device has ended what it started before. It takes its work. The value is the last end.
**Plan**, to be minimised: `machines` are pairs of a kind and the pieces [[v, a], ...] on it. All
pieces run within the limits. The value is the sum of `price`; at most `at_most` of a kind are used.

**Certificate**: a `bound`, such as 7, "0.8" or "4/5", and a `proof`: numbers for a check that tries
all that could be better. Any `order`, `weights` and `worth` are valid; good ones end it soon.
*Throughput, makespan*: a search places one operator after another on every device, but only on one
of the unused devices of a kind, which are alike. It goes back where no completion beats the bound.
For throughput, that is where what is placed carries no more than the bound, since more operators
only add to loads; or where Σ g(k) work, with `weights` g of kinds and the least for the rest, times
the bound is at least Σ g(k) cpu of all devices, since share times work is within cpu on each.
For makespans, operators are placed in the order of their starts: to sort a schedule so changes no
start. It goes back where one starts before the last. The rest starts no earlier than that, nor
before its inputs arrive from their best kinds, at once within a kind. It goes back where one then
ends too late, or where the least Σ g(k) work of the rest is more than Σ g(k) time of all devices
from the last start, and from the end of what they run, to the bound.
*Plan*: with a `worth` w(v) of pieces, and `weights` y of cpu, memory and slots for each kind, the
contents of a machine are worth Σ a w = Σ y load + Σ a (w - y needs), which is at most M = Σ y limit
+ Σ p max(0, w - y needs) over operators that may run on its kind. Machines with Σ M < Σ p w do not
hold all pieces. This must be so for all numbers of machines that cost less than the bound.
"""

import json
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count, product
from math import ceil, inf, prod
from pathlib import Path
from typing import Any

SECONDS, BYTES, NODES, LARGEST = 3600, 1 << 29, 10**7, 10**40
Numbers = dict[int, int]
BETTER, LONG = "a solution is better than the bound", "a search takes too many nodes"


class RefusedError(Exception):
    """A file is refused; the message says why."""


def need(condition: object, message: str) -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise RefusedError(message)


def whole(x: Any, least: int = 0, below: int = LARGEST) -> int:
    """Return a whole number within its range."""
    if type(x) is not int or not least <= x < below:
        raise RefusedError(f"{str(x)[:40]} is no whole number in its range")
    return x


def wholes(line: Any, n: int, below: int = LARGEST) -> list[int]:
    """Return a list of so many whole numbers."""
    need(len(line) == n, f"a list has {len(line)} entries, not {n}")
    return [whole(x, 0, below) for x in line]


class Instance:
    """Machines, operators and streams; `work` has the kinds on which an operator may run."""

    def __init__(self, document: dict[str, Any]) -> None:
        rows, pieces = document["operators"], 10**6 if document["objective"] == "plan" else 1
        self.second, self.n = whole(document["second"], 1), len(rows)
        self.kinds = [{name: whole(x) for name, x in kind.items()} for kind in document["kinds"]]
        self.links = [[wholes(pair, 2) for pair in line] for line in document["links"]]
        self.devices = [whole(k, 0, len(self.kinds)) for k in document["devices"]]
        self.pieces = [whole(row["pieces"], 1, pieces + 1) for row in rows]
        self.memory = [whole(row["memory"]) for row in rows]
        self.work = [
            {k: whole(x) for k, x in enumerate(row["work"]) if x is not None} for row in rows
        ]
        self.into, self.out = ([list[tuple[int, int]]() for _ in rows] for _ in range(2))
        for u, v, bits in document["streams"]:
            self.out[whole(u)].append((whole(v, u + 1, self.n), whole(bits)))
            self.into[v].append((u, bits))

    def loads(self, machines: list[tuple[int, Numbers]]) -> Iterator[tuple[str, int, Any]]:
        """Loads of machines, with limits, by the pieces that are on any of them."""
        placed = Counter[int]()
        for _, contents in machines:
            placed.update(contents)
        for kind, contents in machines:
            total = Counter(slots=sum(contents.values()))
            for v, a in contents.items():
                need(kind in self.work[v], "an operator is where it may not run")
                total["cpu"] += a * self.work[v][kind]
                total["memory"] += a * self.memory[v]
                for way, streams in (("out", self.out[v]), ("in", self.into[v])):
                    for u, bits in streams:
                        total[way] += bits * a * (placed[u] - contents.get(u, 0))
            yield from ((name, x, self.kinds[kind].get(name, inf)) for name, x in total.items())

    def share(self, place: Numbers) -> Fraction:
        """Share of the full rate that the operators carry which are placed."""
        machines: list[tuple[int, Numbers]] = [(k, {}) for k in self.devices]
        links, share = Counter[tuple[int, int]](), Fraction(1)
        for v, d in place.items():
            machines[d][1][v] = 1
            for u, bits in self.into[v]:
                if place.get(u, d) != d:
                    per_bit, _ = self.links[self.devices[place[u]]][self.devices[d]]
                    links[place[u], d] += bits * per_bit
        limits = [*self.loads(machines), *(("link", x, self.second) for x in links.values())]
        for name, x, limit in limits:
            if x > limit:
                share = min(share, Fraction(0 if name in ("memory", "slots") else limit, x))
        return share

    def arrival(self, end: int, bits: int, k: int, m: int) -> int:
        """When a stream has arrived that is sent at a time from a device to another."""
        per_bit, latency = self.links[k][m]
        return end + latency + bits * per_bit

    def schedule(self, place: Numbers) -> tuple[Numbers, Numbers, list[int]]:
        """Starts and ends of operators that are started in turn; last ends of devices."""
        start, end, free = Numbers(), Numbers(), [0] * len(self.devices)
        for v, d in place.items():
            need(self.devices[d] in self.work[v], "an operator is where it may not run")
            start[v] = free[d]
            for u, bits in self.into[v]:
                need(u in end, "an operator starts before its inputs")
                if place[u] != d:
                    kinds = self.devices[place[u]], self.devices[d]
                    start[v] = max(start[v], self.arrival(end[u], bits, *kinds))
            end[v] = free[d] = start[v] + self.work[v][self.devices[d]]
        return start, end, free


def throughput(p: Instance, solution: dict[str, Any]) -> Fraction:
    """Share of the full rate that a placement carries."""
    share = p.share(dict(enumerate(wholes(solution["place"], p.n, len(p.devices)))))
    need(share, "a device has too little memory, too few slots, or none of a resource")
    return share


def makespan(p: Instance, solution: dict[str, Any]) -> Fraction:
    """Last end of a schedule."""
    place = wholes(solution["place"], p.n, len(p.devices))
    _, end, _ = p.schedule({v: place[v] for v in wholes(solution["order"], p.n, p.n)})
    need(len(end) == p.n, "an operator is missing in the order")
    return Fraction(max(end.values()), p.second)


def plan(p: Instance, solution: dict[str, Any]) -> Fraction:
    """Cost of machines that run all pieces."""
    machines, pieces = list[tuple[int, Numbers]](), Counter[int]()
    for k, pairs in solution["machines"]:
        contents = {whole(v, 0, p.n): whole(a, 1) for v, a in pairs}
        machines.append((whole(k, 0, len(p.kinds)), contents))
        pieces.update(contents)
    for name, x, limit in p.loads(machines):
        need(x <= limit, f"a machine has too little {name}")
    numbers = Counter(k for k, _ in machines)
    need([pieces[v] for v in range(p.n)] == p.pieces, "pieces are missing or too many")
    need(all(x <= p.kinds[k]["at_most"] for k, x in numbers.items()), "machines are too many")
    return Fraction(sum(p.kinds[k]["price"] for k, _ in machines))


def search(p: Instance, following: Callable[..., Any], ends: Callable[..., bool]) -> None:
    """Try all ways to place operators, one that follows at a time, but for those that end."""
    nodes = count(1)

    def extend(place: Numbers) -> None:
        need(next(nodes) <= NODES, LONG)
        if not ends(place):
            need(len(place) < p.n, BETTER)
            unused = {k: d for d, k in enumerate(p.devices) if d not in place.values()}
            for v in following(place):
                for d in {*place.values(), *unused.values()}:
                    if p.devices[d] in p.work[v]:
                        extend(place | {v: d})

    extend({})


def no_placement(p: Instance, bound: Fraction, proof: dict[str, Any]) -> None:
    """Search for a placement that carries more than a bound."""
    order, weights = wholes(proof["order"], p.n, p.n), wholes(proof["weights"], len(p.kinds))
    need(len({*order}) == p.n, "an operator is missing in the order")
    least = [min(weights[k] * x for k, x in work.items()) for work in p.work]
    room = sum(weights[k] * p.kinds[k]["cpu"] for k in p.devices)

    def ends(place: Numbers) -> bool:
        used = sum(weights[p.devices[d]] * p.work[v][p.devices[d]] for v, d in place.items())
        work = used + sum(least[v] for v in order[len(place) :])
        return 0 < room <= work * bound or p.share(place) <= bound

    search(p, lambda place: [order[len(place)]], ends)


def no_schedule(p: Instance, bound: Fraction, proof: dict[str, Any]) -> None:
    """Search for a schedule that ends before a bound: operators in the order of their starts."""
    most, weights = ceil(bound * p.second) - 1, wholes(proof["weights"], len(p.kinds))
    least = [min(weights[k] * x for k, x in work.items()) for work in p.work]

    def ready(place: Numbers) -> Iterator[int]:
        return (v for v in range(p.n) if v not in place and all(u in place for u, _ in p.into[v]))

    def ends(place: Numbers) -> bool:
        start, end, free = p.schedule(place)
        starts, last = [*start.values()], max(start.values(), default=0)
        rest = [v for v in range(p.n) if v not in place]
        time = (weights[k] * max(0, most - max(last, t)) for k, t in zip(p.devices, free))
        if starts != sorted(starts) or sum(least[v] for v in rest) > sum(time):
            return True
        soonest = {v: {p.devices[d]: end[v]} for v, d in place.items()}  # ends, on each kind
        for v in rest:
            soonest[v] = {}
            for k, x in p.work[v].items():
                arrivals = (
                    min(t if m == k else p.arrival(t, bits, m, k) for m, t in soonest[u].items())
                    for u, bits in p.into[v]
                )
                soonest[v][k] = max([last, *arrivals]) + x
        return any(min(times.values()) > most for times in soonest.values())

    search(p, ready, ends)


def no_plan(p: Instance, bound: Fraction, proof: dict[str, Any]) -> None:
    """Try all numbers of machines that cost less than a bound: they do not hold all pieces."""
    worth, most = wholes(proof["worth"], p.n), list[int]()
    for k, (kind, line) in enumerate(zip(p.kinds, proof["weights"], strict=True)):
        weights = {name: whole(x) for name, x in line.items()}
        most.append(sum(y * kind[name] for name, y in weights.items()))
        for v in (v for v in range(p.n) if k in p.work[v]):
            needs = {"cpu": p.work[v][k], "memory": p.memory[v], "slots": 1}
            cost = sum(y * needs[name] for name, y in weights.items())
            most[k] += p.pieces[v] * max(0, worth[v] - cost)
    total = sum(w * a for w, a in zip(worth, p.pieces))
    tried = [range(min(kind["at_most"], int(bound) // kind["price"]) + 1) for kind in p.kinds]
    need(prod(map(len, tried)) <= NODES, LONG)
    for numbers in product(*tried):
        cost = sum(x * kind["price"] for x, kind in zip(numbers, p.kinds))
        need(cost >= bound or sum(x * m for x, m in zip(numbers, most)) < total, BETTER)


VALUES = {"throughput": throughput, "makespan": makespan, "plan": plan}
PROOFS = {"throughput": no_placement, "makespan": no_schedule, "plan": no_plan}


def of_file(role: str, path: str, check: Callable[[Any], Any]) -> Any:
    """Check a file; an error says which, whatever is wrong with a file of a stranger."""
    try:
        need(Path(path).is_file() and Path(path).stat().st_size <= BYTES, "too large, or no file")
        return check(json.loads(Path(path).read_bytes()))
    except (Exception, KeyboardInterrupt) as error:
        raise RefusedError(f"{role}: {error} ({type(error).__name__})") from None


def check(paths: list[str]) -> str:
    """Check the files; return value, bound and gap in one line."""
    need(len(paths) in (2, 3), "usage: python check.py INSTANCE SOLUTION [CERTIFICATE]")
    p, objective, value_of = of_file(
        "instance", paths[0], lambda x: (Instance(x), x["objective"], VALUES[x["objective"]])
    )
    value = of_file("solution", paths[1], lambda x: value_of(p, x))

    def proven(certificate: dict[str, Any]) -> Fraction:
        text = str(certificate["bound"])
        need(len(text) < 80 and {*text} <= {*"0123456789./"}, "the bound is no number")
        bound = Fraction(text)
        PROOFS[objective](p, bound, certificate["proof"])
        return bound

    line = f"{objective} {float(value):.12g} = {value}"
    for path in paths[2:]:
        bound = of_file("certificate", path, proven)
        gap = float(abs(value - bound) / (value or 1))
        line += f" bound {float(bound):.12g} = {bound} gap {gap:.3%}"
    return line


def main(paths: list[str]) -> int:
    """Check the files that are named; return the exit status."""
    try:
        print(f"accepted: {check(paths)}")
        return 0
    except RefusedError as error:
        print(ascii(f"refused: {error}")[1:-1][:300])
        return 1


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(SECONDS)
    sys.exit(main(sys.argv[1:]))
