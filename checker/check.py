"""Check a placement, and a bound that no placement beats, in exact fractions.

    python check.py INSTANCE SOLUTION [CERTIFICATE]        three JSON files

One line states value, bound and gap (exit status 0), or why a file is refused (1). Numbers are the
decimal fractions that are written, and are never rounded. Nothing of a solver is trusted.

**Instance.** Operators v, streams e = (u, v) without cycles, devices d. A tuple takes v on d
c(v,d) = ipt / (mips 10^6) core seconds, or `seconds[v][d]`. Operators without inputs are sources of
`rate` tuples/s. λ(v) = Σ τ(e) over inputs, τ(e) = selectivity λ(u). Those that fire "all" take one
tuple of each input: λ(v) = max τ(e), inputs agree to 10^-6, all sources that lead there form one
group. The fields are those of streamplace's problem documents, in plain numbers of SI units.

**Placement.** A device for every operator, among those `allowed`; `colocate` on one device,
`exlocate` on different ones; the memory of a device suffices for its operators, to 10^-9 of it.

**Throughput**, to be maximised. Loads per tuple/s: device c/cores; core of v c/parallelism; stream
between devices a ≠ b: link gap + 8 payload/bandwidth, egress of a and ingress of b 8 payload/limit,
devices a and b overhead/cores. Group g of sources runs at the share x_g ≤ 1 of its total rate R_g;
Σ_g x_g load_g ≤ 1 on each resource. All x_g rise from 0 together; those that use a resource stop
when it is full. Value: Σ x_g R_g / Σ R_g, with one group min(1, 1 / max load).

**Makespan**, to be minimised. A pass is σ = 1 / max rate seconds' worth. v runs w = σ λ c seconds
on a core after all inputs arrived: at once from its own device, else after latency + σ τ (8 payload
/ min(bandwidth, egress, ingress) + gap + 2 overhead). Devices start operators by falling
`priority`, transfers do not wait for each other. The bounds hold for any priorities.

A stated `value` may be rounded, to ten digits or more; a stated `bound` is proven as it is stated.

**Certificates** state a `bound` and a `proof`, from which the bound is derived here once more.

`trivial` (throughput): 1. `dual` (throughput): for any multipliers π ≥ 0 of resources,
Σ x_g R_g ≤ Σ π + Σ_g max(0, R_g - φ_g), where φ_g is at most Σ π load_g of any placement:
φ_g = Σ_v min_d (π-weighted load of v on d + messages) + Σ_e min_ab (π-weighted load of e from a to
b - messages). Any messages are valid: weak duality for the linear relaxation of the assignment.
`search` (throughput of one group): the operators in the given `order` on all devices, of empty
interchangeable ones the first; a branch ends where a resource is full at x = bound, a neighbour of
the last operator has no device left, or the rest exceeds all devices together (by `weights`).

`path` (makespan): the longest path of least times. `interval`: with w(v,d) weighted by g_d ≥ 0, the
`operators` of a set need start + Σ_v min_d g_d w(v,d) / Σ_d g_d cores_d + rest, start and rest
being the least times before and after any of them by their longest paths. `search`: operators in
the order of their starts; a branch ends where an operator and its longest path to the end, or all
remaining work by `weights`, cannot end before the bound. A search has 10^7 nodes at most.
"""

import signal
import sys
from collections import defaultdict
from fractions import Fraction
from itertools import product
from typing import Any

from check_instance import Problem, amount, integers, need, number, read, row
from check_search import PassSearch, ThroughputSearch

SECONDS = 3600


