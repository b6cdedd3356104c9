"""Throughput in the worst case: some operators of each device cost more than the graph says."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamplace as sp
from streamplace.errors import SettingError
from streamplace.model.expansion import expand
from streamplace.objectives.registry import named_objective
from streamplace.placers.registry import PLACERS, Budget

ERROR = 0.4


def drawn(seed: int, n: int = 5, sources: int = 1) -> tuple[sp.Problem, np.ndarray]:
    """Random problem on three devices that its graph fills, and random placements."""
    rng = np.random.default_rng(seed)
    operators = [
        sp.Operator(
            f"o{v}",
            rate=float(rng.uniform(50, 150)) if v < sources else 0.0,
            ipt=float(rng.uniform(1e6, 3e7)),
            payload=float(rng.uniform(1, 1e5)),
        )
        for v in range(n)
    ]
    streams = [sp.Stream(f"o{rng.integers(v)}", f"o{v}") for v in range(sources, n)]
    limits = np.random.default_rng((seed, 1)).choice([0.0, 0.0, 60.0, 120.0], n)
    operators = [
        replace(row, max_rate=most) for row, most in zip(operators, limits.tolist(), strict=True)
    ]
    problem = sp.Problem(
        sp.StreamGraph.of("drawn", operators, streams), sp.Cluster.uniform(3, cores=2)
    )
    return problem, rng.integers(3, size=(4, n)).astype(np.int32)


def dearer(problem: sp.Problem, rows: tuple[int, ...]) -> sp.Problem:
    """Return a problem in which these operators cost more."""
    graph = problem.graph
    factors = {graph.operators.name[v]: 1 + ERROR for v in rows}
    scaled = sp.what_if(graph, scale=factors)
    return sp.Problem(scaled, problem.cluster)


@given(st.integers(0, 2**32), st.integers(0, 3))
def test_it_is_the_least_over_all_dearer_operators(seed: int, number: int) -> None:
    """By enumeration: of every set of operators with at most so many on a device."""
    problem, placements = drawn(seed)
    robust = named_objective(f"throughput:robust={number}:error={ERROR}")
    plain = named_objective("throughput")
    every = chain.from_iterable(combinations(range(5), k) for k in range(6))
    sets = {rows: plain.values(dearer(problem, rows), placements) for rows in every}
    for i, place in enumerate(placements):
        allowed = [
            values[i]
            for rows, values in sets.items()
            if np.bincount(place[list(rows)], minlength=3).max() <= number
        ]
        assert robust.values(problem, placements)[i] == pytest.approx(min(allowed), rel=1e-9)


@given(st.integers(0, 2**32))
def test_sources_of_their_own_are_never_promised_too_much(seed: int) -> None:
    """Two sources compete: the value is a lower bound of the worst case."""
    problem, placements = drawn(seed, 6, sources=2)
    worst = named_objective(f"throughput:robust=6:error={ERROR}").values(problem, placements)
    all_dearer = named_objective("throughput").values(
        dearer(problem, (0, 1, 2, 3, 4, 5)), placements
    )
    assert (worst <= all_dearer + 1e-9).all()


def test_more_than_all_operators_are_all_of_them() -> None:
    """However large the number is."""
    problem, placements = drawn(0)
    every, more = (
        named_objective(f"throughput:robust={number}:error={ERROR}").values(problem, placements)
        for number in (5, 10**15)
    )
    assert every.tolist() == more.tolist()


def test_exact_notes_values_of_the_worst_case_only() -> None:
    """Its search is by the costs as they are, of which the worst case reaches less."""
    problem, _ = drawn(1)
    robust = named_objective("throughput:robust=2:error=5")
    result = PLACERS["exact"].place(problem, robust, budget=Budget(evaluations=20_000))
    assert [step.value for step in result.trace] == [result.value]
    assert result.value < named_objective("throughput").value(problem, result.placement)


def test_subtasks_of_an_operator_cost_more_together() -> None:
    """Four subtasks on a device are one operator, so Γ = 1 protects against all of them."""
    graph = sp.StreamGraph.of(
        "job",
        [sp.Operator("src", rate=100.0), sp.Operator("map", ipt=2e7, parallelism=4)],
        [sp.Stream("src", "map")],
    )
    problem = expand(graph).problem(sp.Problem(graph, sp.Cluster.uniform(2, mips=1000)))
    place = np.array([[1, 0, 0, 0, 0]], np.int32)
    plain = named_objective("throughput").values(problem, place)[0]
    robust = named_objective("throughput:robust=1:error=1").values(problem, place)[0]
    assert plain == pytest.approx(0.5)
    assert robust == pytest.approx(0.25)


def test_operators_of_one_name_cost_more_one_by_one() -> None:
    """An import tells them apart by the numbers of their rows; they are no subtasks of one."""
    work = [sp.Operator(name, ipt=5e6) for name in ("mul#1", "mul#4")]
    streams = [sp.Stream("src", one.name) for one in work]
    graph = sp.StreamGraph.of("two", [sp.Operator("src", rate=100.0), *work], streams)
    problem = sp.Problem(graph, sp.Cluster.uniform(1, mips=1000))
    judge = named_objective("throughput:robust=1:error=1")
    assert judge.value(problem, problem.placement([0, 0, 0])) == pytest.approx(1 / 1.5)


def test_a_robust_placement_spreads_what_may_cost_more() -> None:
    """Both halves carry the rate; only one still does if an operator costs half more."""
    work = [4.0, 4.0, 2.0, 2.0, 2.0, 2.0]
    operators = [sp.Operator("src", rate=100.0)]
    operators += [sp.Operator(f"o{i}", ipt=1e6 * w, payload=1.0) for i, w in enumerate(work)]
    graph = sp.StreamGraph.of("six", operators, [sp.Stream("src", f"o{i}") for i in range(6)])
    found = sp.place(
        graph, sp.Cluster.uniform(2, mips=1000), objective="throughput:robust=1:error=0.5"
    )
    assert found.value == pytest.approx(1.0)
    devices = found.placement.as_dict()
    assert devices["o0"] != devices["o1"]
    assert "even if any operator of each device costs 50 % more" in found.verdict


def test_the_command_protects_operators(run: Callable, tmp_path: Path) -> None:
    """It is the same as the objective with options; what has no effect is refused."""
    graph = tmp_path / "graph.json"
    sp.write_graph(drawn(3)[0].graph, graph)
    place = ("place", str(graph), "--devices", "3", "--evaluations", "500")
    answer = run(*place, "--robust", "2", "--error", "20%", "--json")
    options = run(*place, "--objective", "throughput:robust=2:error=0.2", "--json")
    found, same = json.loads(answer.out), json.loads(options.out)
    assert found["assignment"] == same["assignment"]
    assert found["robust_throughput"] == same["robust_throughput"] <= found["relative_throughput"]
    assert found["objective"] == same["objective"] == "throughput:error=0.2:robust=2"
    for wrong in (("--error", "0.2"), ("--robust", "1", "--objective", "latency")):
        refused = run(*place, *wrong)
        assert (refused.status, refused.out) == (2, "")
        assert "drop" in refused.err
    with pytest.raises(SettingError, match="give a whole number"):
        sp.place(graph, 3, robust=-1)
    assert sp.place(graph, 3, robust=2, error=0.2).objective == found["objective"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("throughput:error=0.1", "needs robust"),
        ("throughput:robust=x", "give a whole number"),
        ("throughput:robust=1.5", "give a whole number"),
        ("throughput:robust=1:error=-1", "give a share"),
        ("throughput:strong=1", "strong"),
    ],
)
def test_options_that_mean_nothing_are_refused(text: str, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        named_objective(text)
