"""Bounds of a throughput by linear duality, as multipliers that the checker evaluates exactly.

For multipliers π ≥ 0 of resources, Σ x_g R_g ≤ Σ π + Σ_g max(0, R_g - φ_g) with φ_g at most the
π-weighted load of any placement. With messages m at the ends of streams, which cancel,

    φ_g = Σ_v min_d (π · load(v, d) + m) + Σ_e min_ab (π · load(e, a, b) - m),

so the best π and m solve a linear program: the dual of the relaxation that assigns shares of
operators to devices. Any values are valid, so nothing rests on the solver or on rounding.
"""

from typing import Any

import numpy as np

from streamplace.library.loads import Resource, group_shares, operator_uses, stream_uses
from streamplace.model.arrays import Bools
from streamplace.model.problem import Problem

DIGITS = 9
MOST_ROWS = 40_000
"""Rows of the linear program above which streams have no messages."""


class DualProgram:
    """The linear program of the multipliers; `solve` returns the proof."""

    def __init__(self, problem: Problem) -> None:
        from ortools.linear_solver import pywraplp

        self.problem, self.solver = problem, pywraplp.Solver.CreateSolver("GLOP")
        instance = problem.instance
        self.operator_shares, self.stream_shares, self.weights = group_shares(instance)
        rules = problem.rules
        everywhere = np.ones((instance.n_operators, instance.n_devices), np.bool_)
        self.allowed = everywhere if rules is None else rules.allowed[rules.unit]
        self.pi: dict[Resource, Any] = {}
        self.messages: dict[tuple[int, int], tuple[list[Any], list[Any]]] = {}
        pairs = instance.n_streams * instance.n_devices**2 * instance.n_groups
        self.has_messages = 0 < pairs <= MOST_ROWS

    def free(self, low: float | None = None) -> Any:
        """Return a new variable."""
        infinity = self.solver.infinity()
        return self.solver.NumVar(-infinity if low is None else low, infinity, "")

    def multiplier(self, resource: Resource) -> Any:
        """Return the multiplier of a resource."""
        if resource not in self.pi:
            self.pi[resource] = self.free(0.0)
        return self.pi[resource]

    def weighted(self, uses: list[tuple[Resource, float]], share: float) -> Any:
        """Return the π-weighted load of what one group of sources sends."""
        terms = [self.multiplier(r) * (x * share) for r, x in uses if x * share > 0]
        return self.solver.Sum(terms) if terms else 0.0

    def group(self, g: int) -> Any:
        """Return φ of a group of sources, with the rows that limit it."""
        instance, devices = self.problem.instance, range(self.problem.n_devices)
        extra: dict[tuple[int, int], list[Any]] = {}
        parts: list[Any] = []
        for e in range(instance.n_streams) if self.has_messages else ():
            u, w = int(instance.source[e]), int(instance.target[e])
            message = [self.free() for _ in devices], [self.free() for _ in devices]
            self.messages[int(instance.stream_index[e]), g] = message
            share, part = self.stream_shares[e, g], self.free()
            parts.append(part)
            for a in np.flatnonzero(self.allowed[u]).tolist():
                for b in np.flatnonzero(self.allowed[w]).tolist():
                    load = self.weighted(stream_uses(instance, e, a, b), share)
                    self.solver.Add(part <= load - message[0][a] - message[1][b])
            for d in devices:
                extra.setdefault((u, d), []).append(message[0][d])
                extra.setdefault((w, d), []).append(message[1][d])
        for v in range(instance.n_operators):
            part = self.free()
            parts.append(part)
            for d in np.flatnonzero(self.allowed[v]).tolist():
                load = self.weighted(operator_uses(instance, v, d), self.operator_shares[v, g])
                self.solver.Add(part <= load + self.solver.Sum(extra.get((v, d), [])))
        return self.solver.Sum(parts)

    def solve(self) -> dict[str, Any] | None:
        """Return multipliers and messages as the checker reads them, None where GLOP fails."""
        lacking = []
        for g, weight in enumerate(self.weights.tolist()):
            lack = self.free(0.0)
            self.solver.Add(lack >= weight - self.group(g))
            lacking.append(lack)
        self.solver.Minimize(self.solver.Sum([*self.pi.values(), *lacking]))
        self.solver.SetTimeLimit(20_000)
        if self.solver.Solve() != self.solver.OPTIMAL:
            return None
        return self.proof()

    def proof(self) -> dict[str, Any]:
        """Return the solution, rounded, with names for rows."""
        scale = float(self.problem.instance.rate.sum())
        pi = {r: max(0.0, scale * x.solution_value()) for r, x in self.pi.items()}
        messages: list[list[Any]] = [
            [e, g, *([rounded(scale * x.solution_value()) for x in end] for end in ends)]
            for (e, g), ends in self.messages.items()
        ]
        return {
            "kind": "dual",
            "multipliers": [
                [kind, *self.named(str(kind), where), rounded(x)]
                for (kind, *where), x in pi.items()
                if x > 0
            ],
            "messages": [m for m in messages if any(m[2]) or any(m[3])],
        }

    def named(self, kind: str, where: list[Any]) -> list[str]:
        """Return the names of an operator or of devices."""
        problem = self.problem
        names = problem.graph.operators.name if kind == "core" else problem.cluster.devices.name
        return [names[i] for i in where]


