"""The functions accept objects, files, numbers, texts and dictionaries."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamplace
from streamplace import (
    Budget,
    Cluster,
    Constraints,
    Operator,
    Problem,
    Relocation,
    Stream,
    StreamGraph,
    StreamplaceError,
    compare,
    describe,
    draw,
    export,
    generate,
    place,
    plan,
    read_graph,
    simulate,
    simulate_queues,
    train,
    what_if,
)
from streamplace.io.problems import Draft, write_problem

PIPE = StreamGraph.of(
    "pipe",
    [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5, parallelism=2)],
    [Stream("a", "b")],
)
APART = {"a": "d0", "b": "d1"}
TASKS = StreamGraph.of(
    "tasks", [Operator("load", ipt=1e6), Operator("add", ipt=1e6)], [Stream("load", "add")],
    fires="all",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a graph, a cluster and constraints as files."""
    monkeypatch.chdir(tmp_path)
    streamplace.write_graph(PIPE, "graph.json")
    streamplace.write_cluster(Cluster.uniform(3, mips=2500), "cluster.toml")
    streamplace.write_constraints(Constraints(pin={"a": "d2"}), "rules.toml")
    return tmp_path


def test_a_graph_a_cluster_and_constraints_may_be_files(folder):
    from_files = place("graph.json", folder / "cluster.toml", constraints="rules.toml")
    from_nouns = place(PIPE, Cluster.uniform(3), constraints=Constraints(pin={"a": "d2"}))
    assert from_files.placement == from_nouns.placement


@pytest.mark.parametrize(
    "cluster", [3, {"devices": [{"name": "d", "count": 3}]}, Cluster.uniform(3)], ids=repr
)
def test_a_cluster_may_be_a_number_or_tables(cluster):
    assert place(PIPE, cluster).placement.devices == ("d0", "d1", "d2")


@pytest.mark.parametrize(
    "rules",
    [{"pin": {"a": "d1"}}, {"allowed": {"a": {"d1"}}}, {"exlocate": [("a", "b")], "pin": APART}],
    ids=repr,
)
def test_constraints_may_be_a_dictionary(rules):
    assert place(PIPE, 2, constraints=rules).value == 1.0


TABLES = {"operators": [{"name": "a", "ipt": 2e5, "rate": 1e4}, {"name": "b", "ipt": 2e5}],
          "streams": [{"from": "a", "to": "b"}]}  # fmt: skip
BOXES = {"devices": [{"name": "d", "count": 3}]}
PROBLEM = {"graph": TABLES, "constraints": {"pin": {"a": "d2"}}}


def test_a_problem_may_be_a_dictionary_wherever_it_may_be_a_file():
    assert place(PROBLEM, BOXES, budget=0.05).placement["a"] == "d2"
    assert simulate(PROBLEM | {"cluster": BOXES}, {"a": "d2", "b": "d0"}).value == 1.0
    with pytest.raises(StreamplaceError, match="forbid 'a' on 'd0'"):
        simulate(PROBLEM, {"a": "d0", "b": "d0"}, BOXES)
    with pytest.raises(StreamplaceError, match="contains its own cluster"):
        place(PROBLEM | {"cluster": BOXES}, 3)
    compared = compare([PROBLEM, TABLES], "metis", BOXES, budget=0.05, jobs=1)
    assert len(compared.graphs.problems) == 2
    assert len(describe(PROBLEM).report().parts) > 0


def test_machines_of_plans_may_be_dictionaries():
    row = {"name": "small", "price": 0.1, "cores": 4}
    plans = [plan(TABLES, offers=offers, budget=Budget(evaluations=5000))
             for offers in ({"offers": [row]}, [row])]  # fmt: skip
    assert [each.machines for each in plans] == [{"small": 1}] * 2
    placed = plan(PROBLEM, cluster=BOXES, budget=Budget(evaluations=5000)).placement
    assert placed["a#0" if "a#0" in placed else "a"] == "d2"


@pytest.mark.parametrize("budget", [0.05, "50 ms", Budget(0.05), 1, "0.05"], ids=repr)
def test_a_budget_may_be_seconds_or_a_text(budget):
    assert place(PIPE, budget=budget).value == 1.0


