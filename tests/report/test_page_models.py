"""The models of the page, in Node, against Python's values on random problems.

Each problem has two or three placements. Together they have every feature of the models: several
sources, network cards, overhead, gaps, windows, operators that fire all, several cores, uneven key
groups, cost matrices, and the three orders of a pass.
"""

import json
import subprocess
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path
from shutil import which
from typing import Any, cast

import numpy as np
import pytest
from streamsim import throughput as python_throughput

import streamplace.report
from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.constraints import Constraints
from streamplace.model.graph import Attribute
from streamplace.model.operators import Window
from streamplace.model.streams import CHAINED, RESCALE
from streamplace.objectives.registry import OBJECTIVES
from streamplace.objectives.throughput.explain import explain
from streamplace.report.problems import Shown, problem_part

HERE = Path(__file__).parent
PAGE = Path(streamplace.report.__file__).parent
needs_node = pytest.mark.skipif(which("node") is None, reason="needs Node")


def parts(pairs):
    """Problems of reports with placements."""
    return [problem_part(*pair, OBJECTIVES["throughput"]) for pair in pairs]


def problems(count):
    """Problems, and two or three placements of each."""
    for i in range(count):
        rng = np.random.default_rng([0, i])
        problem = _problem(rng, f"{i}")
        yield problem, _placements(rng, problem)


def _problem(rng, name):
    n, d = int(rng.integers(1, 11)), int(rng.integers(1, 5))
    label = rng.permutation(n)
    pairs = [(u, v) for v in range(n) for u in range(v)]
    edges = sorted({pairs[i] for i in rng.integers(0, max(1, len(pairs)), 2 * n) if pairs})
    fed = {v for _, v in edges}
    rate = [0.0 if v in fed else _of(rng, 1, 10, 40) for v in range(n)]
    joins = [v in fed and rng.random() < 0.3 for v in range(n)]
    windows = [None if joins[v] or rng.random() < 0.8 else _window(rng) for v in range(n)]
    selectivity = _selectivities(rng, edges, rate, joins, windows)
    operators = [_operator(rng, v, rate[v], joins[v], windows[v]) for v in range(n)]
    streams = [
        Stream(f"v{u}", f"v{v}", share, _of(rng, 0, 1e4, 5e4))
        for (u, v), share in zip(edges, selectivity, strict=True)
    ]
    graph = StreamGraph.of(name, [operators[v] for v in label], streams)
    seconds = None
    if rng.random() < 0.2:
        seconds = [[_of(rng, 0, 0.01, 0.05) for _ in range(d)] for _ in range(n)]
    return Problem(graph, _cluster(rng, d), seconds=seconds)


def _operator(rng, v, rate, joins, window):
    groups = int(rng.choice([0, 0, 3, 8]))
    return Operator(
        f"v{v}",
        ipt=_of(rng, 0, 1e7, 5e7),
        rate=rate,
        parallelism=int(rng.integers(1, 4)),
        max_parallelism=groups,
        window=window,
        fires="all" if joins else "each",
    )


def _window(rng):
    limit = float(rng.choice([20.0, np.inf]))
    size = 2.0 * int(rng.integers(1, 4))
    return Window(size, 2.0, base=_of(rng, 0, 1), factor=_of(rng, 0.1, 0.5), limit=limit)


def _selectivities(rng, edges, rate, joins, windows):
    """Tuples per tuple, such that all streams into an operator that fires all have one rate."""
    selectivity = [_of(rng, 0.25, 0.5, 1, 2) for _ in edges]
    flow = list(rate)
    for v in range(len(rate)):
        into = [e for e, (_, target) in enumerate(edges) if target == v]
        output = {e: _output(flow[edges[e][0]], windows[edges[e][0]]) for e in into}
        if joins[v]:
            flow[v] = _of(rng, 5, 10)
            for e in into:
                selectivity[e] = flow[v] / output[e]
        else:
            flow[v] += sum(selectivity[e] * output[e] for e in into)
    return selectivity


def _output(rate, window):
    if window is None:
        return rate
    return min(window.limit, window.base + window.factor * rate * window.size) / window.advance


