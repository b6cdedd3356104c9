"""Columns of devices."""

import math
from dataclasses import fields, replace

import pytest

from streamplace.errors import ClusterError
from streamplace.io.clusters import cluster_from_tables, cluster_to_tables
from streamplace.model import Cluster, Device, Devices
from streamplace.planning.offers import Offer


def test_rows_become_columns_and_rows_again() -> None:
    rows = [Device("a", "2.5 GIPS", 4, frozenset({"gpu"}), "2 kB", "1 Gbps"), Device("b")]
    assert list(Devices.of(rows)) == [
        Device("a", 2500, 4, frozenset({"gpu"}), 2000, 1e9, math.inf),
        Device("b"),
    ]
    assert Devices(["a"])["a"] == Device("a")


def test_every_field_survives_columns_files_and_offers() -> None:
    """Also one that is added; offers do not say what a machine draws."""
    device = Device("a", 1500.0, 4, frozenset({"gpu"}), 2000.0, 1e9, 2e9, 3.0, 90.0)
    assert all(getattr(device, field.name) != field.default for field in fields(Device))
    stored = Cluster.of([device])
    assert list(stored.devices) == [device]
    assert list(cluster_from_tables(cluster_to_tables(stored)).devices) == [device]
    assert Offer.of_device(device).device("a") == replace(device, watts=0.0)


def test_an_unknown_device_is_an_error_that_lists_the_first_known_ones() -> None:
    devices = Devices.of(Device(f"d{i}") for i in range(9))
    with pytest.raises(ClusterError, match=r"no device 'x'; the cluster has 'd0', .*'d7', …"):
        devices.index("x")