def test_placements_come_in_many_forms(folder, run):
    result = place(PIPE)
    printed = json.loads(run("place", "graph.json", "--json", "-o", "placement.json").out)
    placements = [result, result.placement, dict(result.placement), "placement.json", printed]
    values = [simulate("graph.json", placement).value for placement in placements]
    assert values == [1.0] * len(placements)


def test_a_file_of_another_rate_is_told(folder, caplog):
    place(PIPE, rate=5000).save("slow.json")
    offered = PIPE.source_rate
    assert simulate(PIPE, "slow.json").offered == offered
    assert "slow.json was placed at 5000" in caplog.text
    caplog.clear()
    simulate(PIPE, "slow.json", rate=offered)
    simulate(PIPE.at_rate(5000), "slow.json")
    assert not caplog.text


def test_a_placement_may_place_subtasks():
    spread = {"a": "d0", "b#0": "d1", "b#1": "d2"}
    assert simulate(PIPE, spread).value == 1.0
    assert set(place(PIPE, subtasks=True).placement) == set(spread)


def test_objectives_are_names_or_objects_and_one_condition_is_a_text():
    from streamplace.objectives.registry import OBJECTIVES

    by_name = place(PIPE, objective="devices", require="throughput>=0.6")
    by_object = place(PIPE, objective=OBJECTIVES["devices"], require=["throughput>=0.6"])
    assert by_name.value == by_object.value == 1.0


def test_a_rate_replaces_that_of_the_graph():
    assert simulate(PIPE, APART, rate="5 k/s").value == 1.0
    assert simulate(PIPE, {"a": "d0", "b": "d0"}, rate=2e4).value == pytest.approx(0.3125)


def test_export_writes_files_and_takes_results(folder):
    files = export("graph.json", place(PIPE), "csv", out="placed.csv")
    assert Path("placed.csv").read_text() == files["placement.csv"]
    assert set(export(PIPE, "placed.csv", "json")) == {"placement.json"}
    export(PIPE, APART, "ray", 5, out=folder / "ray")
    assert any((folder / "ray").iterdir())


def test_a_document_is_exported_with_the_order_of_its_schedule():
    document = {
        "assignment": {"load": "d0", "add": "d0"},
        "queue": "order",
        "priority": {"load": 2.0, "add": 1.0},
    }
    exported = json.loads(export(TASKS, document, "json")["placement.json"])
    assert {name: exported[name] for name in document} == document


def test_a_graph_is_drawn_alone_or_under_placements(folder):
    alone = draw("graph.json", out="alone.svg")
    assert Path("alone.svg").read_text() == alone.svg()
    several = draw(PIPE, {"apart": APART, "auto": place(PIPE)}).svg()
    assert "apart" in several
    assert "auto" in several
    assert draw(PIPE, [place(PIPE), place(PIPE)]).svg().count("auto") >= 2
    assert "placement" in draw(PIPE, APART).svg()


def test_placements_of_files_of_one_name_are_told_apart(folder):
    """Also from one that is called as if it were the third."""
    files = [Path(name) for name in ("case (3).json", "case.json", "more/case.json")]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"assignment": APART}))
    drawn = draw(PIPE, files).svg()
    assert [drawn.count(f">case{number}: ") for number in ("", " (2)", " (3)")] == [1, 1, 1]


def test_generated_graphs_are_described_and_placed():
    graphs = generate("branched", branches=2, depth=3, devices=2, copies=3, seed=1)
    assert graphs == generate("branched", branches=2, depth=3, devices=2, copies=3, seed=1)
    assert describe(graphs, limit=2).operators == (8, 8)
    assert place(graphs[0], 2).value > 0


def test_rules_are_read_as_they_were_written(folder):
    rules = Constraints({"a": "d0"}, [{"a", "b"}], [{"a", "c"}], {"b": ["d0", "d1"]})
    streamplace.write_constraints(rules, "r.toml")
    assert streamplace.read_constraints("r.toml") == rules


