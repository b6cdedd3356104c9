"""``streamplace plan``: tables, files for other commands, and refusals."""

import json
import re
from pathlib import Path

import pytest
from planning_cases import chain, pipeline

from streamplace.control import problem as control_problem
from streamplace.control.policy import POLICIES
from streamplace.io.graphs import write_graph
from streamplace.model import Operator
from streamplace.planning.result import FILES

OFFERS = """
overhead = "1 us"
[[offers]]
name = "small"
price = 0.1
mips = 4
cores = 2
[[offers]]
name = "large"
price = 0.35
mips = 4
cores = 8
"""
OF_2000 = ("--rate", "2000", "--offers", "offers.toml", "--evaluations", "20000")
QUICK = ("--offers", "offers.toml", "--evaluations", "2000", "--settings", "one.toml")


@pytest.fixture
def folder(tmp_path, run):
    """Folder with a graph and offers."""
    write_graph(pipeline(), tmp_path / "graph.json")
    (tmp_path / "offers.toml").write_text(OFFERS)
    (tmp_path / "one.toml").write_text("jobs = 1\n")
    return tmp_path


def write_problem(**parts):
    """Write a problem of the graph; returns its file."""
    graph = json.loads(Path("graph.json").read_text())
    Path("problem.json").write_text(json.dumps({"graph": graph, **parts}))
    return "problem.json"


def test_a_plan_is_written_for_the_other_commands(folder, run):
    """What is planned carries the rate when it is simulated from the files."""
    arguments = ("plan", "graph.json", "--rate", "2000", "--offers", "offers.toml", "-o", "out")
    document = json.loads(run(*arguments, "--evaluations", "100000", "--json").out)
    assert document["cost"] >= document["bound"] > 0
    assert json.loads((folder / "out/plan.json").read_text()) == document
    files = ("out/graph.json", "out/placement.json", "--cluster", "out/cluster.toml")
    simulated = json.loads(run("simulate", *files, "--json").out)
    assert simulated["relative_throughput"] == pytest.approx(1.0)


def test_given_machines_are_used_sparingly(folder, run):
    (folder / "mine.toml").write_text(
        'bandwidth = "1 Gbps"\n[[devices]]\nname = "box"\ncount = 4\nmips = 4\ncores = 4\n'
    )
    options = ("--rate", "1500", "--cluster", "mine.toml", "--evaluations", "20000", "--json")
    document = json.loads(run("plan", "graph.json", *options).out)
    assert document["cost"] == document["bound"] == 1
    assert document["limit"]["machine"] == "box0"
    assert document["machines"] == {"box0": 1}
    assert "need 1 machine. No plan needs fewer." in run("plan", "graph.json", *options[:-1]).out


@pytest.mark.usefixtures("folder")
def test_costs_of_a_problem_are_refused(refusal):
    """The cheapest plan of the graph alone is not that of the problem."""
    problem = write_problem(cluster={"devices": [{"name": "d"}]}, seconds=[[1e-6]] * 3)
    assert "seconds" in refusal("plan", problem, *OF_2000)


def test_constraints_of_a_problem_count_unless_others_are_given(folder, run, refusal):
    problem = write_problem(constraints={"exlocate": [["source", "count"]]})
    (folder / "rules.toml").write_text('exlocate = [["source", "count"]]\n')
    rules = ("--constraints", "rules.toml")
    alike = run("plan", "graph.json", *OF_2000, *rules).out
    assert run("plan", problem, *OF_2000).out == alike
    assert "beside those of the problem" in refusal("plan", problem, *OF_2000, *rules)


@pytest.mark.usefixtures("folder")
def test_the_cluster_of_a_problem_does_not_matter(run):
    problem = write_problem(cluster={"devices": [{"name": "d"}]})
    assert run("plan", problem, *OF_2000).out == run("plan", "graph.json", *OF_2000).out


