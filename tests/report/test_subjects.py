"""Reports of everything that has one, as the commands and the verbs write them."""

import json
import shlex
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from html_elements import Elements
from report_example import check_document

import streamplace
from streamplace import Cluster, Constraints, Operator, Problem, Stream, StreamGraph
from streamplace.cli._printing import with_command
from streamplace.display.report import Report
from streamplace.drawing.graphs import NamedPlacements
from streamplace.model.graph import PROFILE_WINDOWS
from streamplace.model.operators import Operators
from streamplace.model.streams import Streams
from streamplace.objectives.registry import OBJECTIVES
from streamplace.report.limits import MAX_OPERATORS
from streamplace.report.pages import as_json, document_of
from streamplace.report.problems import Shown, problem_part

TASKS = Path(__file__).parents[2] / "examples" / "tasks.json"


def read(page):
    """Document of a page."""
    return check_document(Elements(page.read_text(encoding="utf-8")).texts["script#report"])


def random_problem(n, devices, seed=0):
    """Graph of n operators, each fed by up to two of the hundred before it."""
    rng = np.random.default_rng(seed)
    pairs = {(int(rng.integers(max(0, v - 100), v)), v) for v in range(1, n) for _ in range(2)}
    source, target = np.array(sorted(pairs)).T
    rate = np.zeros(n)
    rate[0] = 1e4
    operators = Operators(
        tuple(f"operator-{v}" for v in range(n)),
        ipt=rng.integers(1000, 90_000, n),
        payload=rng.integers(10, 900, n),
        rate=rate,
    )
    streams = Streams(operators, source, target, selectivity=rng.uniform(0.2, 0.8, len(source)))
    return Problem(StreamGraph("random", operators, streams), Cluster.uniform(devices))


@pytest.fixture
def graph(run):
    """File of a graph of eight operators."""
    command = ("generate", "branched", "--branches", "2", "--depth", "3", "--devices", "2")
    assert run(*command, "--copies", "1", "-o", "graphs.jsonl").status == 0
    Path("graph.json").write_text(Path("graphs.jsonl").read_text(), encoding="utf-8")
    return "graph.json"


def test_commands_write_reports(run, graph):
    assert run("place", graph, "--placer", "metis", "-o", "a.json").status == 0
    answer = run("place", graph, "--placer", "metis", "-o", "place.html")
    assert answer.err.endswith("report → place.html\n")
    (problem,) = read(Path("place.html"))["problems"]
    assignment = json.loads(Path("a.json").read_text())["assignment"]
    assert any("default devices" in sentence for sentence in problem["assumptions"])
    names = problem["operators"]["name"]
    devices = [problem["devices"]["name"][d] for d in problem["placements"][0]["place"]]
    assert dict(zip(names, devices, strict=True)) == assignment
    assert (
        run("simulate", graph, "a.json", "--engine", "--duration", "1", "-o", "s.html").status == 0
    )
    assert "<p>With queues" in Path("s.html").read_text(encoding="utf-8")
    assert run("draw", graph, "-o", "g.html").status == 0
    assert read(Path("g.html"))["problems"][0]["placements"] == []
    assert run("draw", graph, "a.json", "a.json", "-o", "d.html", "--json").status == 0
    assert len(read(Path("d.html"))["problems"][0]["placements"]) == 2


def test_reports_have_the_command_for_their_placements(run, graph):
    """Names are quoted; a graph that cannot be read again has no command."""
    name = "it's $(x) \N{GREEK SMALL LETTER MU}.json"
    Path(name).write_text(Path(graph).read_text(), encoding="utf-8")
    assert run("place", name, "--placer", "metis", "-o", "a.json").status == 0
    options = ("--rate", "9 k/s", "--devices", "5", "--objective", "throughput")
    moving = ("--from", "a.json", "--objective", "latency")
    changes = ("--set", "b1s1.ipt=2x", "--set", "source.rate=3k")
    ruled = ("--constraints", "rules.toml")
    Path("rules.toml").write_text("pin = {}\n", encoding="utf-8")
    Path("move.toml").write_text("from = 'a.json'\npasses = 9\n", encoding="utf-8")
    placing, simulating = ("place", name, "--placer", "metis"), ("simulate", name, "a.json")
    for command, given in {
        (*placing, *options[:2]): options[:2],
        (*simulating, *options): options,
        ("draw", name, "a.json", *options[2:]): options[2:],
        (*placing, *moving[2:], "--settings", "move.toml"): moving,
        (*placing, *changes): changes,
        (*placing, *ruled): ruled,
        (*simulating, *ruled): ruled,
    }.items():
        assert run(*command, "-o", "r.html").status == 0
        (problem,) = read(Path("r.html"))["problems"]
        words = shlex.split(problem["command"])
        assert words[:4] == ["streamplace", "simulate", name, "/dev/stdin"]
        assert sorted(words[4:]) == sorted(given)
    for unreadable in ("\x1b[2J.json", "pipe"):
        report = with_command(Report(("Fine.",)), Path(unreadable), {})
        assert report.command == ""


