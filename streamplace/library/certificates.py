"""Certificates of bounds, which the checker verifies without trusting whoever wrote them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamplace.library.duals import DualProgram, dual_value
from streamplace.model.arrays import Floats
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective

MARGIN = 1e-9
"""A bound is stated this much weaker than it is in floating point."""
HEAVIEST = 1000
"""Largest weight of a device in a search."""


def certificates(problem: Problem, objective: Objective, value: float) -> Iterator[dict[str, Any]]:
    """Certificates in the order of what they cost the checker; searches come last.

    A search claims that no placement is better than the value. Whether that is so within the nodes
    that the checker allows shows when it is checked.
    """
    make = _of_makespan if objective.kind == "pass" else _of_throughput
    for bound, proof in make(problem, value):
        yield {
            "graph": problem.graph.name,
            "objective": objective.name,
            "bound": bound,
            "proof": proof,
        }


def _of_throughput(problem: Problem, value: float) -> Iterator[tuple[float, dict[str, Any]]]:
    yield 1.0, {"kind": "trivial"}
    if (proof := DualProgram(problem).solve()) is not None:
        yield above(dual_value(problem, proof)), proof
    if problem.instance.n_groups == 1 and 0 < above(value) < 1:
        yield above(value), {"kind": "search", "order": search_order(problem), **_weights(problem)}


def _of_makespan(problem: Problem, value: float) -> Iterator[tuple[float, dict[str, Any]]]:
    from streamsim.passes import bounds

    rules = problem.rules
    allowed = None if rules is None else rules.allowed[rules.unit]
    yield below(bounds(problem.one_pass, allowed).path), {"kind": "path"}
    for operators in intervals(problem):
        yield 0.0, {"kind": "interval", "operators": operators, **_weights(problem)}
    yield below(value), {"kind": "search", **_weights(problem)}


def above(value: float) -> float:
    """Return a number of few digits that is a little larger."""
    return float(f"{value * (1 + MARGIN):.12g}")


def below(value: float) -> float:
    """Return a number of few digits that is a little smaller."""
    return float(f"{value * (1 - MARGIN):.12g}")


def intervals(problem: Problem) -> Iterator[list[str]]:
    """Sets of operators whose work may bound a pass: all, and those of single sets of devices."""
    names = problem.graph.operators.name
    yield list(names)
    rules = problem.rules
    if rules is None:
        return
    allowed = rules.allowed[rules.unit]
    for mask in np.unique(allowed, axis=0):
        inside = ~(allowed & ~mask).any(axis=1)
        if not mask.all() and inside.any():
            yield [names[v] for v in np.flatnonzero(inside).tolist()]


def search_order(problem: Problem) -> list[str]:
    """Operators in an order that fills resources soon: next is what exchanges most with the last.

    The first has the largest load; ties are broken by load.
    """
    instance = problem.instance
    n = instance.n_operators
    load = instance.load.min(axis=1)
    traffic = np.zeros((n, n))
    np.add.at(traffic, (instance.source, instance.target), instance.traffic)
    traffic += traffic.T
    heaviest = float(traffic.max()) or 1.0
    attached: Floats = np.zeros(n)
    left, order = set(range(n)), list[int]()
    while left:
        v = max(left, key=lambda u: (attached[u] / heaviest + load[u], -u))
        left.remove(v)
        order.append(v)
        attached += traffic[v]
    return [problem.graph.operators.name[v] for v in order]


def _weights(problem: Problem) -> dict[str, list[int]]:
    """Weights of the devices: proportional to their speeds."""
    seconds = problem.instance.seconds.sum(axis=0)[problem.instance.device_type]
    speed = 1.0 / np.maximum(seconds, 1e-300)
    return {"weights": np.maximum(1, np.rint(HEAVIEST * speed / speed.max())).astype(int).tolist()}