def _cluster(rng, d):
    cores = [int(rng.choice([1, 1, 2, 4])) for _ in range(2)]
    cards, costs = rng.random() < 0.4, rng.random() < 0.4
    devices = []
    for a in range(d):
        kind = int(rng.integers(0, 2))
        limits: dict[str, Any] = {}
        if cards:
            limits = {"egress": _of(rng, 8e6, 4e7, np.inf), "ingress": _of(rng, 8e6, 4e7, np.inf)}
        if costs and a % 2:
            limits["reserved"] = 200.0
        devices.append(Device(f"d{a}", mips=[1000.0, 500.0][kind], cores=cores[kind], **limits))
    alike = rng.random() < 0.3
    matrix = [[_of(rng, 1.6e7, 8e7) for _ in range(d)] for _ in range(d)]
    return Cluster.of(
        devices,
        bandwidth=1.6e7 if alike else np.array(matrix),
        latency=_of(rng, 0, 0.01),
        overhead=_of(rng, 0, 1e-3, 5e-3) if costs else 0.0,
        overhead_per_byte=_of(rng, 0, 1e-8, 5e-8) if costs else 0.0,
        gap=_of(rng, 0, 1e-3, 5e-3) if costs else 0.0,
    )


def _placements(rng, problem):
    """Placements in the three orders of a pass; along the graph, an order that can be held."""
    shown = []
    depth = np.empty(problem.n_operators)
    depth[problem.graph.order] = -np.arange(problem.n_operators)
    for k in range(int(rng.integers(2, 4))):
        place = rng.integers(0, problem.n_devices, problem.n_operators)
        queue = str(rng.choice(["", "priority", "order"]))
        ties = rng.integers(0, 3, problem.n_operators).astype(float)
        priority = {"": None, "priority": ties, "order": depth}[queue]
        placement = problem.placement(place, priority, queue or "priority")
        shown.append(Shown(f"p{k}", placement))
    return shown


def _of(rng, *values):
    """One of a few round values, so that exact ties happen, or anything between them."""
    if rng.random() < 0.5:
        return float(rng.choice(values))
    finite = [value for value in values if np.isfinite(value)]
    return float(rng.uniform(max(min(finite), 1e-3 * max(finite)), max(finite)))


def computed(folder, given, *options):
    """Answers of the models of the page; by default, how they differ from Python's."""
    file = folder / "problems.jsonl"
    lines = (json.dumps(part, separators=(",", ":")) + "\n" for part in given)
    file.write_text("".join(lines), encoding="utf-8")
    command = ["node", str(HERE / "models.mjs"), str(PAGE / "page.js"), str(file), *options]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    answer: list[Any] = json.loads(result.stdout)
    return answer


def throughput_of(problem, places):
    """Python's throughput of the first placement of a problem."""
    return float(python_throughput(problem.instance, [places[0].placement.index])[0])


@needs_node
@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_page_agrees_with_python_at_once_and_move_by_move(count, tmp_path):
    assert computed(tmp_path, parts(problems(count))) == []


@needs_node
def test_constant_loads_and_limits_of_subtasks_agree_with_python(tmp_path):
    """Devices with little left, with nothing left, and with less than nothing."""
    rng = np.random.default_rng(31)
    held = list[tuple[Problem, list[Shown]]]()
    for problem, places in problems(100):
        if problem.graph.operators.fires_all.all():
            continue
        mips = problem.cluster.devices.mips.mean()
        constant = rng.choice([0.0, 0.0, 0.0, 0.1, 0.3, 0.5, 1.5], problem.n_operators) * mips
        most = rng.choice([0.0, 0.0, 3.0, 20.0], problem.n_operators)
        cores = rng.choice([1.0, 1.0, 1.3, 4.0], problem.n_operators)
        operators = replace(problem.graph.operators, constant=constant, max_rate=most, cores=cores)
        graph = problem.graph.with_operators(operators)
        same = Problem(graph, problem.cluster, problem.constraints, problem.seconds)
        held.append((same, places))
    assert computed(tmp_path, parts(held)) == []
    shares = [throughput_of(*pair) for pair in held]
    assert 0.0 in shares
    assert any(0 < share < 1 for share in shares)
    assert sum(len(problem.instance.max_rate) > 0 for problem, _ in held) > 20


