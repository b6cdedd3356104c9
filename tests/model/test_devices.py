"""Columns of devices."""

import math
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from streamplace.errors import ClusterError, UnitError
from streamplace.io.clusters import cluster_from_tables, cluster_to_tables
from streamplace.model import Cluster, Device, Devices
from streamplace.planning.offers import Offer


def test_rows_become_columns_and_rows_again() -> None:
    """A device survives being stored, its texts read."""
    rows = [Device("a", "2.5 GIPS", 4, frozenset({"gpu"}), "2 kB", "1 Gbps"), Device("b")]
    assert list(Devices.of(rows)) == [
        Device("a", 2500, 4, frozenset({"gpu"}), 2000, 1e9, math.inf),
        Device("b"),
    ]


def test_every_field_survives_columns_files_and_offers() -> None:
    """Also one that is added; offers do not say what a machine draws."""
    device = Device("a", 1500.0, 4, frozenset({"gpu"}), 2000.0, 1e9, 2e9, 3.0)
    assert all(getattr(device, field.name) != field.default for field in fields(Device))
    stored = Cluster.of([device])
    assert list(stored.devices) == [device]
    assert list(cluster_from_tables(cluster_to_tables(stored)).devices) == [device]
    assert Offer.of_device(device).device("a") == replace(device, watts=0.0)


def test_columns_left_out_take_defaults() -> None:
    """Only the name is needed."""
    assert Devices(["a"])["a"] == Device("a")


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (lambda: [], "the cluster has no devices"),
        (
            lambda: [Device("a"), Device("a")],
            "the name of a device is not unique: 'a' occurs twice",
        ),
        (lambda: [Device("")], "a device has an empty name"),
        (lambda: [Device("a", mips=0)], "device 'a' has mips 0; it must be ≥ 0.001"),
        (lambda: [Device("a", mips=1e-300)], "device 'a' has mips 1e-300"),
        (
            lambda: [Device("a", cores=0)],
            "device 'a' has cores 0; it must be a whole number",
        ),
        (lambda: [Device("a", cores=1.5)], "device 'a' has cores 1.5"),
        (lambda: [Device("a", cores=10**9)], "device 'a' has cores 1e.09"),
        (lambda: [Device("a", egress=0)], "device 'a' has egress 0"),
        (lambda: [Device("a", memory=0)], "device 'a' has memory 0"),
        (lambda: [Device("a", tags="gpu")], "device 'a' has tags 'gpu'; it must be a set"),
    ],
)
def test_a_bad_device_is_refused(devices: Callable[[], list[Device]], message: str) -> None:
    """The message names the device, the value and the rule."""
    with pytest.raises(ClusterError, match=message):
        Devices.of(devices())


@pytest.mark.parametrize("value", [-1, math.nan, "1 parsec", None])
def test_a_quantity_that_cannot_be_read_names_its_device(value: float | str | None) -> None:
    """Also where the unit reader finds the fault."""
    with pytest.raises(UnitError, match="device 'a': size "):
        Devices.of([Device("a", memory=value)])


def test_an_unknown_device_is_an_error() -> None:
    """The message lists the first known ones."""
    devices = Devices.of(Device(f"d{i}") for i in range(9))
    with pytest.raises(ClusterError, match=r"no device 'x'; the cluster has 'd0', .*'d7', …"):
        devices.index("x")
