"""Columns of devices."""

from dataclasses import fields, replace

from streamplace.io.clusters import cluster_from_tables, cluster_to_tables
from streamplace.model import Cluster, Device
from streamplace.planning.offers import Offer


def test_every_field_survives_columns_files_and_offers() -> None:
    """Also one that is added; offers do not say what a machine draws."""
    device = Device("a", 1500.0, 4, frozenset({"gpu"}), 2000.0, 1e9, 2e9, 3.0, 90.0)
    assert all(getattr(device, field.name) != field.default for field in fields(Device))
    stored = Cluster.of([device])
    assert list(stored.devices) == [device]
    assert list(cluster_from_tables(cluster_to_tables(stored)).devices) == [device]
    assert Offer.of_device(device).device("a") == replace(device, watts=0.0)
