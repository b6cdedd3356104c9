"""Clusters: devices, the network between them, and which of them are interchangeable."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from strategies import clusters

from streamplace.errors import ClusterError
from streamplace.model import Cluster, Device


def swapped(matrix, a, b):
    """Rows and columns a and b exchanged."""
    order = np.arange(len(matrix))
    order[[a, b]] = b, a
    return matrix[np.ix_(order, order)]


def test_a_uniform_cluster_reads_units():
    cluster = Cluster.uniform(3, mips="2 GIPS", bandwidth="1000 Mbps", latency="1 ms", cores=2)
    assert cluster.devices.mips.tolist() == [2000] * 3
    assert cluster.bandwidth_bps[0, 1] == 1e9
    assert cluster.latency_s[2, 1] == 1e-3


def test_the_diagonal_is_free():
    """Tuples that stay on a device cross no link, whatever the matrix says."""
    cluster = Cluster.of([Device("a"), Device("b")], bandwidth=[[-1, 1], [1, math.nan]])
    assert np.isinf(np.diag(cluster.bandwidth_bps)).all()
    assert not np.diag(cluster.latency_s).any()


@given(clusters())
def test_devices_of_a_class_can_be_swapped_and_the_first_numbers_it(cluster):
    classes, d = cluster.interchangeable, cluster.devices
    for a in range(cluster.n_devices):
        for b in range(a):
            same = (d.mips[a], d.cores[a], d.egress[a]) == (d.mips[b], d.cores[b], d.egress[b])
            same &= np.array_equal(swapped(cluster.bandwidth_bps, a, b), cluster.bandwidth_bps)
            assert same == (classes[a] == classes[b])
    _, first = np.unique(classes, return_index=True)
    assert (np.diff(first) > 0).all()


def test_a_chain_of_devices_shares_no_class():
    """Equal cells are not enough; they must stand in the same columns."""
    bandwidth = [[1, 2, 3], [3, 1, 2], [2, 3, 1]]
    cluster = Cluster.of([Device(n) for n in "abc"], bandwidth=bandwidth)
    assert cluster.interchangeable.tolist() == [0, 1, 2]


def test_devices_that_differ_in_any_field_are_not_interchangeable():
    plain, other = Device("a"), Device("b", 1500, 4, frozenset({"gpu"}), 2000, 1e9, 2e9, 3, 9, 0.5)
    for field in fields(Device):
        if field.name != "name":
            assert getattr(other, field.name) != field.default, field.name
            differs = replace(plain, name="b", **{field.name: getattr(other, field.name)})
            assert Cluster.of([plain, differs]).interchangeable.tolist() == [0, 1], field.name


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"bandwidth": [[1, 2]]}, r"bandwidth_bps .*\(1, 2"),
        ({"bandwidth": [[1, 0], [1, 1]]}, "link a→b has bandwidth_bps 0"),
        ({"bandwidth": [[1, 1], [math.nan, 1]]}, "link b→a has bandwidth_bps nan"),
        ({"bandwidth": [[1, "x"], [1, 1]]}, "bandwidth_bps"),
        ({"latency": [[0, -1], [0, 0]]}, "link a→b has latency_s -1"),
    ],
)
def test_a_bad_network_is_refused(network, message):
    with pytest.raises(ClusterError, match=message):
        Cluster.of([Device("a"), Device("b")], **network)