@needs_node
def test_the_sentence_names_the_subtask_that_reads_no_more(tmp_path):
    """Of a source, that emits no more; and where the rate is carried, the fullest one."""
    given = []
    for rate, source, most in ((1e4, 0.0, 6e3), (1e4, 4e3, 6e3), (3e3, 0.0, 6e3), (1e4, 0.0, 0.0)):
        operators = [Operator("src", rate=rate, max_rate=source), Operator("ask", max_rate=most)]
        graph = StreamGraph.of("g", operators, [Stream("src", "ask")])
        problem = Problem(graph, Cluster.of([Device("edge")]))
        given.append((problem, [Shown("p", problem.placement([0, 0]))]))
    needs = "is the bottleneck: the full rate would need"
    assert computed(tmp_path, parts(given), "sentences") == [
        f"A subtask of ask (reads at most 6,000 tuples/s) {needs} 166.7 % of it.",
        f"A subtask of src (emits at most 4,000 tuples/s) {needs} 250.0 % of it.",
        "Every source runs at its full rate. The fullest resource is a subtask of ask "
        "(reads at most 6,000 tuples/s), 50.0 % busy.",
        "No resource is used.",
    ]


@needs_node
def test_the_sentence_names_who_fills_a_core(tmp_path):
    """As the terminal does; operators on another device fill none of its cores."""
    work = [("src", 1e4, 1e4), ("parse", 5e5, 0.0), ("twin", 5e5, 0.0), ("other", 4e5, 0.0)]
    operators = [Operator(name, ipt=ipt, rate=rate) for name, ipt, rate in work]
    streams = [Stream("src", name) for name, _, rate in work if not rate]
    cluster = Cluster.of([Device("edge", cores=8), Device("far", cores=8)], bandwidth=1e9)
    problem = Problem(StreamGraph.of("g", operators, streams), cluster)
    placements = [problem.placement(place) for place in ([0, 0, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1])]
    given = [(problem, [Shown("p", placement)]) for placement in placements]
    needs = "is the bottleneck: the full rate would need 200.0 % of it, which"
    assert computed(tmp_path, parts(given), "sentences") == [
        f"One core of edge {needs} each of parse, twin fills.",
        f"One core of edge {needs} parse fills alone.",
        f"One core of far {needs} each of parse, twin fills.",
    ]


@needs_node
def test_levels_of_sources_under_rules_agree_with_python(tmp_path):
    """With a heavy source, and one that shares its device, on the only one with their memory."""
    rng = np.random.default_rng(51)
    given = list[tuple[Problem, list[Shown]]]()
    for problem, _ in problems(400):
        graph, n, d = problem.graph, problem.n_operators, problem.n_devices
        if len(graph.sources) < 2 or d < 2 or graph.operators.fires_all.any():
            continue
        heavy, beside = int(rng.choice(graph.sources)), int(rng.integers(n))
        ipt, memory = graph.operators.ipt.copy(), np.zeros(n)
        ipt[heavy], memory[heavy] = 1e9, 2e6
        names = graph.operators.name
        rules = Constraints(colocate=[{names[heavy], names[beside]}] if heavy != beside else [])
        if rng.random() < 0.5:
            rules = Constraints(pin={names[heavy]: f"d{d - 1}"})
        room = np.where(np.arange(d) < d - 1, 1e6, np.inf)
        cluster = replace(problem.cluster, devices=replace(problem.cluster.devices, memory=room))
        busy = graph.with_operators(replace(graph.operators, ipt=ipt, memory=memory))
        ruled = Problem(busy, cluster, rules)
        place = ruled.repaired(rng.integers(0, d - 1, n))
        given.append((ruled, [Shown("p", ruled.placement(place))]))
    documents = parts(given)
    assert computed(tmp_path, documents) == []
    levels = [document["placements"][0].get("levels", []) for document in documents]
    assert sum(len(of) > 1 for of in levels) > 2
    assert sum(bool(level["stuck"]) for of in levels for level in of) > 10


@needs_node
def test_the_sentence_tells_sources_that_are_not_carried_whole(tmp_path):
    """As the terminal does: those that are stuck, then the others and what limits them."""
    operators = [
        Operator("cam", rate=100),
        Operator("video", ipt=5e7),
        Operator("meter", rate=1e4, payload=1e4),
        Operator("store"),
    ]
    streams = [Stream("cam", "video"), Stream("meter", "store")]
    cluster = Cluster.of([Device(name, mips=1000) for name in ("a", "b")], bandwidth=4e8)
    problem = Problem(StreamGraph.of("g", operators, streams), cluster)
    placement = problem.placement([0, 0, 0, 1])
    (told,) = computed(tmp_path, parts([(problem, [Shown("p", placement)])]), "sentences")
    assert told == (
        "The CPU of a is the bottleneck: the full rate would need 500.0 % of it. Not carried "
        "whole: cam: 20.0 % of their rates at once, as no device that may run video is faster; "
        "meter: 50.0 % of their rates at once, by the link from a to b. If all sources offer "
        "their rates, they get: cam 20.0 %, meter 50.0 %."
    )
    lines = " ".join(explain(problem, placement).source_lines)
    assert "cam: 20.0 % of their rates at once, as no device that may run video is faster" in lines
    assert "meter: 50.0 % of their rates at once" in lines


