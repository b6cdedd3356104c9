"""METIS as a placer."""

import ctypes
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placer_cases import counted
from problems import layered

from streamplace.cli.main import main
from streamplace.errors import SettingError
from streamplace.io.graphs import write_graph
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import partition_graph
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]
METIS = PLACERS["metis"]


def two_pipelines(ipt=1000.0, payload=10.0):
    """A source that feeds two pipelines of three operators; only its streams are light."""
    names = ["a1", "a2", "a3", "b1", "b2", "b3"]
    operators = [Operator("src", ipt=1, payload=1e-3, rate=100)]
    operators += [Operator(name, ipt=ipt, payload=payload) for name in names]
    pairs = [("src", "a1"), ("a1", "a2"), ("a2", "a3"), ("src", "b1"), ("b1", "b2"), ("b2", "b3")]
    return StreamGraph.of("two", operators, [Stream(u, v) for u, v in pairs])


def heavy_source():
    """A pipeline whose source needs 25 times the CPU of all the rest."""
    operators = [Operator("v0", ipt=100, rate=1), *(Operator(f"v{i}", ipt=1) for i in range(1, 5))]
    streams = [Stream(f"v{i}", f"v{i + 1}") for i in range(4)]
    return StreamGraph.of("pipeline", operators, streams)


def islands(n):
    """Sources that feed nobody."""
    return StreamGraph.of("islands", [Operator(f"s{i}", ipt=1 + i, rate=1) for i in range(n)])


def placed(graph, cluster=None, constraints=None, seed=0, **options):
    """Place by METIS."""
    problem = Problem(graph, cluster or Cluster.uniform(2), constraints or Constraints())
    return METIS.with_options(**options).place(problem, THROUGHPUT, seed=seed).placement


def loads(graph, placement, n):
    """Share of the graph's CPU load on each device."""
    busy = graph.input_rate * graph.operators.ipt
    return np.bincount(placement.index, busy, minlength=n) / busy.sum()


def test_pipelines_stay_whole_when_only_the_streams_between_them_are_light():
    placement = placed(two_pipelines())
    assert len({placement[v] for v in ("a1", "a2", "a3")}) == 1
    assert len({placement[v] for v in ("b1", "b2", "b3")}) == 1
    assert placement["a1"] != placement["b1"]


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("method", ["auto", "recursive", "kway"])
def test_k_parts_use_k_devices(k, method):
    graph = layered(200).graph
    assert len(placed(graph, Cluster.uniform(5), k=k, method=method).pes()) == k


def test_fewer_parts_than_devices_take_the_powerful_ones():
    cluster = Cluster.of([Device("slow"), Device("fast", mips=5000)])
    assert set(placed(islands(4), cluster, k=1).as_dict().values()) == {"fast"}


def test_constraints_are_kept_and_parts_follow_their_pins():
    """Pinning the end of one pipeline turns the whole pipeline to that device."""
    rules = Constraints(pin={"a3": "d1"}, colocate=[{"b1", "b3"}], exlocate=[{"a1", "b2"}])
    placement = placed(two_pipelines(), constraints=rules)
    assert {placement[v] for v in ("a1", "a2", "a3")} == {"d1"}
    assert {placement[v] for v in ("b1", "b2", "b3")} == {"d0"}


def test_parallel_streams_count_together():
    operators = [Operator("src", ipt=1, payload=1, rate=1)]
    operators += [Operator(v, ipt=1, payload=1) for v in ("mid", "end", "far")]
    streams = [Stream("src", "mid", payload=5), Stream("end", "far", payload=5)]
    streams += [Stream("mid", "end", payload=2, selectivity=1) for _ in range(4)]
    placement = placed(StreamGraph.of("multi", operators, streams), ufactor=500)
    assert placement["mid"] == placement["end"]


@pytest.mark.parametrize(
    "weights", [[0.0] * 30, [1e-310] * 30, [10.0 ** (i - 15) for i in range(30)]]
)
def test_weightless_tiny_and_huge_operators_are_placed(weights):
    operators = [Operator("src", rate=1)]
    operators += [Operator(f"o{i}", ipt=w, payload=w) for i, w in enumerate(weights)]
    graph = StreamGraph.of("any", operators, [Stream("src", f"o{i}") for i in range(30)])
    cluster = Cluster.of([Device("fast", mips=4000), Device("slow", mips=1000)])
    assert len(placed(graph, cluster).operators) == 31


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": 3}, "k is 3"),
        ({"ufactor": 0}, "ufactor"),
        ({"method": "x"}, "'x'"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options, named):
    with pytest.raises(SettingError, match=named):
        placed(two_pipelines(), **options)


def test_a_hundred_thousand_operators_are_cut_into_balanced_parts():
    graph = layered(100_000).graph
    assert loads(graph, placed(graph, Cluster.uniform(8)), 8).max() < 0.15


CUTTING = ("metis", "metis:method=recursive", "metis-oracle", "anneal", "auto", "pilot", "exact")