def test_one_pass_has_its_own_values_and_rules(run):
    """The makespan and the critical chain of a task graph, under the rules of the objective."""
    tasks = str(TASKS)
    assert run("place", tasks, "--placer", "heft", "--devices", "3", "-o", "p.json").status == 0
    command = ("simulate", tasks, "p.json", "--devices", "3")
    command += ("--objective", "makespan:preset=doppler")
    assert run(*command, "-o", "r.html").status == 0
    document = json.loads(run(*command, "--json").out)
    (problem,) = read(Path("r.html"))["problems"]
    (placement,) = problem["placements"]
    one_pass = placement["one_pass"]
    assert (one_pass["network"], one_pass["makespan"]) == ("link", document["makespan"])
    assert placement["value"] == document["makespan"]
    assert one_pass["chain"][-1]["end"] == pytest.approx(one_pass["makespan"], rel=1e-12)


def test_a_comparison_tells_graphs_apart(run):
    """Values of every placer on every graph, and placements of the first graphs."""
    command = ("generate", "branched", "--branches", "2", "--depth", "2", "--devices", "2")
    assert run(*command, "--copies", "5", "-o", "set.jsonl").status == 0
    compare = ("compare", "set.jsonl", "--placers", "metis,round-robin", "--rate", "10000")
    assert run(*compare, "--rate", "20000", "-o", "out", "--jobs", "1").status == 0
    document = read(Path("out/report.html"))
    comparison = document["comparison"]
    assert len(comparison["graphs"]) == 5
    assert comparison["problem"] == [0, 1, 2, 3, 4]
    rates = {result["rate"]: result for result in comparison["results"]}
    assert set(rates) == {10000, 20000}
    for g, problem in enumerate(document["problems"]):
        assert problem["name"] == comparison["graphs"][g]
        values = [row[g] for row in rates[10000]["values"]]
        assert [p["value"] for p in problem["placements"]] == pytest.approx(values, rel=1e-9)
        assert [p["name"] for p in problem["placements"]] == rates[10000]["placers"]
    for result in rates.values():
        means = [row["mean"] for row in result["rows"]]
        assert np.mean(result["values"], axis=1) == pytest.approx(means)


OFFERS = """
[[offers]]
name = "small"
price = 0.2
cores = 2
"""


def test_reports_of_measurements_have_errors_of_predictions(run, graph):
    Path("offers.toml").write_text(OFFERS, encoding="utf-8")
    assert run("place", graph, "--placer", "metis", "-o", "none.html").status == 0
    assert "errors" not in read(Path("none.html"))["problems"][0]
    measured = json.loads(Path(graph).read_text())
    measured["attributes"] = {PROFILE_WINDOWS: 4}
    Path("measured.json").write_text(json.dumps(measured), encoding="utf-8")
    answer = run("place", "measured.json", "--placer", "metis", "--json", "-o", "some.html")
    assert answer.status == 0, answer.err
    told = json.loads(answer.out)["errors"]
    errors = read(Path("some.html"))["problems"][0]["errors"]
    assert (errors["low"], errors["high"]) == pytest.approx((told["low"], told["high"]), rel=1e-6)
    assert "recorded with streamplace" in errors["words"]
    page = Path("some.html").read_text(encoding="utf-8")
    assert f"tuples/s, with {errors['words']}</p>" in page
    plan = ("plan", "measured.json", "--offers", "offers.toml", "--evaluations", "200")
    assert run(*plan, "--rate", "5000", "-o", "plan").status == 0
    assert read(Path("plan/report.html"))["problems"][0]["errors"] == errors