def rounded(x: float) -> float:
    """Return a number in nine digits; what is as good as nothing is 0."""
    return float(f"{x:.{DIGITS}g}") if abs(x) > 1e-12 else 0.0


def dual_value(problem: Problem, proof: dict[str, Any]) -> float:
    """Bound of a proof in floating point; the checker has it exactly."""
    instance = problem.instance
    operator_shares, stream_shares, weights = group_shares(instance)
    rows = {name: v for v, name in enumerate(problem.graph.operators.name)}
    devices = {name: d for d, name in enumerate(problem.cluster.devices.name)}
    pi: dict[Resource, float] = {}
    for kind, *where, weight in proof["multipliers"]:
        index = rows if kind == "core" else devices
        pi[(kind, *(index[name] for name in where))] = weight / float(instance.rate.sum())
    rules = problem.rules
    shape = instance.n_operators, instance.n_devices
    allowed = np.ones(shape, np.bool_) if rules is None else rules.allowed[rules.unit]
    position = {int(i): e for e, i in enumerate(instance.stream_index)}
    total = sum(pi.values())
    for g, weight in enumerate(weights.tolist()):
        at = np.zeros(shape)
        for v, d in np.ndindex(*shape):
            at[v, d] = operator_shares[v, g] * _sum(pi, operator_uses(instance, v, d))
        phi = 0.0
        for number, of_group, source, target in proof["messages"]:
            if of_group == g:
                e = position[number]
                phi += _stream_part(problem, e, stream_shares[e, g], pi, allowed, (source, target))
                at[instance.source[e]] += np.array(source) / float(instance.rate.sum())
                at[instance.target[e]] += np.array(target) / float(instance.rate.sum())
        phi += float(np.where(allowed, at, np.inf).min(axis=1).sum())
        total += max(0.0, weight - phi)
    return total


def _stream_part(
    problem: Problem,
    e: int,
    share: float,
    pi: dict[Resource, float],
    allowed: Bools,
    messages: tuple[list[float], list[float]],
) -> float:
    instance, scale = problem.instance, float(problem.instance.rate.sum())
    return min(
        share * _sum(pi, stream_uses(instance, e, a, b)) - (messages[0][a] + messages[1][b]) / scale
        for a in np.flatnonzero(allowed[instance.source[e]]).tolist()
        for b in np.flatnonzero(allowed[instance.target[e]]).tolist()
    )


def _sum(pi: dict[Resource, float], uses: list[tuple[Resource, float]]) -> float:
    return sum(pi.get(r, 0.0) * x for r, x in uses)
