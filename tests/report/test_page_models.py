"""The models of the page, in Node, against Python's values on random problems.

Each problem has two or three placements. Together they have every feature of the models: several
sources, network cards, overhead, gaps, windows, operators that fire all, several cores, uneven key
groups, cost matrices, constant loads, limits of subtasks, messages of streams of every kind, and
the three orders of a pass.
"""

import contextlib
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
from ruled_plans import ruled_cluster
from streamsim import throughput as python_throughput

import streamplace.report
from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.errors import ProblemError
from streamplace.model.constraints import Constraints
from streamplace.model.graph import Attribute
from streamplace.model.operators import Window
from streamplace.model.streams import CHAINED, RESCALE
from streamplace.objectives.registry import OBJECTIVES
from streamplace.objectives.survives import loss_of
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
    is_limited, sends = rng.random(2) < 0.5
    joins = [v in fed and not sends and rng.random() < 0.3 for v in range(n)]
    windows = [None if joins[v] or rng.random() < 0.8 else _window(rng) for v in range(n)]
    selectivity = _selectivities(rng, edges, rate, joins, windows)
    operators = [_operator(rng, v, rate[v], joins[v], windows[v], is_limited) for v in range(n)]
    streams = []
    for (u, v), share in zip(edges, selectivity, strict=True):
        kinds = ["", "rebalance", "hash", RESCALE]
        kinds += ["forward", CHAINED] * (operators[u].parallelism == operators[v].parallelism)
        kind = str(rng.choice(kinds)) if sends else ""
        streams.append(Stream(f"v{u}", f"v{v}", share, _of(rng, 0, 1e4, 5e4), kind))
    facts: dict[str, Attribute] = {"message ipt": 4e6, "buffer timeout": 0.1}
    for operator in operators:
        facts[f"messages per tuple of {operator.name}"] = float(rng.choice([0.0, 0.5, 3.0]))
    graph = StreamGraph.of(name, [operators[v] for v in label], streams, facts if sends else {})
    seconds = None
    if rng.random() < 0.2:
        seconds = [[_of(rng, 0, 0.01, 0.05) for _ in range(d)] for _ in range(n)]
    return Problem(graph, _cluster(rng, d), seconds=seconds)


def _operator(rng, v, rate, joins, window, is_limited):
    """An operator; one that is limited may leave little of a device, nothing, or less."""
    groups = int(rng.choice([0, 0, 3, 8]))
    held, most, cores = (
        float(rng.choice(values))
        for values in ([0.0] * 9 + [75, 200, 350, 1100], [0.0, 0.0, 3.0, 20.0], [1.0, 1.3, 4.0])
    )
    limits = {"constant": held, "max_rate": most, "cores": cores} if is_limited else {}
    return Operator(
        f"v{v}",
        ipt=_of(rng, 0, 1e7, 5e7),
        rate=rate,
        parallelism=int(rng.integers(1, 4)),
        max_parallelism=groups,
        window=window,
        fires="all" if joins else "each",
        **limits,
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


def test_problems_have_what_limits_jobs():
    """Devices with nothing left, limits of subtasks, and messages that another rate changes."""
    given = [pair for pair in problems(60) if not pair[0].graph.operators.fires_all.any()]
    shares = [throughput_of(*pair) for pair in given]
    assert shares.count(0.0) > 3
    assert sum(0 < share < 1 for share in shares) > 20
    assert sum(len(problem.instance.max_rate) > 0 for problem, _ in given) > 10
    values, others = (
        [throughput_of(change(problem, 2.5), places) for problem, places in given]
        for change in (changed, as_constant)
    )
    pairs = zip(values, others, strict=True)
    assert sum(value != pytest.approx(held, rel=1e-3) for value, held in pairs) > 5


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
@pytest.mark.parametrize(("rate", "speed"), [(1.7, 1.3), (0.4, 1.0), (2.5, 1.0)])
def test_another_rate_and_other_speeds_agree_with_python(rate, speed, tmp_path):
    """But for limits behind windows: the page keeps the parts of subtasks of the rate it has."""
    given = [
        (problem, places)
        for problem, places in problems(80)
        if not problem.graph.operators.fires_all.any()
        and not (len(problem.instance.max_rate) and len(problem.instance.windows))
    ]
    expected = [throughput_of(changed(problem, rate, speed), places) for problem, places in given]
    found = computed(tmp_path, parts(given), str(rate), str(speed))
    assert found == pytest.approx(expected, rel=1e-9)


def as_constant(problem, rate):
    """The problem at another rate, with messages as at its own one."""
    graph = problem.graph
    fixed = replace(graph.operators, constant=graph.charged_constant)
    plain = StreamGraph(graph.name, fixed, replace(graph.streams, operators=fixed))
    return changed(Problem(plain, problem.cluster, seconds=problem.seconds), rate)


def changed(problem, rate, speed=1.0):
    """The problem with all sources and all devices so many times as fast."""
    fast = problem.at_rate(float(problem.graph.operators.rate.sum()) * rate)
    slow = problem.cluster.devices
    devices = replace(slow, mips=slow.mips * speed, reserved=slow.reserved * speed)
    seconds = None if problem.seconds is None else np.array(problem.seconds) / speed
    return Problem(fast.graph, replace(problem.cluster, devices=devices), seconds=seconds)


@needs_node
def test_losses_of_devices_agree_with_python(tmp_path):
    """Only operators of the device move, by the rules but its pins, and at most the best share."""
    given = [(problem, places[0].placement) for problem, places in problems(40)]
    for seed in range(40):
        with contextlib.suppress(ProblemError):
            ruled = Problem(*ruled_cluster(seed))
            place = np.random.default_rng(seed).integers(0, 4, ruled.n_operators)
            given.append((ruled, ruled.placement(ruled.repaired(place))))
    given = [(problem, placement) for problem, placement in given if problem.legal(placement.index)]
    documents = parts((problem, [Shown("p", placement)]) for problem, placement in given)
    carried = freed = 0
    for (problem, placement), losses in zip(
        given, computed(tmp_path, documents, "lossesOf"), strict=True
    ):
        for d, found in enumerate(losses):
            best, lost = loss_of(problem, placement, placement.devices[d]), placement.index == d
            if found is None:
                assert not best.moved or problem.rules is not None
                continue
            place, share = np.array(found[0]), found[1]
            assert np.array_equal(place[~lost], placement.index[~lost])
            assert d not in place
            assert problem.unpinned.legal(place)
            assert share == pytest.approx(python_throughput(problem.instance, [place])[0], rel=1e-9)
            assert not best.exact or share <= best.relative_throughput * (1 + 1e-9)
            carried += share > 0
            freed += not problem.legal(place)[0]
    assert carried > 100
    assert freed > 5


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