@needs_node
def test_another_rate_and_other_speeds_agree_with_python(tmp_path):
    given = [pair for pair in problems(60) if not pair[0].graph.operators.fires_all.any()]
    expected = [throughput_of(changed(problem, 1.7, 1.3), places) for problem, places in given]
    assert computed(tmp_path, parts(given), "1.7", "1.3") == pytest.approx(expected, rel=1e-9)


@needs_node
@pytest.mark.parametrize("rate", [0.4, 2.5])
def test_messages_agree_with_python_at_any_rate(rate, tmp_path):
    """Those that the work per tuple contains, and streams of every kind, beside constant loads."""
    rng = np.random.default_rng(41)
    given = []
    for problem, places in problems(80):
        if problem.graph.operators.fires_all.any() or not problem.graph.n_streams:
            continue
        operators, streams = problem.graph.operators, problem.graph.streams
        p = operators.parallelism
        kinds = ["", "rebalance", "hash", RESCALE]
        equal = [*kinds, "forward", CHAINED]
        ways = p[streams.source] == p[streams.target]
        held = rng.choice([0.0, 0.0, 0.2], problem.n_operators) * 500.0
        attributes: dict[str, Attribute] = {"message ipt": 4e6, "buffer timeout": 0.1}
        for name in operators.name:
            attributes[f"messages per tuple of {name}"] = float(rng.choice([0.0, 0.5, 3.0]))
        busy = replace(operators, constant=held)
        partitioning = [str(rng.choice(equal if way else kinds)) for way in ways]
        sent = replace(streams, operators=busy, partitioning=partitioning)
        graph = StreamGraph(problem.graph.name, busy, sent, attributes)
        given.append((Problem(graph, problem.cluster, seconds=problem.seconds), places))
    assert computed(tmp_path, parts(given)) == []
    values = [throughput_of(changed(problem, rate, 1.0), places) for problem, places in given]
    assert computed(tmp_path, parts(given), str(rate), "1") == pytest.approx(values, rel=1e-9)
    others = [throughput_of(as_constant(problem, rate), places) for problem, places in given]
    pairs = zip(values, others, strict=True)
    assert sum(value != pytest.approx(held, rel=1e-3) for value, held in pairs) > 10


def as_constant(problem, rate):
    """The problem at another rate, with messages as at its own one."""
    graph = problem.graph
    fixed = replace(graph.operators, constant=graph.charged_constant)
    plain = StreamGraph(graph.name, fixed, replace(graph.streams, operators=fixed))
    return changed(Problem(plain, problem.cluster, seconds=problem.seconds), rate, 1.0)


def changed(problem, rate, speed):
    """The problem with all sources and all devices so many times as fast."""
    fast = problem.at_rate(float(problem.graph.operators.rate.sum()) * rate)
    instance = problem.instance
    seconds = instance.seconds[:, instance.device_type] / speed
    return Problem(fast.graph, fast.cluster, fast.constraints, seconds, fast.moving)


@needs_node
@pytest.mark.parametrize(
    ("keys", "what"),
    [
        (["throughput"], "the throughput"),
        (["loads", "devices", 0], "the load of a device"),
        (["one_pass", "makespan"], "the makespan"),
        (["one_pass", "start", -1], "a start"),
    ],
)
def test_a_value_that_differs_is_noticed(tmp_path, keys, what):
    (problem,) = cast(list[Any], parts(problems(1)))
    *path, last = keys
    values = reduce(getitem, path, problem["placements"][1])
    values[last] -= 1e-8
    assert computed(tmp_path, [problem]) == [f"{problem['name']}: {what} of the placement p1"]


@needs_node
@pytest.mark.skipif(
    not (PAGE / "page" / "node_modules" / "esbuild").exists(), reason="needs `make page` once"
)
def test_the_committed_page_is_what_its_sources_give(tmp_path):
    build = ["node", str(PAGE / "page" / "build.mjs"), str(tmp_path)]
    subprocess.run(build, check=True, timeout=120)
    for name in ("page.js", "page.css"):
        assert (tmp_path / name).read_bytes() == (PAGE / name).read_bytes(), name
