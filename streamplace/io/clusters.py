"""Cluster and constraints files (TOML)."""

from pathlib import Path
from typing import Any

import numpy as np

from streamplace.errors import StreamplaceError
from streamplace.io.files import read_toml
from streamplace.io.schema import parse_tables
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.devices import Device, Devices
from streamplace.model.units import bandwidth_bps, seconds


def read_cluster(path: Path) -> Cluster:
    """Cluster from a TOML file; see ``streamplace schema cluster``."""
    tables = parse_tables("cluster", read_toml(path), str(path))
    try:
        return cluster_from_tables(tables)
    except StreamplaceError as error:
        raise type(error)(f"{path}: {error}") from None


def read_constraints(path: Path) -> Constraints:
    """Constraints from a TOML file; see ``streamplace schema constraints``."""
    tables = parse_tables("constraints", read_toml(path), str(path))
    return Constraints(
        pin=tables.get("pin", {}),
        colocate=tuple(map(frozenset, tables.get("colocate", ()))),
        exlocate=tuple(map(frozenset, tables.get("exlocate", ()))),
        allowed={name: frozenset(d) for name, d in tables.get("allowed", {}).items()},
    )


def cluster_from_tables(tables: dict[str, Any]) -> Cluster:
    """Cluster from validated tables."""
    devices = Devices.of(d for row in tables["devices"] for d in _devices(row))
    size = len(devices)
    bandwidth = np.full((size, size), bandwidth_bps(tables.get("bandwidth", 1e9)))
    latency = np.full((size, size), seconds(tables.get("latency", 0.0)))
    for link in tables.get("links", ()):
        pair = devices.index(link["from"]), devices.index(link["to"])
        if "bandwidth" in link:
            bandwidth[pair] = bandwidth_bps(link["bandwidth"])
        if "latency" in link:
            latency[pair] = seconds(link["latency"])
    overhead, gap = (seconds(tables.get(key, 0.0)) for key in ("overhead", "gap"))
    return Cluster(devices, bandwidth, latency, overhead, gap)


def _devices(row: dict[str, Any]) -> list[Device]:
    facts = {key: row[key] for key in row if key not in ("name", "count", "tags")}
    tags = frozenset(row.get("tags", ()))
    if "count" not in row:
        return [Device(row["name"], tags=tags, **facts)]
    return [Device(f"{row['name']}{i}", tags=tags, **facts) for i in range(row["count"])]