def test_placements_of_a_data_set_are_read_by_name(folder, run):
    streamplace.write_graphs([PIPE, TASKS], "set.jsonl")
    run("place", "set.jsonl", "--placer", "round-robin", "-o", "placed.jsonl")
    placed = dict(streamplace.read_placements("placed.jsonl"))
    assert [set(placement or ()) for placement in placed.values()] == [{"a", "b"}, {"load", "add"}]


def test_a_comparison_is_the_same_from_a_file_and_from_graphs(folder):
    graphs = generate("branched", branches=2, depth=3, devices=2, copies=3)
    streamplace.write_graphs(graphs, "set.jsonl")  # type: ignore[arg-type]
    of_graphs = compare(graphs, ["metis", "random:evaluations=20"], 2, rate="10 k/s")
    of_file = compare("set.jsonl", "metis,random:evaluations=20", 2, rate=1e4, out="results")
    values = [
        [(objective, rate, placer, row.mean) for objective, rate, placer, row in comparison.rows()]
        for comparison in (of_graphs, of_file)
    ]
    assert values[0] == values[1]
    assert Path("results/results.jsonl").read_text().count("\n") == 6


@pytest.mark.parametrize("reference", ["few", "metis:k=2"])
def test_the_reference_of_a_comparison_is_named_by_its_alias_or_its_options(reference):
    placers = ["few=metis:k=2", "single"]
    assert compare([PIPE], placers, 2, reference=reference).reference == "few"


def test_rates_that_differ_in_the_seventh_digit_have_tables_of_their_own():
    rates = [10_000.001, 10_000.002, 2_000_000.25, 2_000_000.5]
    comparison = compare(PIPE, "single", 2, rate=rates)
    assert [float(key) for key in comparison.document()["rates"]] == rates
    assert "single" in comparison.report().html()


def test_a_comparison_of_files_keeps_the_constraints_of_their_documents(folder):
    write_problem(Draft(PIPE, Constraints(colocate=[{"a", "b"}])), "draft.json")
    graphs = compare([Path("draft.json")], "single", 2).graphs
    kept = graphs.problems[0].constraints
    assert kept == streamplace.read_problem("draft.json").constraints
    assert kept.colocate


def test_queues_are_simulated_with_durations_as_texts():
    short = simulate_queues(PIPE, APART, duration="5 s", dt="100 ms")
    assert short == simulate_queues(PIPE, APART, duration=5, dt=0.1)
    assert short.relative_throughput == pytest.approx(1.0, rel=0.02)


def test_what_a_family_generates_is_written_and_read(folder):
    problems = [Problem(graph, Cluster.uniform(2)) for graph in generate("random-dag", count=2)]
    with pytest.raises(StreamplaceError, match="write_problems"):
        streamplace.write_graphs(problems, "problems.jsonl")  # type: ignore[arg-type]
    assert not Path("problems.jsonl").exists()
    assert streamplace.write_problems([*problems, PIPE], "problems.jsonl") == 3
    assert len(list(streamplace.read_problems("problems.jsonl"))) == 3
    assert describe(["problems.jsonl", "graph.json"]).operators[-1] == 2