def test_a_trace_is_planned_for_its_peak_and_hour_by_hour(folder, run):
    (folder / "rates.csv").write_text("time,rate\n0,500\n1800,900\n3600,2000\n7200,500\n")
    options = ("--trace", "rates.csv", "--offers", "offers.toml", "--evaluations", "20000")
    document = json.loads(run("plan", "graph.json", *options, "-o", "out", "--json").out)
    assert [hour["rate"] for hour in document["hours"]] == [900, 2000, 500]
    assert document["rate"] == 2000
    assert document["cost"] == document["hours"][1]["cost"] > document["hours"][2]["cost"]
    assert all(hour["carried"] for hour in document["hours"])
    assert ">each hour alone<" in svg_words(folder / "out/plan.svg")
    text = run("plan", "graph.json", *options, "--quantile", "0.5").out
    assert "The plan does not carry the largest rates of" in text


def svg_words(path):
    """Comments of a figure, which hold its texts as they are written."""
    return re.sub(r"<!-- (.*?) -->", r">\1<", path.read_text())


def test_a_plan_is_written_whole_or_not_at_all(folder, refusal):
    (folder / "out" / FILES[-1]).mkdir(parents=True)
    options = ("plan", "graph.json", "--rate", "500", *QUICK, "-o", "out")
    assert f"{FILES[-1]}: " in refusal(*options)


@pytest.mark.usefixtures("folder")
def test_without_a_rate_the_plan_is_for_that_of_the_graph(run):
    graph = pipeline()
    source = graph.operators.name[0]
    for words, rate in (((), graph.source_rate), (("--set", f"{source}.rate=777"), 777)):
        answer = json.loads(run("plan", "graph.json", *QUICK, *words, "--json").out)
        assert answer["rate"] == pytest.approx(rate)


@pytest.fixture
def scheduling(tmp_path, monkeypatch):
    """A day of six hours, of which two need several machines; few plans are enough for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(control_problem, "PLANS", 8)
    clicks = chain(Operator("src", ipt=1e5, rate=1e4), Operator("count", ipt=1e5))
    write_graph(clicks, "graph.json")
    Path("offers.toml").write_text("[[offers]]\nname = 'small'\nprice = 0.1\ncores = 1\n")
    rows = [f"{3600 * hour},{rate}" for hour, rate in enumerate([5e3, 5e3, 4e4, 4e4, 5e3, 5e3])]
    Path("day.csv").write_text("\n".join(["time,rate", *rows]))
    Path("hourly.toml").write_text("slot = '1h'\njobs = 1\n")
    files = "--trace day.csv --offers offers.toml --settings hourly.toml"
    return f"plan graph.json {files} --evaluations 200".split()


def test_low_rates_are_scheduled_fewer_machines(run, scheduling):
    """It costs less than the peak all day, and no less than the bound."""
    answer = json.loads(run(*scheduling, "--schedule", "--policy", "all", "--json").out)
    plans = answer["plans"]
    cost = [plans[step["plan"]]["cost"] for step in answer["steps"]]
    assert len(cost) == 3
    assert cost[0] < cost[1] > cost[2]
    assert answer["bound"] <= answer["cost"] < answer["static_cost"]
    assert all(plans[step["plan"]]["carries"] >= step["rate"] for step in answer["steps"])
    assert {policy["name"] for policy in answer["policies"]} == set(POLICIES)
    assert all(policy["cost"] >= answer["bound"] for policy in answer["policies"])


def test_a_schedule_is_written_with_its_plans(run, scheduling):
    answer = run(*scheduling, "--schedule", "-o", "made")
    assert answer.status == 0
    assert "With" not in answer.err
    assert "No controller that decides between slots" in " ".join(answer.out.split())
    document = json.loads(Path("made/schedule.json").read_text())
    for number, _ in enumerate(document["plans"]):
        assert Path(f"made/plan-{number}/placement.json").exists()
    assert "<svg" in Path("made/schedule.svg").read_text()
