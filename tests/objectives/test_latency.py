"""Deadlines of paths, against all paths of networkx one by one."""

from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest

from streamplace import Cluster, Operator, Problem, Stream, StreamGraph, place, simulate
from streamplace.errors import PlacementError, SettingError, StreamplaceError
from streamplace.model import Constraints, Device
from streamplace.objectives.conditions import read_condition
from streamplace.objectives.registry import OBJECTIVES, named_objective

CAMERA = StreamGraph.of(
    "vision",
    [
        Operator("camera", rate=25, ipt=1e6, payload="200 kB"),
        Operator("detect", ipt=40e6, payload="1 kB"),
        Operator("alarm", ipt=1e6),
        Operator("store", ipt=1e6),
    ],
    [Stream("camera", "detect"), Stream("detect", "alarm"), Stream("detect", "store")],
)
MACHINES = Cluster.of(
    [Device("edge", mips=500), Device("rack", mips=5000)], bandwidth="100 Mbps", latency="2 ms"
)
SPLIT = {"camera": "edge", "detect": "rack", "alarm": "edge", "store": "rack"}
DEADLINE = "latency(camera->alarm)<={}"


def drawn(seed):
    """Problem with many paths, on unlike devices, and a random generator."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    operators = [
        Operator(
            f"v{i}",
            ipt=float(rng.uniform(1e3, 9e6)),
            payload=float(rng.integers(1, 30_000)),
            rate=float(rng.uniform(1, 5)) if i == 0 or rng.random() < 0.2 else 0.0,
        )
        for i in range(n)
    ]
    streams = [
        Stream(f"v{u}", f"v{v}")
        for v in range(1, n)
        if not operators[v].rate
        for u in sorted({0, *np.flatnonzero(rng.random(v) < 0.5).tolist()})
    ]
    cluster = Cluster.of(
        [Device(f"d{i}", mips=float(rng.uniform(1e3, 4e3)), egress=3e7) for i in range(d)],
        bandwidth=rng.uniform(1e7, 1e8, (d, d)),
        latency=rng.uniform(0, 1e-2, (d, d)),
        overhead=float(rng.choice([0, 1e-4])),
        gap=float(rng.choice([0, 1e-4])),
        overhead_per_byte=float(rng.choice([0, 1e-8])),
    )
    allowed = {f"v{n - 1}": ["d0"]} if rng.random() < 0.5 else {}
    graph = StreamGraph.of("drawn", operators, streams)
    return Problem(graph, cluster, Constraints(allowed=allowed)), rng


def takes(problem, path, devices):
    """Seconds of one path, from the page on the models."""
    cluster, operators = problem.cluster, problem.graph.operators
    at = [problem.cluster.devices.index(devices[name]) for name in path]
    total = sum(operators[v].ipt / (cluster.devices.speed[d] * 1e6)
                for v, d in zip(path, at, strict=True))  # fmt: skip
    for v, (a, b) in zip(path, pairwise(at), strict=False):
        if a != b:
            least = min(cluster.bandwidth_bps[a, b], cluster.devices.egress[a])
            per_byte = 8 / least + 2 * cluster.overhead_s_per_byte
            total += cluster.latency_s[a, b] + cluster.gap_s + 2 * cluster.overhead_s
            total += operators[v].payload * per_byte
    return float(total)


@pytest.mark.parametrize("seed", range(40))
def test_a_latency_is_that_of_the_longest_of_all_paths_and_no_less_than_its_bound(seed):
    problem, _ = drawn(seed)
    names = problem.graph.operators.name
    paths = nx.DiGraph([(s.source, s.target) for s in problem.graph.streams])
    paths.add_nodes_from(names)
    places = [dict(zip(names, row, strict=True))
              for row in product(problem.cluster.devices.name, repeat=len(names))]  # fmt: skip
    batch = np.array([[problem.cluster.devices.index(d) for d in p.values()] for p in places])
    legal = problem.legal(batch)
    for a, b in product(names, names):
        judge = named_objective(f"latency({a}->{b})")
        every = [[a]] if a == b else [*nx.all_simple_paths(paths, a, b)]
        if not every:
            with pytest.raises(SettingError, match="no path leads"):
                judge.check(problem)
            continue
        expected = [max(takes(problem, path, p) for path in every) for p in places]
        assert judge.values(problem, batch) == pytest.approx(expected)
        least = judge.bound(problem)
        assert least <= min(np.array(expected)[legal]) * (1 + 1e-9)
        if len(every) == 1:  # which may be placed for it alone
            assert least == pytest.approx(min(np.array(expected)[legal]))
        one = problem.placement(batch[seed % len(batch)])
        told, _ = judge.culprit(problem, one)
        path = told.partition(" takes ")[0].split(" → ")
        assert takes(problem, path, one) == pytest.approx(judge.value(problem, one))
    ends = [(a, b) for a in names if not paths.pred[a] for b in names if nx.has_path(paths, a, b)]
    each = [named_objective(f"latency({a}->{b})").values(problem, batch) for a, b in ends]
    assert np.max(each, axis=0) == pytest.approx(OBJECTIVES["latency"].values(problem, batch))


@pytest.mark.parametrize("seed", range(12))
def test_the_best_placement_under_a_deadline_is_that_of_all_placements(seed):
    problem, _ = drawn(seed)
    problem = problem.at_rate(problem.graph.source_rate * 400)
    n, d = problem.n_operators, problem.n_devices
    batch = np.array([*product(range(d), repeat=n)], np.int32)
    batch = batch[problem.legal(batch)]
    deadline = named_objective(f"latency(v0->v{n - 1})")
    if deadline.refuses(problem):
        deadline = named_objective("latency(v0->v0)")
    late = deadline.values(problem, batch)
    limit = float(np.quantile(late, 0.3))
    best = OBJECTIVES["throughput"].values(problem, batch[late <= limit * (1 + 1e-9)]).max()
    condition = f"{deadline.name}<={limit!r}"
    result = place(problem, require=condition, budget=1)
    assert result.value == pytest.approx(best)
    assert result.proven


def test_a_missed_deadline_names_the_path_and_what_takes_longest():
    words = r"camera → detect → alarm takes 32\.08 ms, 20 ms allowed; link edge–rack 18 ms of it"
    with pytest.raises(PlacementError, match=words):
        simulate(CAMERA, SPLIT, MACHINES, require=DEADLINE.format("20ms"))


def test_a_deadline_that_is_met_is_told_with_its_path():
    result = place(CAMERA, MACHINES, require=DEADLINE.format("50 ms"), budget="50 ms")
    assert result.to_json()["conditions"][0]["value"] <= 0.05
    assert "camera → detect → alarm takes" in str(result.report())


def test_a_deadline_holds_for_all_subtasks():
    operators = [Operator("a", rate=1, ipt=1e6), Operator("b", ipt=1e6, parallelism=2)]
    graph = StreamGraph.of("two", operators, [Stream("a", "b")])
    result = place(graph, 2, require="latency(a->b)<=5ms", subtasks=True, budget="50 ms")
    assert {*result.placement.operators} == {"a", "b#0", "b#1"}


def test_names_of_operators_may_contain_arrows_and_signs():
    names = ["Source: a -> b", "c (d) >= e"]
    operators = [Operator(names[0], rate=1, ipt=1e6), Operator(names[1], ipt=1e6)]
    problem = Problem(StreamGraph.of("odd", operators, [Stream(*names)]), Cluster.uniform(1))
    condition = read_condition(f"latency({names[0]} -> {names[1]}) <= 5ms")
    assert condition.objective.value(problem, problem.placement([0, 0])) == pytest.approx(8e-4)


@pytest.mark.parametrize(
    ("condition", "complaint"),
    [
        ("latency(alarm->camera)<=1s", "no path leads from 'alarm' to 'camera'"),
        ("latency(camera->alrm)<=1s", "no operator 'alrm'; did you mean 'alarm'"),
        ("latency(camera->alarm)<=soon", "'soon' is not a number"),
        ("latency(camera)<=1s", r"write latency\(FROM->TO\)"),
        ("throughput(camera->alarm)>=1", "throughput takes no path"),
    ],
)
def test_a_deadline_without_meaning_is_refused_in_one_line(condition, complaint):
    with pytest.raises(StreamplaceError, match=rf"\A[^\n]*{complaint}[^\n]*\Z"):
        place(CAMERA, MACHINES, require=condition)
