"""The branched benchmark."""

import hashlib
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import SettingError
from streamplace.families.branched import Branched, Topology, branched, stage_ipt
from streamplace.io.graphs import graph_line
from streamplace.io.manifests import read_manifest
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS

ONE = Branched(branches=3, depth=4, devices=3, copies=10)
MANIFEST = Path(__file__).parents[2] / "datasets" / "branched.manifest.json"


@pytest.fixture(scope="module")
def benchmark_graphs():
    """The standard benchmark."""
    return list(branched(Branched(), 0))


def topology_of(graph):
    """Topology that the attributes tell."""
    return Topology(*(graph.attributes[key] for key in ("branches", "depth", "devices")))


def test_graphs_have_the_same_bytes_in_every_process(benchmark_graphs):
    """Those of the shipped benchmark, whatever the hash seed."""
    digest = hashlib.sha256()
    for graph in benchmark_graphs:
        digest.update(graph_line(graph))
    assert digest.hexdigest() == read_manifest(MANIFEST).content_sha256


def test_a_graph_does_not_depend_on_the_others(benchmark_graphs):
    few = list(branched(ONE, 0))
    assert few == [g for g in benchmark_graphs if topology_of(g) == (3, 4, 3)][:10]
    assert few[:3] == list(islice(branched(Branched(3, 4, 3), 0), 3))


@pytest.mark.parametrize(
    ("rate", "figures"), [(1e4, (0.83, 0.73, 0.865)), (2e4, (0.465, 0.365, 0.43))]
)
def test_metis_reaches_what_it_reaches_on_the_published_graphs(benchmark_graphs, rate, figures):
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
def test_stages_are_whole_sum_to_the_total_and_respect_the_limit(uniforms, spread, total, room):
    most = -int(-room * total // len(uniforms))
    stages = stage_ipt(uniforms, spread, total, most)
    assert sum(stages) == total
    assert 0 <= min(stages) <= max(stages) <= most


def test_no_spread_gives_equal_stages():
    assert stage_ipt([0.9, 0.5, 0.1], 0.0, 10, 10) == [4, 3, 3]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"branches": 3}, "branches"),
        ({"branches": 1, "depth": 1, "devices": 2}, "2 devices"),
        ({"payload": 1.5}, "payload is 1.5"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"rate": 1e6}, "endpoint_ipt"),
        ({"copies": True}, "copies is True"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(values, message):
    with pytest.raises(SettingError, match=message):
        Branched(**values)
