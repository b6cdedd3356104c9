"""Certificates of bounds, which the checker verifies without trusting their authors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from library_columns import PlanCut

from streamplace.model.arrays import Floats
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.exact.cpsat import new_solver

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
