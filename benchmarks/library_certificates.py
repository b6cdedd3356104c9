"""Certificates of bounds, which the checker verifies without trusting their authors.

Plans and cuts of their cost come from column generation. A column is the contents of a machine of a
kind. The master program covers all pieces by columns, fractionally, at least cost. Its dual values
are the worth of the pieces, and CP-SAT searches for contents that are worth more than their machine
costs (Gilmore and Gomory 1961). The final worths are a cut.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.exact.cpsat import Effort, new_solver, solve_model
from streamplace.planning.bounds import solve_master
from streamplace.planning.cuts import Cut, solve_counts

WORTH = 10**6
"""Worth that corresponds to a cost of 1."""
ROUNDS, TRIES = 200, 12
WORK = 2.0
"""Deterministic time limit of one run of CP-SAT, in seconds."""


class PlanCut(NamedTuple):
    """Worth of a piece of each operator, and the largest worth of contents of each kind."""

    worth: list[int]
    most: list[int]


class PlanColumns:
    """Columns of machine contents, with the cuts that they prove."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document, self.kinds = document, document["kinds"]
        self.pieces = [row["pieces"] for row in document["operators"]]
        self.columns: dict[tuple[int, tuple[int, ...]], None] = {}
        self.cuts: list[PlanCut] = []

    def solve(self) -> None:
        """Generate columns until none helps; the final worths of the pieces are a cut.

        The work of the pieces is another cut, if it is equal on all kinds.
        """
        rows = [row["work"] for row in self.document["operators"]]
        if all(x == row[0] is not None for row in rows for x in row):
            self.cuts.append(PlanCut([row[0] for row in rows], [k["cpu"] for k in self.kinds]))
        for _ in range(ROUNDS):
            worth = self._prices()
            priced = [self._best(k, worth) for k in range(len(self.kinds))]
            helpful = {
                (k, contents): None
                for k, (most, contents) in enumerate(priced)
                if most > self.kinds[k]["price"] * WORTH * (1 + 1e-9)
            }
            if helpful.keys() <= self.columns.keys():
                self.cuts.append(PlanCut(worth, [most for most, _ in priced]))
                return
            self.columns |= helpful

    def plan(self) -> list[list[Any]]:
        """Return the kind and pieces of each machine of a plan; empty if none is found.

        Numbers of machines that satisfy the cuts are tried in order of their cost.
        """
        tried: list[tuple[int, ...]] = []
        while len(tried) < TRIES and (counts := self._numbers(tried)[1]):
            if machines := self._packed(counts):
                return machines
            tried.append(counts)
        return []

    def least_cost(self) -> int:
        """Lower bound on the cost: the cheapest numbers of machines that satisfy all cuts."""
        return self._numbers([])[0]

    def _numbers(self, tried: list[tuple[int, ...]]) -> tuple[int, tuple[int, ...]]:
        """Cheapest untried numbers of machines that satisfy all cuts, after their cost."""
        counts, bound = solve_counts(
            [kind["price"] for kind in self.kinds],
            [(0, min(kind["at_most"], sum(self.pieces))) for kind in self.kinds],
            [
                Cut(
                    tuple(most),
                    sum(w * a for w, a in zip(worth, self.pieces, strict=True)),
                    "contents",
                )
                for worth, most in self.cuts
            ],
            WORK,
            tried=tried,
        )
        return max(0, int(np.ceil(bound - 1e-6))), counts or ()

    def _packed(self, counts: tuple[int, ...]) -> list[list[Any]]:
        """Distribute the pieces over these numbers of machines; empty if CP-SAT finds no way."""
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        kinds = [k for k, count in enumerate(counts) for _ in range(count)]
        contents = [self._contents(model, k) for k in kinds]
        for v, pieces in enumerate(self.pieces):
            model.add(sum(a[v] for a in contents) == pieces)
        for (k, first), (m, second) in pairwise(zip(kinds, contents, strict=True)):
            if k == m:
                model.add(sum(first) >= sum(second))
        value_of = solve_model(model, Effort(None, WORK, workers=1, seed=0)).value_of
        if value_of is None:
            return []
        return [
            [k, [[v, n] for v, x in enumerate(a) if (n := value_of(x))]]
            for k, a in zip(kinds, contents, strict=True)
        ]

    def _prices(self) -> list[int]:
        """Worth of a piece of each operator, the dual values of the master program."""
        prices = [kind["price"] for kind in self.kinds]
        master = solve_master(self.pieces, self.columns, prices, 10.0 * max(prices))
        return [round(value * WORTH) for value in master.worth.tolist()]

    def _best(self, k: int, worth: list[int]) -> tuple[int, tuple[int, ...]]:
        """Upper bound on the worth of contents of a kind, and the best contents found."""
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        a = self._contents(model, k)
        model.maximize(sum(w * x for w, x in zip(worth, a, strict=True)))
        solution = solve_model(model, Effort(None, WORK, workers=1, seed=0))
        most = max(0, int(np.floor(solution.bound + 1e-6)))
        value_of = solution.value_of
        contents = (0,) * len(a) if value_of is None else tuple(value_of(x) for x in a)
        return most, contents

    def _contents(self, model: Any, k: int) -> list[Any]:
        """Variables for the pieces on a machine of a kind, subject to its limits."""
        kind, rows = self.kinds[k], self.document["operators"]
        a = [
            model.new_int_var(0, row["pieces"] if row["work"][k] is not None else 0, "")
            for row in rows
        ]
        terms = {
            "cpu": [(row["work"][k] or 0, x) for row, x in zip(rows, a, strict=True)],
            "memory": [(row["memory"], x) for row, x in zip(rows, a, strict=True)],
            "slots": [(1, x) for x in a],
            **self._traffic(model, kind, a),
        }
        for name, parts in terms.items():
            if name in kind:
                _add_limit(model, parts, kind[name])
        return a

    def _traffic(self, model: Any, kind: dict[str, int], a: list[Any]) -> dict[str, list[Any]]:
        """Terms for the bits that a machine sends and receives, in variables of its contents."""
        out: list[tuple[int, Any]] = []
        into: list[tuple[int, Any]] = []
        for u, v, bits in self.document["streams"] if {"out", "in"} & set(kind) else ():
            product = model.new_int_var(0, self.pieces[u] * self.pieces[v], "")
            model.add_multiplication_equality(product, [a[u], a[v]])
            out += [(bits * self.pieces[v], a[u]), (-bits, product)]
            into += [(bits * self.pieces[u], a[v]), (-bits, product)]
        return {"out": out, "in": into}


