"""A pass as people look at it: a Gantt chart, and a trace for Perfetto."""

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import random_tasks

from streamplace.api import simulate
from streamplace.drawing.figures import empty_figure
from streamplace.drawing.gantt import gantt, trace
from streamplace.io.problems import write_problem
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import named_objective


def tangle(n, seed, cores=2):
    """Tasks that each need some of those before."""
    graph = random_tasks(n, seed, lambda rng, i: sorted({*rng.integers(max(0, i - 6), i, 2)}))
    devices = [Device(f"$w{d}_", cores=1 + d % cores, mips=1000) for d in range(3)]
    return Problem(graph, Cluster.of(devices, bandwidth="30 bps"))


def timeline(problem, placement, options=""):
    """One pass by the objective."""
    return named_objective(f"makespan{options}").timeline(problem, placement)


@settings(max_examples=30)
@given(st.integers(1, 25), st.integers(0, 99), st.sampled_from(["free", "sender", "shared"]))
def test_a_trace_is_the_schedule(n, seed, network):
    """Every task once, cores never twice at a time, arrows forward; the parts add up."""
    problem = tangle(n, seed)
    placement = problem.placement(np.random.default_rng(seed).integers(0, 3, n))
    told: Any = simulate(problem, placement, objective=f"makespan:network={network}")
    document = trace(problem, placement, timeline(problem, placement, f":network={network}"))
    events = document["traceEvents"]
    assert {event["ph"] for event in events} <= {"M", "X", "s", "f"}
    assert all({"ph", "pid", "tid", "name"} <= event.keys() for event in events)
    process = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    runs = {e["name"]: e for e in events if e["ph"] == "X" and e["cat"].startswith("running")}
    assert runs.keys() == told.schedule.keys()
    for name, run in told.schedule.items():
        event = runs[name]
        assert process[event["pid"]] == run.device
        assert event["ts"] == pytest.approx(1e6 * run.start)
        assert event["ts"] + event["dur"] == pytest.approx(1e6 * run.finish)
        assert event["tid"] <= problem.cluster.devices[run.device].cores
    lanes = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in lanes.values():
        spans.sort()
        assert all(a[1] <= b[0] + 1e-3 for a, b in pairwise(spans))
    sent = {e["id"]: e for e in events if e["ph"] == "s"}
    got = {e["id"]: e for e in events if e["ph"] == "f"}
    assert sent.keys() == got.keys()
    assert len(sent) == len(told.transfers)
    assert all(got[i]["ts"] > sent[i]["ts"] for i in sent)
    assert document["otherData"]["makespan_s"] == told.makespan


@pytest.fixture
def files(tmp_path):
    """A problem and a placement of it."""
    problem = tangle(20, 1)
    write_problem(problem, tmp_path / "tangle.json")
    names = problem.graph.operators.name
    assignment = {name: problem.cluster.devices.name[i % 3] for i, name in enumerate(names)}
    (tmp_path / "placed.json").write_text(json.dumps({"assignment": assignment}))
    return "tangle.json", "placed.json"


def test_a_pass_is_drawn(run, files, tmp_path):
    """Devices and links as rows; the same bytes every time."""
    answer = run("simulate", *files, "-o", "run.svg")
    assert "plot → run.svg" in answer.err
    drawn = (tmp_path / "run.svg").read_text()
    for told in ("$w0_", "$w0_→$w1_", "on the critical chain", "t19"):
        assert f"<!-- {told}" in drawn or told in drawn
    run("simulate", *files, "-o", "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawn
    for suffix in ("png", "pdf"):
        assert run("simulate", *files, "-o", f"run.{suffix}").status == 0


def test_traces_are_kept(run, files, tmp_path):
    answer = run("simulate", *files, "-o", "run.trace.json", "--json")
    told = json.loads(answer.out)
    written = json.loads((tmp_path / "run.trace.json").read_text())
    facts = {"graph": "tasks1", "makespan_s": told["makespan"], "queue": "fifo"}
    assert written["otherData"] == facts
    assert "perfetto" in answer.err


@pytest.mark.slow
def test_long_passes_are_drawn_without_names(run, tmp_path):
    """Ten thousand bars are a few collections, not ten thousand texts."""
    problem = tangle(10_000, 0)
    write_problem(problem, tmp_path / "large.json")
    names, devices = problem.graph.operators.name, problem.cluster.devices.name
    assignment = {name: devices[i * 3 // len(names)] for i, name in enumerate(names)}
    (tmp_path / "placed.json").write_text(json.dumps({"assignment": assignment}))
    assert run("simulate", "large.json", "placed.json", "-o", "run.png").status == 0
    assert (tmp_path / "run.png").stat().st_size < 1_000_000


@pytest.mark.parametrize("name", ["run.png", "run.trace.json"])
def test_what_has_no_pass_has_no_picture_of_one(refusal, files, name):
    line = refusal("simulate", *files, "--objective", "throughput", "-o", name)
    assert "--objective makespan" in line


def drawn(payload, work=2.5e9, n=6):
    """Title and chart of a chain over two devices in turn."""
    names = [f"a_long_name_of_a_task_{i:08d}" for i in range(n)]
    operators = [Operator(name, ipt=work, payload=payload) for name in names]
    streams = [Stream(*pair) for pair in pairwise(names)]
    graph = StreamGraph.of("g", operators, streams, fires="all")
    problem = Problem(graph, Cluster.uniform(2))
    figure = empty_figure()
    placement = problem.placement([i % 2 for i in range(n)])
    return gantt(problem, placement, timeline(problem, placement), figure), figure


def test_every_device_and_every_link_with_something_to_do_has_a_row():
    """A transfer of 100 MB takes as long as the task before it."""
    title, figure = drawn(payload=1e8)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == ["d0", "d1", "d0→d1", "d1→d0"]
    assert "left out" not in title


def test_the_names_of_tasks_are_cut_where_they_are_alike():
    """In the middle, so that the ends, which differ, are there."""
    _, figure = drawn(payload=0, n=12)
    tasks = {text.get_text() for text in figure.axes[0].texts}
    assert len(tasks) == 12
    assert all(text[-2:].isdigit() for text in tasks)


@pytest.mark.parametrize(
    ("seconds", "unit"), [(1e-5, "microseconds"), (0.1, "milliseconds"), (10, "seconds"),
                          (1000, "minutes"), (20_000, "hours")]
)  # fmt: skip
def test_the_axis_has_the_unit_that_reads_best(seconds, unit):
    _, figure = drawn(payload=0, work=2.5e9 * seconds / 6)
    assert figure.axes[0].get_xlabel() == unit


def test_links_of_which_nothing_could_be_seen_are_left_out():
    """A hundred tasks at once, none of them but one on the way to the end."""
    names = [f"t{i}" for i in range(10)]
    operators = [Operator("a", ipt=1e3, payload=1), Operator("z", ipt=2.5e10)]
    operators += [Operator(name, ipt=1e3, payload=1) for name in names]
    graph = StreamGraph.of("g", operators, [Stream("a", name) for name in names], fires="all")
    problem = Problem(graph, Cluster.uniform(3))
    figure = empty_figure()
    row = [0, 0, *(1 + i % 2 for i in range(10))]
    placement = problem.placement(row)
    title = gantt(problem, placement, timeline(problem, placement), figure)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == ["d0", "d1", "d2"]
    assert "2 links with little to do left out" in title
