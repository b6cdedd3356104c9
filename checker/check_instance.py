"""Read an instance, and say what operators and streams ask of devices and links; see check.py."""

import json
import re
from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import lcm
from pathlib import Path
from typing import Any

Use = tuple[tuple[Any, ...], Fraction]
Table = dict[Any, list[Fraction]]
BYTES, CELLS, BITS = 1 << 26, 1 << 22, 1 << 15
FIELDS = {
    "instance": "graph cluster constraints seconds",
    "graph": "name operators streams fires",
    "operator": "name ipt payload rate parallelism memory fires",
    "stream": "from to selectivity payload",
    "cluster": "devices links bandwidth latency overhead gap",
    "device": "name mips cores memory egress ingress",
    "link": "from to bandwidth latency",
    "constraints": "allowed colocate exlocate",
    "solution": "graph placer objective value priority queue assignment",
    "certificate": "graph objective bound proof",
    "proof": "kind multipliers messages order weights operators",
}


class RefusedError(Exception):
    """A file is refused; the message says why."""


def need(condition: object, message: str) -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise RefusedError(message)


def number(text: str) -> Fraction:
    """Read a decimal number or a fraction of bounded size."""
    form = r"-?\d{1,4000}(/[1-9]\d{0,3999}|(\.\d{1,400})?([eE][+-]?\d{1,3})?)"
    need(re.fullmatch(form, text, re.ASCII), f"{text[:40]} is not a number of reasonable length")
    return Fraction(text)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object of a document, without repeated fields."""
    need(len(dict(pairs)) == len(pairs), f"a field is repeated in {[key for key, _ in pairs][:9]}")
    return dict(pairs)


def read(path: str, kind: str) -> dict[str, Any]:
    """Document of a file."""
    with Path(path).open("rb") as file:
        content = file.read(BYTES + 1)
    need(len(content) <= BYTES, f"the {kind} is larger than {BYTES} bytes")
    hooks = {"parse_float": number, "parse_int": number, "parse_constant": number}
    return row(kind, json.loads(content, object_pairs_hook=unique, **hooks))


def row(kind: str, value: Any) -> dict[str, Any]:
    """Return an object of a kind, whose fields are all known."""
    need(isinstance(value, dict), f"{kind}: not an object")
    strange = set(value) - set(FIELDS[kind].split())
    need(not strange, f"{kind}: the model has no field {sorted(strange)[:1]}")
    return dict(value)


def rows(kind: str, value: Any) -> list[dict[str, Any]]:
    """Return a list of objects of a kind."""
    need(isinstance(value, list), f"{kind}: not in a list")
    return [row(kind, item) for item in value]


def amount(value: dict[str, Any], name: str, usual: int = 0, least: float = 0) -> Fraction:
    """Return the number of a field, within its range."""
    quantity = value.get(name, Fraction(usual))
    need(isinstance(quantity, Fraction), f"{name} is not a number")
    need(least <= quantity <= 10**15 or name not in value, f"{name} is out of range")
    return Fraction(quantity)


def indexed(items: list[dict[str, Any]]) -> dict[str, int]:
    """Index of every name."""
    index = {item["name"]: i for i, item in enumerate(items)}
    need(items and len(index) == len(items), "names are missing or repeated")
    return index


class Problem:
    """An instance: names as numbers, all amounts as fractions."""

    def __init__(self, document: dict[str, Any]) -> None:
        graph, cluster = row("graph", document["graph"]), row("cluster", document["cluster"])
        operators = rows("operator", graph["operators"])
        devices = rows("device", cluster["devices"])
        self.op, self.dev = indexed(operators), indexed(devices)
        self.n, self.k = len(operators), len(devices)
        need(max(self.n, self.k) * self.k <= CELLS, "too many operators and devices")
        self.rate = [amount(v, "rate") for v in operators]
        self.memory = [amount(v, "memory") for v in operators]
        self.parallel = [amount(v, "parallelism", 1, 1) for v in operators]
        self.room = [amount(d, "memory", 10**30) for d in devices]
        self.cores = [amount(d, "cores", 1, 1) for d in devices]
        need(all(c.denominator == 1 and c < 10**4 for c in self.cores), "cores are not whole")
        self.overhead, self.gap = amount(cluster, "overhead"), amount(cluster, "gap")
        if "seconds" in document:
            self.cost = [[amount({"": c}, "") for c in line] for line in document["seconds"]]
        else:
            speed = [amount(d, "mips", 2500, 1e-15) * 10**6 for d in devices]
            self.cost = [[amount(v, "ipt") / s for s in speed] for v in operators]
        need([len(line) for line in self.cost] == [self.k] * self.n, "seconds has another shape")
        self.network(cluster, devices)
        self.rules(row("constraints", document.get("constraints", {})))
        self.streams = [
            (
                self.op[e["from"]],
                self.op[e["to"]],
                amount(e, "selectivity", 1),
                8 * amount(e if "payload" in e else operators[self.op[e["from"]]], "payload"),
            )
            for e in rows("stream", graph.get("streams", []))
        ]
        fires = [v.get("fires", graph.get("fires", "each")) for v in operators]
        need(set(fires) <= {"each", "all"}, "fires is neither each nor all")
        self.arrange([rule == "all" for rule in fires])

    def network(self, cluster: dict[str, Any], devices: list[dict[str, Any]]) -> None:
        """Seconds per bit and latency of links, seconds per bit of network cards."""
        self.card = [
            [1 / amount(d, way, 1, 1e-15) if way in d else Fraction(0) for d in devices]
            for way in ("egress", "ingress")
        ]
        pairs = list(product(range(self.k), repeat=2))
        self.wire = dict.fromkeys(pairs, 1 / amount(cluster, "bandwidth", 10**9, 1e-15))
        self.latency = dict.fromkeys(pairs, amount(cluster, "latency"))
        for link in rows("link", cluster.get("links", [])):
            pair = self.dev[link["from"]], self.dev[link["to"]]
            if "bandwidth" in link:
                self.wire[pair] = 1 / amount(link, "bandwidth", 1, 1e-15)
            if "latency" in link:
                self.latency[pair] = amount(link, "latency")

    def rules(self, rules: dict[str, Any]) -> None:
        """Devices of every operator, and groups that must be together or apart."""
        self.allowed = [set(range(self.k)) for _ in range(self.n)]
        for name, devices in rules.get("allowed", {}).items():
            self.allowed[self.op[name]] &= {self.dev[d] for d in devices}
        need(all(self.allowed), "an operator has no device")
        self.together, self.apart = (
            [{self.op[v] for v in group} for group in rules.get(key, [])]
            for key in ("colocate", "exlocate")
        )

    def inputs(self, v: int) -> list[tuple[int, int]]:
        """Streams into an operator, and the operators from which they come."""
        return [(e, self.streams[e][0]) for e in self.into[v]]

    def arrange(self, joins: list[bool]) -> None:
        """Put operators in an order in which inputs come first, and let the tuples flow."""
        self.into: list[list[int]] = [[] for _ in joins]
        self.out: list[list[int]] = [[] for _ in joins]
        for e, (u, v, _, _) in enumerate(self.streams):
            self.into[v].append(e), self.out[u].append(e)
        waiting = [len(inputs) for inputs in self.into]
        self.order = [v for v in range(self.n) if not waiting[v]]
        for u in self.order:
            for e in self.out[u]:
                waiting[v := self.streams[e][1]] -= 1
                if not waiting[v]:
                    self.order.append(v)
        need(len(self.order) == self.n, "the streams form a cycle")
        self.flow(joins)

    def groups(self, joins: list[bool]) -> list[int]:
        """Group of every operator: all that lead to an operator with several inputs are one."""
        group = list(range(self.n))
        leads = [joins[v] and len(inputs) > 1 for v, inputs in enumerate(self.into)]
        for v in reversed(self.order):
            for _, u in self.inputs(v) if leads[v] else []:
                leads[u], old = True, group[u]
                group = [group[v] if g == old else g for g in group] if old != group[v] else group
        return group

    def flow(self, joins: list[bool]) -> None:
        """Rates of operators and streams by group of sources."""
        group = self.groups(joins)
        self.rates: dict[int, Fraction] = defaultdict(Fraction)
        self.inflow: list[dict[int, Fraction]] = [defaultdict(Fraction) for _ in joins]
        self.tuples: list[dict[int, Fraction]] = [{} for _ in self.streams]
        for v, rate in enumerate(self.rate):
            need(bool(self.into[v]) != (rate > 0), "sources, and only they, need a rate")
            if rate:
                self.rates[group[v]] += rate
                self.inflow[v][group[v]] = rate
        for v in self.order:
            for e in self.into[v]:
                self.arrive(v, e, joins[v] and e != self.into[v][0])
            for e in self.out[v]:
                self.tuples[e] = {g: self.streams[e][2] * x for g, x in self.inflow[v].items()}
            long = any(max(x.as_integer_ratio()) >> BITS for x in self.inflow[v].values())
            need(not long, "rates have too many digits for exact arithmetic")

    def arrive(self, v: int, e: int, again: bool) -> None:
        """Add what a stream brings; another input of a join must bring as much as the first."""
        for g, tuples in self.tuples[e].items():
            low, high = sorted((tuples, self.inflow[v][g]))
            need(not again or high - low <= high / 10**6, "inputs of an operator do not agree")
            self.inflow[v][g] = high if again else tuples + self.inflow[v][g]

    def legal(self, place: list[int]) -> bool:
        """Whether a device for every operator respects all rules."""
        used = [Fraction(0)] * self.k
        for memory, d in zip(self.memory, place, strict=True):
            used[d] += memory
        return (
            all(d in allowed for d, allowed in zip(place, self.allowed, strict=True))
            and all(len({place[v] for v in group}) <= 1 for group in self.together)
            and all(len({place[v] for v in group}) == len(group) for group in self.apart)
            and all(u <= r * (1 + Fraction(1, 10**9)) for u, r in zip(used, self.room, strict=True))
        )

    def uses(self, v: int, d: int) -> list[Use]:
        """Resources that a tuple/s of an operator uses on a device, and how much."""
        seconds = self.cost[v][d]
        return [(("device", d), seconds / self.cores[d]), (("core", v), seconds / self.parallel[v])]

    def sends(self, e: int, a: int, b: int) -> list[Use]:
        """Resources that a tuple/s of a stream uses from device a to device b, and how much."""
        bits = self.streams[e][3]
        uses = [
            (("link", a, b), self.gap + bits * self.wire[a, b]),
            (("egress", a), bits * self.card[0][a]),
            (("ingress", b), bits * self.card[1][b]),
            (("device", a), self.overhead / self.cores[a]),
            (("device", b), self.overhead / self.cores[b]),
        ]
        return uses if a != b else []

    def one_pass(self) -> tuple[Table, Table]:
        """Times of operators [v, d] and of streams [e, a, b] in one pass, in seconds."""
        need(self.k**2 * len(self.streams) <= CELLS, "too many streams and devices")
        span, devices = 1 / max(self.rate), range(self.k)
        rate = [span * sum(flow.values()) for flow in self.inflow]
        work = {(v, d): [rate[v] * self.cost[v][d]] for v in range(self.n) for d in devices}
        send = {}
        for e, a, b in product(range(len(self.streams)), devices, devices):
            byte = max(self.wire[a, b], self.card[0][a], self.card[1][b])
            tuples, fixed = span * sum(self.tuples[e].values()), self.gap + 2 * self.overhead
            sending = self.latency[a, b] + tuples * (self.streams[e][3] * byte + fixed)
            send[e, a, b] = [Fraction(0) if a == b else sending]
        return work, send

    def paths(self, work: Table, send: Table) -> tuple[dict[Any, int], dict[Any, int]]:
        """Least times from the start to every operator on every device, and from it to the end."""
        head: dict[Any, int] = {}
        tail: dict[Any, int] = {}
        for v, d in product(self.order, range(self.k)):
            before = [
                min(head[u, a] + work[u, a][0] + send[e, a, d][0] for a in self.allowed[u])
                for e, u in self.inputs(v)
            ]
            head[v, d] = max(before, default=0)
        for v, d in product(reversed(self.order), range(self.k)):
            after = [
                min(send[e, d, b][0] + work[u, b][0] + tail[u, b] for b in self.allowed[u])
                for e, u in [(e, self.streams[e][1]) for e in self.out[v]]
            ]
            tail[v, d] = max(after, default=0)
        return head, tail


def integers(*tables: Table) -> list[Any]:
    """Scale, and tables of lists of fractions as integers in units of 1/scale."""
    scale = 1
    for x in (x for table in tables for line in table.values() for x in line):
        scale = lcm(scale, x.denominator)
        need(scale.bit_length() <= BITS, "numbers have too many digits for exact arithmetic")
    return [
        scale,
        *({key: [int(x * scale) for x in line] for key, line in table.items()} for table in tables),
    ]
