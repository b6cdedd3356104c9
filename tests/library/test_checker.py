"""The checker agrees with streamplace, and its bounds hold for every placement and every order."""

import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import check
import check_instance
import check_search
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import placements, problems

from streamplace.library.certificates import certificates
from streamplace.library.documents import instance_document, solution_document
from streamplace.model import Problem
from streamplace.objectives.registry import OBJECTIVES

SAME = 1e-12


def as_read(document: Any) -> Any:
    """Document as the checker reads it from a file."""
    number = check_instance.number
    hooks: dict[str, Any] = {"parse_float": number, "parse_int": number, "parse_constant": number}
    return json.loads(json.dumps(document), object_pairs_hook=check_instance.unique, **hooks)


def as_checked(problem: Problem) -> Any:
    return check_instance.Problem(as_read(instance_document(problem)))


def value(problem: Problem, objective: str, place: Any, *order: Any) -> float:
    return float(OBJECTIVES[objective].evaluate(problem, np.array([place]), *order)[0])


def bound(checked: Any, certificate: dict[str, Any]) -> Fraction:
    """Bound that the checker derives from a certificate."""
    return check.derived(
        checked,
        certificate["objective"],
        as_read(certificate)["bound"],
        check_instance.row("proof", as_read(certificate)["proof"]),
    )


def legal_placements(problem: Problem) -> Iterator[tuple[int, ...]]:
    every = itertools.product(range(problem.n_devices), repeat=problem.n_operators)
    return (place for place in every if problem.legal(place)[0])


@settings(max_examples=60)
@given(st.data())
def test_values_and_legality_are_those_of_streamplace(data: st.DataObject) -> None:
    problem = data.draw(problems(windowed=True))
    place = data.draw(placements(problem))
    try:
        checked = as_checked(problem)
    except check_instance.RefusedError as refusal:  # numbers beyond those of the library
        assume("out of range" not in str(refusal))
        raise
    assert checked.legal(list(place)) == bool(problem.legal(place)[0])
    reached = value(problem, "throughput", place)
    assert abs(check.throughput(checked, list(place)) - reached) <= SAME
    fifo = value(problem, "makespan", place)
    makespan = OBJECTIVES["makespan"]
    document = solution_document(problem, problem.placement(place), makespan, fifo, "test")
    priority = [document["priority"][name] for name in problem.graph.operators.name]
    held = value(problem, "makespan", place, np.array([priority], float), "order")
    exact = check.makespan(checked, list(place), [Fraction(x) for x in priority])
    assert abs(exact - held) <= SAME * held
    assert exact <= fifo * (1 + SAME)


@settings(max_examples=40)
@given(problems(most=4))
def test_duals_bound_every_placement(problem: Problem) -> None:
    best = max(value(problem, "throughput", place) for place in legal_placements(problem))
    for certificate in certificates(problem, OBJECTIVES["throughput"], best):
        if certificate["proof"]["kind"] != "search":
            derived = bound(as_checked(problem), certificate)
            assert best * (1 - SAME) <= derived <= as_read(certificate)["bound"]


@settings(max_examples=40)
@given(problems(most=4))
def test_a_search_proves_the_optimum_and_nothing_better(problem: Problem) -> None:
    if problem.instance.n_groups > 1:
        return
    best = max(value(problem, "throughput", place) for place in legal_placements(problem))
    if not 0.0 < best < 1.0 - 1e-6:
        return
    (certificate,) = [
        c
        for c in certificates(problem, OBJECTIVES["throughput"], best)
        if c["proof"]["kind"] == "search"
    ]
    assert bound(as_checked(problem), certificate) == as_read(certificate)["bound"]
    with pytest.raises(check_instance.RefusedError, match="better than the bound"):
        bound(as_checked(problem), certificate | {"bound": 0.999 * best})


def orders(problem: Problem) -> Iterator[np.ndarray]:
    """All orders of the operators in which inputs come first, as priorities."""
    instance = problem.instance
    edges = list(zip(instance.source.tolist(), instance.target.tolist(), strict=True))
    for line in itertools.permutations(range(problem.n_operators)):
        position = {v: i for i, v in enumerate(line)}
        if all(position[u] < position[v] for u, v in edges):
            yield -np.array([[position[v] for v in range(problem.n_operators)]], float)


@settings(max_examples=30)
@given(problems(most=4))
def test_bounds_of_a_makespan_hold_for_every_placement_and_order(problem: Problem) -> None:
    best = min(
        value(problem, "makespan", place, order, "order")
        for order in orders(problem)
        for place in legal_placements(problem)
    )
    for certificate in certificates(problem, OBJECTIVES["makespan"], best):
        assert bound(as_checked(problem), certificate) <= best * (1 + SAME)
        if certificate["proof"]["kind"] == "search" and best > 0:
            assert bound(as_checked(problem), certificate) == as_read(certificate)["bound"]
            with pytest.raises(check_instance.RefusedError, match="better than the bound"):
                bound(as_checked(problem), certificate | {"bound": 1.001 * best})


def test_a_search_without_weight_is_refused() -> None:
    problem = as_read(
        {
            "graph": {"operators": [{"name": "a", "ipt": 1, "rate": 1}]},
            "cluster": {"devices": [{"name": "d", "mips": 1}]},
        }
    )
    checked, proof = check_instance.Problem(problem), {"weights": [Fraction(0)]}
    with pytest.raises(check_instance.RefusedError, match="weight"):
        check_search.PassSearch(checked, Fraction(10**6), proof)