def test_a_plan_and_a_frontier(run, graph):
    """The plan's own numbers and its subtasks on its machines; a frontier has a row per rate."""
    Path("offers.toml").write_text(OFFERS, encoding="utf-8")
    plan = ("plan", graph, "--offers", "offers.toml", "--evaluations", "200")
    assert run(*plan, "--rate", "5000", "-o", "plan").status == 0
    document = read(Path("plan/report.html"))
    written = json.loads(Path("plan/plan.json").read_text())
    shared = ("rate", "cost", "bound", "cheapest", "free")
    assert {key: document["plan"][key] for key in shared} == {key: written[key] for key in shared}
    (problem,) = document["problems"]
    assert len(problem["devices"]["name"]) == sum(written["machines"].values())
    assert document["title"] == f"{problem['name']}: which machines carry 5,000 /s?"
    assert problem["devices"]["price"] == 0.2
    assert document["plan"]["machines"][0]["price"] == 0.2
    assert problem["placements"][0]["throughput"] == 1
    assert problem["command"].endswith("graph.json /dev/stdin --cluster cluster.toml")
    assert run(*plan, "--rate", "5000..9000", "-o", "frontier.html").status == 0
    frontier = read(Path("frontier.html"))["plan"]["curve"]
    assert [point["at"] for point in frontier] == np.linspace(5000, 9000, 9).tolist()
    assert all(Fraction(point["bound"]) <= Fraction(point["cost"]) for point in frontier)


@pytest.mark.parametrize(
    ("operators", "devices", "limit"),
    [(100, 8, 500_000), pytest.param(5000, 100, 2_000_000, marks=pytest.mark.slow)],
)
def test_sizes_are_within_their_limits(operators, devices, limit):
    """The page's own files included; almost every stream uses another link."""
    problem = random_problem(operators, devices)
    page = streamplace.place(problem, placer="round-robin").report().html()
    assert len(page.encode()) <= limit


@pytest.mark.slow
def test_of_a_graph_that_is_too_large_a_report_has_the_words():
    problem = random_problem(MAX_OPERATORS + 1, 7)
    result = streamplace.place(problem, placer="round-robin")
    placed = NamedPlacements(problem, (("p", result.placement),), result.judge)
    for subject in (result, placed, problem.graph):
        report = subject.report()
        document = document_of(report)
        check_document(as_json(document))
        assert document["problems"] == []
        assert document["notes"] == ["Graphs of more than 20,000 operators are not shown."]
        assert "<td>" in report.html()


def test_operators_collapse_by_subtasks_chains_and_units():
    rates = {"a": 1e4, "b#0": 0.0, "b#1": 0.0, "c": 0.0}
    operators = [Operator(name, ipt=1e5, rate=rate) for name, rate in rates.items()]
    streams = [Stream("a", "b#0"), Stream("a", "b#1"), Stream("b#0", "c")]
    graph = StreamGraph.of("g", operators, streams)
    problem = Problem(graph, Cluster.uniform(2), Constraints(colocate=[{"a", "c"}]))
    part = problem_part(problem, [], OBJECTIVES["throughput"])
    assert part["groups"] == [
        {"by": "subtasks", "of": [0, 1, 1, 2], "name": ["a", "b", "c"]},
        {"by": "chains", "of": [0, 1, 2, 1], "name": ["a", "b#0 +1", "b#1"]},
        {"by": "units", "of": [0, 1, 2, 0], "name": ["a +1", "b#0", "b#1"]},
    ]
    assert document_of(graph.report())["problems"][0]["what_if"] == "a graph alone has no devices"


def test_what_streams_cost_belongs_to_their_operators():
    """So that loads follow from the instructions and the speeds of the document."""
    operators = [Operator("a", ipt=1e5, rate=1e4), Operator("b", ipt=1e5)]
    graph = StreamGraph.of("g", operators, [Stream("a", "b", ipt=5e4)])
    problem = Problem(graph, Cluster.uniform(2, mips=2500))
    shown = Shown("p", problem.placement([0, 0]))
    part = problem_part(problem, [shown], OBJECTIVES["throughput"])
    assert part["operators"]["ipt"] == 125_000
    assert part["placements"][0]["loads"]["devices"] == [1, 0]