def _add_limit(model: Any, parts: list[tuple[int, Any]], limit: int) -> None:
    """Add a limit, with numbers rounded such that CP-SAT can hold them and it is no tighter."""
    largest = max([abs(c) for c, _ in parts] + [1])
    scale = max(1, max(largest, limit) // 2**40)
    if scale == 1:
        model.add(sum(c * x for c, x in parts) <= limit)
    else:
        model.add(sum((c // scale) * x for c, x in parts) <= -(-limit // scale))


WEIGHT = 10**9
"""Largest weight of a kind of machine."""
UNIT = 10**18
"""Factor of a worth; limits are up to 10^16 and more."""


def proof(document: dict[str, Any]) -> dict[str, Any]:
    """Build the proof for a throughput or makespan instance.

    It proves the bounds that the checker accepts with it.
    """
    weights = kind_weights(document)
    if OBJECTIVES[document["objective"]].kind == "pass":
        return {"weights": weights}
    return {"order": search_order(document), "weights": weights}


def kind_weights(document: dict[str, Any]) -> list[int]:
    """Weights of kinds by which the work of all operators is compared with the devices.

    They are optimal for all work: the dual of the fractional assignment.
    """
    work = np.array(
        [[np.inf if x is None else x for x in row["work"]] for row in document["operators"]]
    )
    count = np.bincount(document["devices"], minlength=work.shape[1]).astype(np.float64)
    speed = np.array([kind.get("cpu", document["second"]) for kind in document["kinds"]])
    return [round(WEIGHT * x) for x in _assignment_dual(work, count * speed)]


def _assignment_dual(work: Floats, capacity: Floats) -> list[float]:
    """Weights g of kinds that maximise the least weighted work, subject to Σ g · capacity = 1."""
    if work.shape[1] == 1:
        return [1.0]
    solver = new_solver()
    infinity, largest = solver.infinity(), float(capacity.max())
    weights = [solver.NumVar(0, infinity, "") for _ in capacity]
    unit = float(work[np.isfinite(work)].sum()) or 1.0
    parts = []
    for line in work.tolist():
        part = solver.NumVar(-infinity, infinity, "")
        parts.append(part)
        for weight, x in zip(weights, line, strict=True):
            if np.isfinite(x):
                solver.Add(part <= weight * (x / unit * work.shape[0]))
    shares = [w * (c / largest) for w, c in zip(weights, capacity.tolist(), strict=True)]
    solver.Add(solver.Sum(shares) == 1)
    solver.Maximize(solver.Sum(parts))
    if solver.Solve() != solver.OPTIMAL:
        return [1.0] * len(weights)
    values = [w.solution_value() for w in weights]
    return [max(0.0, x) / max(values) for x in values]


def search_order(document: dict[str, Any]) -> list[int]:
    """Order of operators that fills devices early: next is the one with most traffic to the last.

    The first has the most work; ties are broken by work.
    """
    work = np.array(
        [min(x for x in row["work"] if x is not None) for row in document["operators"]], np.float64
    )
    n = len(work)
    if n > 2000:
        return list(range(n))
    traffic = np.zeros((n, n))
    for u, v, bits in document["streams"]:
        traffic[u, v] += bits
        traffic[v, u] += bits
    heaviest = float(traffic.max(initial=0.0)) or 1.0
    work = work / (float(work.max()) or 1.0)
    attached: Floats = np.zeros(n)
    left, order = set(range(n)), list[int]()
    while left:
        v = max(left, key=lambda u: (attached[u] / heaviest + work[u], -u))
        left.remove(v)
        order.append(v)
        attached += traffic[v]
    return order


def plan_proof(document: dict[str, Any], worth: Sequence[int]) -> dict[str, Any]:
    """Build the proof of the cost of plans for a worth of a piece of each operator."""
    weights = [_limit_weights(document, k, worth) for k in range(len(document["kinds"]))]
    return {"worth": [UNIT * max(0, w) for w in worth], "weights": weights}


def plan_cut(document: dict[str, Any], proof: dict[str, Any]) -> PlanCut:
    """Worth of contents that a proof shows, for each kind of machine."""
    worth, most = [w // UNIT for w in proof["worth"]], []
    for k, (kind, weights) in enumerate(zip(document["kinds"], proof["weights"], strict=True)):
        total = sum(y * kind[r] for r, y in weights.items())
        for w, row in zip(proof["worth"], document["operators"], strict=True):
            if row["work"][k] is not None:
                needs = {"cpu": row["work"][k], "memory": row["memory"], "slots": 1}
                cost = sum(y * needs[r] for r, y in weights.items())
                total += row["pieces"] * max(0, w - cost)
        most.append(-(-total // UNIT))
    return PlanCut(worth, most)


def _limit_weights(document: dict[str, Any], k: int, worth: Sequence[int]) -> dict[str, int]:
    """Weights of the limits of a kind that minimise the worth of its contents.

    They are the dual values of the fractional program without streams.
    """
    kind, rows, solver = document["kinds"][k], document["operators"], new_solver()
    needs = {
        "cpu": [row["work"][k] or 0 for row in rows],
        "memory": [row["memory"] for row in rows],
        "slots": [1] * len(rows),
    }
    limits = {r: solver.Constraint(0.0, 1.0) for r in needs if kind.get(r)}
    for v, row in enumerate(rows):
        share = solver.NumVar(0.0, float(row["pieces"]), "")
        coefficient = float(worth[v]) if row["work"][k] is not None else 0.0
        solver.Objective().SetCoefficient(share, coefficient)
        for r, constraint in limits.items():
            constraint.SetCoefficient(share, needs[r][v] / kind[r])
    solver.Objective().SetMaximization()
    solver.Solve()
    return {
        r: round(max(0.0, constraint.dual_value()) * UNIT / kind[r])
        for r, constraint in limits.items()
    }
