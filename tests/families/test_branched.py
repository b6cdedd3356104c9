"""The branched benchmark."""

import hashlib
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifests import read_manifest

from streamplace.errors import SettingError
from streamplace.families.branched import STANDARD, Branched, Topology, branched, stage_ipt
from streamplace.io.graphs import graph_line
from streamplace.model import Cluster, Problem
from streamplace.model.graph import StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS

ONE = Branched(branches=3, depth=4, devices=3, copies=10)
MANIFEST = Path(__file__).parents[2] / "datasets" / "branched.manifest.json"


@pytest.fixture(scope="module")
def benchmark_graphs() -> list[StreamGraph]:
    """The standard benchmark."""
    return list(branched(Branched(), 0))


def topology_of(graph: StreamGraph) -> Topology:
    """Topology that the attributes tell."""
    return Topology(*(graph.attributes[key] for key in ("branches", "depth", "devices")))


def test_the_benchmark_has_3150_graphs_of_forty_topologies(
    benchmark_graphs: list[StreamGraph],
) -> None:
    """50 copies of each topology for two devices, 100 of every other; a fifth is for testing.

    Of 4 to 27 operators: one branch of two stages, and 5 × 5.
    """
    counts = Counter(map(topology_of, benchmark_graphs))
    assert sum(counts.values()) == Branched().n_graphs == 3150
    assert counts == {t: 50 if t.devices == 2 else 100 for t in STANDARD}
    assert Counter(t.devices for t in STANDARD) == {2: 17, 3: 8, 4: 8, 5: 7}
    assert len(set(STANDARD)) == 40
    splits = Counter(graph.attributes["split"] for graph in benchmark_graphs)
    assert splits == {"train": 2520, "test": 630}
    of_one = Counter(topology_of(g) for g in benchmark_graphs if g.attributes["split"] == "test")
    assert of_one == {t: 10 if t.devices == 2 else 20 for t in STANDARD}
    sizes = [graph.n_operators for graph in benchmark_graphs]
    assert (min(sizes), max(sizes)) == (4, 27)
    assert len({graph.name for graph in benchmark_graphs}) == 3150


def test_the_stages_share_exactly_the_instructions_of_their_devices(
    benchmark_graphs: list[StreamGraph],
) -> None:
    """Σ over stages = V · 250,000 - 20,000 in whole numbers; none exceeds a device of 2500 MIPS."""
    for graph in benchmark_graphs:
        k, d, devices = topology_of(graph)
        stages = graph.operators.ipt[1 : 1 + d].astype(int)
        assert (graph.operators.ipt[1:-1] == np.tile(stages, k)).all()
        assert stages.sum() == devices * 250_000 - 20_000
        assert graph.operators.ipt[[0, -1]].tolist() == [10_000, 10_000]
        loads = graph.input_rate * graph.operators.ipt / 2.5e9
        assert loads.sum() == pytest.approx(devices, abs=1e-12)
        assert loads.max() <= 1 + 1e-12


def test_payloads_are_whole_bytes_up_to_half_a_megabit_and_the_sink_emits_nothing(
    benchmark_graphs: list[StreamGraph],
) -> None:
    """1 to 62,500 bytes; on two devices up to a ceiling drawn per graph."""
    small, large = [], []
    for graph in benchmark_graphs:
        payload = graph.operators.payload
        assert payload[-1] == 0
        assert (payload == np.floor(payload)).all()
        assert payload[:-1].min() >= 1
        assert payload.max() <= 62_500
        (small if graph.attributes["devices"] == 2 else large).extend(payload[:-1])
    assert np.mean(large) == pytest.approx(31_250, rel=0.02)
    assert np.mean(small) == pytest.approx(15_625, rel=0.1)


def test_the_source_splits_evenly_and_the_sink_gets_all() -> None:
    graph = next(branched(ONE, 0))
    assert graph.operators.name[:3] == ("source", "b1s1", "b1s2")
    assert graph.operators.kind[0] == "source"
    assert graph.operators.kind[-1] == "sink"
    assert graph.input_rate[1:-1] == pytest.approx(1e4 / 3)
    assert graph.input_rate[-1] == pytest.approx(1e4)


def test_graphs_have_the_same_bytes_in_every_process(benchmark_graphs: list[StreamGraph]) -> None:
    """Those of the shipped benchmark, whatever the hash seed."""
    digest = hashlib.sha256()
    for graph in benchmark_graphs:
        digest.update(graph_line(graph))
    assert digest.hexdigest() == read_manifest(MANIFEST).content_sha256


def test_another_seed_gives_other_graphs() -> None:
    for a, b in zip(branched(ONE, 0), branched(ONE, 1), strict=True):
        assert graph_line(a) != graph_line(b)


def test_a_graph_does_not_depend_on_the_others(benchmark_graphs: list[StreamGraph]) -> None:
    few = list(branched(ONE, 0))
    assert few == [g for g in benchmark_graphs if topology_of(g) == (3, 4, 3)][:10]
    assert few[:3] == list(islice(branched(Branched(3, 4, 3), 0), 3))


@pytest.mark.parametrize(
    ("rate", "figures"), [(1e4, (0.83, 0.73, 0.865)), (2e4, (0.465, 0.365, 0.43))]
)
def test_metis_reaches_what_it_reaches_on_the_published_graphs(
    benchmark_graphs: list[StreamGraph], rate: float, figures: tuple[float, float, float]
) -> None:
    """Mean, first quartile and median on the test graphs, to two hundredths."""
    cluster, throughput = Cluster.uniform(5), OBJECTIVES["throughput"]
    test = [g.at_rate(rate) for g in benchmark_graphs if g.attributes["split"] == "test"]
    values = [PLACERS["metis"].place(Problem(g, cluster), throughput).value for g in test]
    found = (np.mean(values), *np.percentile(values, [25, 50]))
    assert found == pytest.approx(figures, abs=0.02)


@given(
    st.lists(st.floats(1e-9, 1), min_size=1, max_size=12),
    st.floats(0, 1),
    st.integers(12, 10**9),
    st.floats(1, 3),
)
def test_stages_are_whole_sum_to_the_total_and_respect_the_limit(
    uniforms: list[float], spread: float, total: int, room: float
) -> None:
    """Whatever is drawn."""
    most = -int(-room * total // len(uniforms))
    stages = stage_ipt(uniforms, spread, total, most)
    assert sum(stages) == total
    assert 0 <= min(stages) <= max(stages) <= most


def test_no_spread_gives_equal_stages() -> None:
    """The factor pulls shares towards equal."""
    assert stage_ipt([0.9, 0.5, 0.1], 0.0, 10, 10) == [4, 3, 3]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"branches": 3}, "belong together"),
        ({"branches": 1, "depth": 1, "devices": 2}, "cannot fill 2 devices"),
        ({"payload": 1.5}, "payload is 1.5; it must be a whole number"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"rate": 1e6}, "without an operator that exceeds one"),
        ({"copies": True}, "copies is True; it must be a whole number"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(values: dict[Any, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Branched(**values)