def test_what_metis_prints_is_hidden(tmp_path, capfd):
    """One heavy operator leaves bisections with nothing on one side; METIS complains of those."""
    write_graph(heavy_source(), tmp_path / "heavy.json")
    write_graph(islands(3), tmp_path / "few.json")
    for graph, placer in itertools.product(("heavy.json", "few.json"), CUTTING):
        words = ("--placer", placer, "--devices=4", "--budget=5ms", "--json")
        with pytest.raises(SystemExit) as end:
            main(("place", str(tmp_path / graph), *words))
        assert not end.value.code, (graph, placer)
    ctypes.CDLL(None).fflush(None)
    out, err = capfd.readouterr()
    assert out.count('"assignment"') == 2 * len(CUTTING)
    assert "***" not in out + err


def test_output_of_other_libraries_works_after_a_cut(capfd):
    placed(heavy_source(), Cluster.uniform(4))
    libc = ctypes.CDLL(None)
    libc.puts(b"printed by C")
    libc.fflush(None)
    assert capfd.readouterr().out == "printed by C\n"


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(6)), seed=st.integers(0, 100))
def test_parts_that_exchange_much_get_the_fast_links(order, seed):
    """Three pairs of operators, three fast links: whichever these are."""
    operators = [Operator("src", ipt=1, payload=1e-3, rate=100)]
    operators += [Operator(f"v{i}", ipt=1e6, payload=1e5) for i in range(6)]
    streams = [Stream("src", f"v{i}") for i in (0, 2, 4)]
    streams += [Stream(f"v{i}", f"v{i + 1}") for i in (0, 2, 4)]
    bandwidth = np.full((6, 6), 1e6)
    for a, b in zip(order[::2], order[1::2], strict=True):
        bandwidth[a, b] = bandwidth[b, a] = 1e9
    cluster = Cluster.of([Device(f"d{i}", mips=101) for i in range(6)], bandwidth=bandwidth)
    problem = Problem(StreamGraph.of("pairs", operators, streams), cluster)
    assert METIS.place(problem, THROUGHPUT, seed=seed).value == pytest.approx(1.0)


@settings(max_examples=25, deadline=None)
@given(
    width=st.integers(10, 20),
    cores=st.lists(st.sampled_from([1, 2, 4]), min_size=2, max_size=12),
    mips=st.sampled_from([1000.0, 2000.0]),
    seed=st.integers(0, 100),
)
def test_grids_balance_by_power(width, cores, mips, seed):
    """Within METIS's own imbalance of 3 % and four operators; half of the devices are faster."""
    n = width * width
    operators = [Operator(f"o{i}", ipt=1, payload=1, rate=float(i == 0)) for i in range(n)]
    right = [(i, i + 1) for i in range(n) if i % width < width - 1]
    down = [(i, i + width) for i in range(n - width)]
    streams = [Stream(f"o{i}", f"o{j}", selectivity=1 / 2) for i, j in right + down]
    graph = StreamGraph.of("grid", operators, streams)
    devices = [Device(f"d{i}", mips if i % 2 else 1000, c) for i, c in enumerate(cores)]
    share = loads(graph, placed(graph, Cluster.of(devices), seed=seed), len(devices))
    power = np.array([device.mips * device.cores for device in devices])
    assert (share <= 1.03 * power / power.sum() + 4 / n).all()


UNLIKE = [Device(f"d{i}", mips=mips) for i, mips in enumerate([1000, 2500, 1500, 4000])]


def unlike_links():
    """Four unlike devices behind links of unlike bandwidths."""
    rates = np.random.default_rng(1).choice([2e8, 1e9, 2e9], (4, 4))
    return Cluster.of(UNLIKE, bandwidth=np.triu(rates) + np.triu(rates, 1).T)


@pytest.mark.parametrize("name", ["metis", "fuser"])
@pytest.mark.parametrize("seed", range(6))
def test_parts_are_on_the_devices_where_the_objective_is_best(name, seed):
    problem = Problem(layered(12, 1 + seed).graph, unlike_links())
    found = PLACERS[name].with_options(k=3).place(problem, THROUGHPUT, seed=seed)
    part = np.unique(found.placement.index, return_inverse=True)[1]
    maps = itertools.permutations(range(4), int(part.max()) + 1)
    every = np.array([np.array(devices, np.int32)[part] for devices in maps])
    assert found.value == pytest.approx(THROUGHPUT.evaluate(problem, every).max())


def test_among_many_unlike_devices_no_swap_of_two_helps(monkeypatch):
    monkeypatch.setattr(partition_graph, "_mappings", lambda *_: None)
    problem = Problem(layered(12).graph, unlike_links())
    found = METIS.with_options(k=3).place(problem, THROUGHPUT)
    swaps = [np.arange(4) for _ in range(6)]
    for swap, (a, b) in zip(swaps, itertools.combinations(range(4), 2), strict=True):
        swap[[a, b]] = b, a
    others = np.array([swap[found.placement.index] for swap in swaps], np.int32)
    assert THROUGHPUT.evaluate(problem, others).max() <= found.value


def test_a_budget_of_evaluations_limits_the_assignments():
    """One evaluation is for the parts on the devices that they were cut for."""
    problem = Problem(layered(12).graph, Cluster.of(UNLIKE))
    evaluated: list[int] = []
    objective = replace(counted(evaluated), limit=None)
    METIS.function(problem, objective, seed=0, budget=Budget(evaluations=7))
    assert sum(evaluated) == 7