@pytest.mark.parametrize(
    "noun", ["graph", "graphs", "cluster", "constraints", "placement", "problem", "problems"]
)
@pytest.mark.parametrize("value", [3, [None]])
def test_what_is_written_must_be_of_its_kind(folder, noun, value):
    with pytest.raises(StreamplaceError, match=r"3|None"):
        getattr(streamplace, f"write_{noun}")(value, "new.jsonl")
    assert not Path("new.jsonl").exists()


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "graph": (lambda: place(3), "graph is 3"),  # type: ignore[arg-type]
    "cluster of a flag": (lambda: place(PIPE, True), "cluster is True"),
    "constraints": (lambda: place(PIPE, constraints=[1]), "constraints is [1]"),  # type: ignore[arg-type]
    "placer": (lambda: place(PIPE, placer=3), "placer is 3"),  # type: ignore[arg-type]
    "objective": (lambda: place(PIPE, objective=3), "objective is 3"),  # type: ignore[arg-type]
    "require": (lambda: place(PIPE, require=3), "require is 3"),  # type: ignore[arg-type]
    "relocation": (lambda: place(PIPE, relocation=APART), "relocation is {"),  # type: ignore[arg-type]
    "seed": (lambda: place(PIPE, seed=-1), "seed is -1"),
    "budget": (lambda: place(PIPE, budget=[]), "budget is []"),  # type: ignore[arg-type]
    "placement": (lambda: simulate(PIPE, 3), "placement is 3"),  # type: ignore[arg-type]
    "order": (
        lambda: simulate(PIPE, {"assignment": APART, "priority": 5}),
        "placement: priority is 5",
    ),
    "numbers as names": (
        lambda: place(PIPE, 2, constraints={"pin": {1: "d0"}}),
        "constraints: pin names 1; names are texts; write '1'",
    ),
    "form": (lambda: export(PIPE, APART, 3), "to is 3"),  # type: ignore[arg-type]
    "family": (lambda: generate(3), "family is 3"),  # type: ignore[arg-type]
    "data": (lambda: describe([3]), "data is 3"),  # type: ignore[list-item]
    "placements": (lambda: draw(PIPE, 3), "placements is 3"),  # type: ignore[arg-type]
    "placers": (lambda: compare([PIPE], 3), "placers is 3"),  # type: ignore[arg-type]
    "a reference": (
        lambda: compare([PIPE], "metis,m=random", reference="fuser"),
        "reference fuser is none of the compared placers: m, metis, random",
    ),
    "rates": (lambda: compare([PIPE], "metis", rate=[None]), "rate None"),  # type: ignore[list-item]
    "no placers": (lambda: compare([PIPE], []), "no placer is named"),
    "nothing to compare": (lambda: compare([], "metis"), "data holds no graph"),
    "model": (lambda: train(3, [PIPE], "x"), "model is 3"),  # type: ignore[arg-type]
    "folder": (lambda: train("dream", [PIPE], 3), "out is 3"),  # type: ignore[arg-type]
    "graphs": (lambda: train("dream", 3, "x"), "data is 3"),  # type: ignore[arg-type]
    "path": (lambda: read_graph(None), "path is None"),  # type: ignore[arg-type]
    "cluster of a problem": (lambda: Problem(PIPE, None), "None"),  # type: ignore[arg-type]
    "rules": (lambda: Problem(PIPE, Cluster.uniform(2), 5), "5"),  # type: ignore[arg-type]
    "rates of plans": (
        lambda: streamplace.plan_frontier(PIPE, 7, offers=[streamplace.Offer("s", 1)]),  # type: ignore[arg-type]
        "7",
    ),
    "devices": (lambda: Cluster.of("x"), "'x'"),  # type: ignore[arg-type]
    "scale": (lambda: what_if(PIPE, scale=True), "scale is True"),  # type: ignore[arg-type]
    "too large a number": (lambda: Operator("a", ipt=10**400), "ipt"),
    "seconds": (lambda: Budget("x"), "budget is x"),  # type: ignore[arg-type]
    "a problem and a cluster": (lambda: place(Problem(PIPE, Cluster.uniform(2)), 3), "drop yours"),
}


@pytest.mark.parametrize("objective", ["throughput", "makespan:network=link", "devices"])
def test_results_can_be_pickled(objective):
    require = ["throughput>=0.1"] if objective == "devices" else []
    result = place(PIPE, 2, placer="metis", objective=objective, require=require)
    for answer in (result, result.explain(), compare([PIPE], "metis", objective=objective)):
        assert str(pickle.loads(pickle.dumps(answer))) == str(answer)
    moved = place(
        PIPE, 2, objective="makespan", relocation=Relocation(result.placement), placer="metis"
    )
    assert pickle.loads(pickle.dumps(moved)).value == moved.value


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_type_is_named_in_one_line(case):
    call, words = WRONG[case]
    with pytest.raises(StreamplaceError) as error:
        call()
    assert words in str(error.value)
    assert "\n" not in str(error.value)
