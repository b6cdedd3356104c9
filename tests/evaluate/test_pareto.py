"""Comparing by several objectives: what one costs by the others."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import diamond, fork_join

from streamplace.evaluate.records import Record
from streamplace.evaluate.results import ObjectiveResults, trade_offs_of
from streamplace.io.graphs import write_graphs
from streamplace.objectives.registry import OBJECTIVES

JUDGES = [OBJECTIVES["throughput"], OBJECTIVES["makespan"]]
BOTH = ("--objective", "throughput", "--objective", "makespan", "--jobs", "1")


def record(placer, asked, value, other):
    """An answer asked for by one objective, with its value by the other."""
    beside = {"throughput": "makespan", "makespan": "throughput"}[asked]
    return Record(
        "ab" * 32, "g", None, placer, "1 s", value, None, 1.0, (0,), objective=asked,
        measures={beside: other},
    )  # fmt: skip


def tallied(answers, asked):
    """Answers of p0, p1, … as (throughput, makespan)."""
    rows = [
        record(f"p{i}", asked, *(answer if asked == "throughput" else answer[::-1]))
        for i, answer in enumerate(answers)
    ]
    return ObjectiveResults(OBJECTIVES[asked], rows)


VALUES = st.tuples(st.sampled_from([0.25, 0.5, 1.0]), st.sampled_from([1.0, 2.0, 4.0]))


@given(st.lists(VALUES, min_size=1, max_size=5), st.lists(VALUES, min_size=1, max_size=5))
def test_the_front_is_undominated(fast, quick):
    """Ratios to the best known of all, whatever it was asked for."""
    found = trade_offs_of([tallied(fast, "throughput"), tallied(quick, "makespan")])[None]
    every = [*fast, *quick]
    best = max(t for t, _ in every), min(m for _, m in every)
    assert [
        (point.of_best["throughput"], point.of_best["makespan"]) for point in found
    ] == pytest.approx([(t / best[0], m / best[1]) for t, m in every])
    for point, (t, m) in zip(found, every, strict=True):
        beaten = any((a, -b) != (t, -m) and a >= t and b <= m for a, b in every)
        assert point.front == (not beaten)


def test_a_placer_that_fails_on_a_graph_is_not_on_the_front():
    """Its means are of other graphs; equal but for rounding, two placers are."""
    one = [record(f"p{i}", "throughput", value, 1.0) for i, value in enumerate((0.7, 0.7 + 1e-16))]
    two = [replace(row, problem="cd" * 32) for row in one]
    lucky = record("lucky", "throughput", 1.0, 0.5)
    tables = [
        ObjectiveResults(JUDGES[0], [*one, *two, lucky]),
        ObjectiveResults(JUDGES[1], [record("p0", "makespan", 2.0, 0.5)]),
    ]
    found = {(point.placer, point.objective): point.front for point in trade_offs_of(tables)[None]}
    assert found == {
        ("p0", "throughput"): True,
        ("p1", "throughput"): True,
        ("lucky", "throughput"): False,
        ("p0", "makespan"): False,
    }


def test_where_no_placer_places_anything_there_are_no_points():
    """As at a rate at which no placement meets a condition."""
    facts = ("ab" * 32, "g", None, "p0", "1 s", None, None, 0.0, (), "no placement was found")
    results = [ObjectiveResults(j, [Record(*facts, objective=j.name)]) for j in JUDGES]
    assert trade_offs_of(results) == {None: []}


@pytest.fixture
def data(tmp_path):
    """Two graphs."""
    write_graphs([diamond(), fork_join()], tmp_path / "two.jsonl")
    return "two.jsonl"


@pytest.mark.slow
def test_compare_shows_what_one_objective_costs_by_the_other(run, data):
    words = (data, "--placers", "single,anneal,round-robin", "--evaluations", "500", *BOTH)
    document = json.loads(run("compare", *words, "-o", "out", "--json").out)
    assert document["objectives"].keys() == {"throughput", "makespan"}
    (front,) = document["pareto"].values()
    best = {(p["objective"], p["placer"]): p for p in front}
    assert best["throughput", "anneal"]["of_best"]["throughput"] == 1
    assert best["makespan", "anneal"]["of_best"]["makespan"] == 1
    assert best["throughput", "anneal"]["front"]
    assert not best["throughput", "round-robin"]["front"]
    for name in ("pareto.png", "throughput-distribution.png", "makespan-distribution.png"):
        assert Path("out", name).stat().st_size > 1000
    again = json.loads(run("compare", *words, "-o", "out", "--json").out)
    assert again == document
    told = run("compare", *words, "-o", "out").out
    assert "value / best value by every objective, not dominated by another" in told
    assert "●" not in told
    details = run("compare", *words, "-o", "out", "-v").out
    assert "●" in details


def test_objectives_under_a_condition_are_traded_off(run, data):
    words = (data, "--placers", "anneal", "--evaluations", "500", "--jobs", "1")
    asked = ("--objective", "devices", "--objective", "makespan", "--require", "throughput>=0.5")
    document = json.loads(run("compare", *words, *asked, "--json").out)
    names = {f"{name} with throughput>=0.5" for name in ("devices", "makespan")}
    (front,) = document["pareto"].values()
    assert {point["objective"] for point in front} == names
    for point in front:
        assert point["of_best"].keys() == names
        assert point["of_best"][point["objective"]] == pytest.approx(1)


@pytest.mark.slow
def test_a_comparison_by_one_objective_goes_on_by_two(run, data):
    """What was answered before is valued by the other objective now, not asked again."""
    words = (data, "--placers", "anneal", "--evaluations", "500", "-o", "out")
    run("compare", *words, "--objective", "makespan", "--jobs", "1")
    before = Path("out/results.jsonl").read_text()
    document = json.loads(run("compare", *words, *BOTH, "--json").out)
    after = Path("out/results.jsonl").read_text()
    assert after.startswith(before)
    assert len(after.splitlines()) == 2 * len(before.splitlines())
    (front,) = document["pareto"].values()
    assert {point["objective"] for point in front} == {"throughput", "makespan"}


def test_makespans_are_compared_by_their_schedule_length_ratio(run, data):
    """Makespan / the longest path of least times, of every problem, in the mean."""
    words = (data, "--placers", "single,anneal", "--evaluations", "500", "--objective", "makespan")
    document = json.loads(run("compare", *words, "--jobs", "1", "--json").out)
    (table,) = document["rates"].values()
    for row in table["placers"].values():
        assert row["measures"]["slr"] >= 1
    assert table["placers"]["anneal"]["paired"]["single"]["worse"] == 0
    assert "slr" in run("compare", *words, "--jobs", "1", "-v").out