def throughput(p: Problem, place: list[int]) -> Fraction:
    """Value of a placement: rates rise until resources are full, max-min fair."""
    load: dict[tuple, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    ends = [
        (p.tuples[e], p.sends(e, place[u], place[v])) for e, (u, v, _, _) in enumerate(p.streams)
    ]
    for flow, uses in ends + [(p.inflow[v], p.uses(v, d)) for v, d in enumerate(place)]:
        for (r, x), (g, rate) in product(uses, flow.items()):
            if x * rate:
                load[r][g] += x * rate
    reached: dict[int, Fraction] = {}
    while rising := set(p.rates) - set(reached):
        level, stopped = Fraction(1), rising
        for flow in load.values():
            if users := rising & set(flow):
                used = sum(flow[g] * reached[g] for g in set(flow) - users)
                full = (1 - used) / sum(flow[g] for g in users)
                stopped = (
                    users if full < level else stopped | users if full == level < 1 else stopped
                )
                level = min(level, full)
        reached.update(dict.fromkeys(stopped, level))
    return sum(p.rates[g] * x for g, x in reached.items()) / sum(p.rates.values())


def dual_bound(p: Problem, proof: dict[str, Any]) -> Fraction:
    """Bound of a throughput by multipliers of resources, and messages at the ends of streams."""
    names = {"core": [p.op], "link": [p.dev, p.dev]}
    pi: dict[Any, Fraction] = defaultdict(Fraction)
    for kind, *where, weight in proof["multipliers"]:
        indexes = names.get(kind, [p.dev])
        pi[kind, *(index[name] for index, name in zip(indexes, where, strict=True))] = weight
    need(all(isinstance(x, Fraction) and x >= 0 for x in pi.values()), "a multiplier is negative")
    total, messages = sum(pi.values()), proof.get("messages", [])
    keys = [(int(e), int(g)) for e, g, _, _ in messages]
    need(
        len(set(keys)) == len(keys) and all(min(key) >= 0 for key in keys), "a message is repeated"
    )
    for position, (g, rate) in enumerate(p.rates.items()):
        at = {
            (v, d): p.inflow[v].get(g, 0) * sum(pi[r] * x for r, x in p.uses(v, d))
            for v in range(p.n)
            for d in p.allowed[v]
        }
        phi = Fraction(0)
        for e, source, target in [(int(m[0]), m[2], m[3]) for m in messages if m[1] == position]:
            u, w, _, _ = p.streams[e]
            phi += min(
                p.tuples[e].get(g, 0) * sum(pi[r] * x for r, x in p.sends(e, a, b))
                - source[a]
                - target[b]
                for a, b in product(p.allowed[u], p.allowed[w])
            )
            for v, message in ((u, source), (w, target)):
                for d in p.allowed[v]:
                    at[v, d] += message[d]
        phi += sum(min(at[v, d] for d in p.allowed[v]) for v in range(p.n))
        total += max(Fraction(0), rate - phi)
    return total / sum(p.rates.values())


def makespan(p: Problem, place: list[int], priority: list[Fraction]) -> Fraction:
    """Value of a placement whose devices start their operators by falling priority."""
    need(len(set(priority)) == p.n, "priorities are missing or equal")
    scale, work, send = integers(*p.one_pass())
    lines = [
        [v for _, v in sorted(zip(priority, range(p.n), strict=True)) if place[v] == d]
        for d in range(p.k)
    ]
    free, start, end = [[0] * int(c) for c in p.cores], [0] * p.k, dict[int, int]()
    while len(end) < p.n:
        before = len(end)
        for d, line in enumerate(lines):
            while line and all(p.streams[e][0] in end for e in p.into[line[-1]]):
                v = line.pop()
                inputs = [end[u] + send[e, place[u], d][0] for e, u in p.inputs(v)]
                start[d] = max([start[d], min(free[d]), *inputs])
                end[v] = free[d][free[d].index(min(free[d]))] = start[d] + work[v, d][0]
        need(len(end) > before, "the priorities contradict the streams")
    return Fraction(max(end.values()), scale)


def pass_bound(p: Problem, bound: Fraction, proof: dict[str, Any]) -> Fraction:
    """Bound of a makespan by a path, an interval or a search."""
    if proof["kind"] == "search":
        PassSearch(p, bound, proof).visit(0, -1)
        return bound
    scale, work, send = integers(*p.one_pass())
    head, tail = p.paths(work, send)
    times = [[(head[v, d], work[v, d][0], tail[v, d], d) for d in p.allowed[v]] for v in range(p.n)]
    if proof["kind"] == "path":
        return Fraction(max(min(h + w + t for h, w, t, _ in line) for line in times), scale)
    need(proof["kind"] == "interval", "this kind of proof does not exist")
    chosen = [times[v] for v in {p.op[name] for name in proof["operators"]}]
    weight = [amount({"": x}, "") for x in proof["weights"]]
    speed = sum(weight[d] * p.cores[d] for d in {d for line in chosen for _, _, _, d in line})
    before = min(h for line in chosen for h, _, _, _ in line)
    after = min(t for line in chosen for _, _, t, _ in line)
    least = sum(min(w * weight[d] for _, w, _, d in line) for line in chosen)
    return (before + least / speed + after) / scale


def derived(p: Problem, objective: str, stated: Fraction, proof: dict[str, Any]) -> Fraction:
    """Bound that a proof yields."""
    if objective == "throughput" and proof["kind"] == "trivial":
        return Fraction(1)
    if objective == "makespan":
        return pass_bound(p, stated, proof)
    if proof["kind"] == "dual":
        return dual_bound(p, proof)
    need(proof["kind"] == "search", "this kind of proof does not exist")
    ThroughputSearch(p, stated, proof).visit(0)
    return stated


def check(paths: list[str]) -> str:
    """Check the files; return value, bound and gap in one line."""
    p, solution = Problem(read(paths[0], "instance")), read(paths[1], "solution")
    objective, assignment = solution["objective"], solution["assignment"]
    need(objective in ("throughput", "makespan"), "the objective is not throughput or makespan")
    need(set(assignment) == set(p.op), "the assignment does not name every operator")
    place = [p.dev[assignment[name]] for name in p.op]
    need(p.legal(place), "the placement breaks a rule")
    if objective == "makespan":
        need(solution["queue"] == "order", "queue is not 'order'")
        value = makespan(
            p, place, [amount(solution["priority"], name, least=-(10**15)) for name in p.op]
        )
    else:
        value = throughput(p, place)
    need(rounded(value, solution["value"]), f"the value is {float(value)!r}, not as stated")
    if len(paths) == 2:
        return f"{objective} {shown(value)}"
    certificate = read(paths[2], "certificate")
    need(certificate["objective"] == objective, "the certificate is for another objective")
    stated = certificate["bound"]
    stated = number(stated) if isinstance(stated, str) else amount(certificate, "bound")
    bound = derived(p, objective, stated, row("proof", certificate["proof"]))
    sign = 1 if objective == "throughput" else -1
    need(sign * bound <= sign * stated, f"the proof yields {float(bound)!r}, not the stated bound")
    need(sign * (stated - value) >= 0, "the value is better than the bound")
    gap = abs(stated - value) / value if value else abs(stated)
    return f"{objective} {shown(value)} bound {shown(stated)} gap {float(gap):.3%}"


def rounded(value: Fraction, stated: Any) -> bool:
    """Whether a value is the stated number, or rounds to it in ten significant digits."""
    return isinstance(stated, Fraction) and abs(value - stated) * 10**10 <= abs(value)


def shown(value: Fraction) -> str:
    """Number in twelve digits, and exactly where that is short."""
    exact = str(value)
    return f"{float(value):.12g}" + (f" = {exact}" if "/" in exact and len(exact) <= 60 else "")


def late(*_: object) -> None:
    """End a check that takes too long."""
    raise TimeoutError(f"the check takes more than {SECONDS} s")


def main(arguments: list[str]) -> int:
    """Check the files that are named; return the exit status."""
    if len(arguments) not in (2, 3):
        print("usage: python check.py INSTANCE SOLUTION [CERTIFICATE]")
        return 1
    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        print("accepted:", check(arguments))
    except Exception as error:  # whatever is wrong with a file of a stranger, it is refused
        message = f"refused: {error or 'no reason given'} ({type(error).__name__})"
        print(ascii(message)[1:-1][:300])
        return 1
    finally:
        signal.alarm(0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
