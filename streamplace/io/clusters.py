"""Cluster and constraints files (TOML)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from streamplace.io.files import LARGEST_TOML, located, read_bytes, spot
from streamplace.io.schema import parse_toml
from streamplace.model.cluster import Cluster, check_size
from streamplace.model.columns import Floats
from streamplace.model.constraints import Constraints
from streamplace.model.devices import Device, Devices
from streamplace.model.messages import shown
from streamplace.model.units import Quantity, bandwidth_bps, seconds


def read_cluster(path: Path) -> Cluster:
    """Cluster from a TOML file; see ``streamplace schema cluster``."""
    return parse_cluster(read_bytes(path, LARGEST_TOML), spot(path))


def read_constraints(path: Path) -> Constraints:
    """Constraints from a TOML file; see ``streamplace schema constraints``."""
    return parse_constraints(read_bytes(path, LARGEST_TOML), spot(path))


def parse_cluster(content: bytes, where: str) -> Cluster:
    """Cluster from the text of a TOML document; ``where`` stands in errors.

    >>> text = b'devices = [{name = "cpu", count = 2, mips = "2500 MIPS"}, {name = "gpu"}]'
    >>> parse_cluster(text, "cluster.toml").devices.name
    ('cpu0', 'cpu1', 'gpu')
    """
    tables = parse_toml("cluster", content, where)
    with located(where):
        return cluster_from_tables(tables)


def parse_constraints(content: bytes, where: str) -> Constraints:
    """Constraints from the text of a TOML document; ``where`` stands in errors.

    >>> parse_constraints(b'pin = {src = "d0"}', "rules.toml").pin
    {'src': 'd0'}
    """
    tables = parse_toml("constraints", content, where)
    return Constraints(**tables)


def cluster_from_tables(tables: dict[str, Any]) -> Cluster:
    """Cluster from validated tables."""
    check_size(sum(row.get("count", 1) for row in tables["devices"]))
    devices = Devices.of(d for row in tables["devices"] for d in _devices(row))
    links = tables.get("links", [])
    for link in links:
        with located(_label(link)):
            devices.index(link["from"]), devices.index(link["to"])
    bandwidth = _matrix(devices, tables, "bandwidth", bandwidth_bps, 1e9)
    latency = _matrix(devices, tables, "latency", seconds, 0.0)
    costs = {}
    for cost in ("overhead", "gap"):
        with located(cost):
            costs[f"{cost}_s"] = seconds(tables.get(cost, 0.0))
    energy = tables.get("joules_per_byte", 0.0)
    return Cluster(devices, bandwidth, latency, **costs, joules_per_byte=energy)


def _devices(row: dict[str, Any]) -> list[Device]:
    facts = {key: row[key] for key in row if key not in ("name", "count", "tags")}
    tags = frozenset(row.get("tags", ()))
    if "count" not in row:
        return [Device(row["name"], tags=tags, **facts)]
    return [Device(f"{row['name']}{i}", tags=tags, **facts) for i in range(row["count"])]


def _matrix(
    devices: Devices,
    tables: dict[str, Any],
    key: str,
    parse: Callable[[Quantity], float],
    default: float,
) -> Floats:
    """Value of every link: its own where it is listed, else that of the whole cluster."""
    with located("every link"):
        usual = parse(tables.get(key, default))
    matrix = np.full((len(devices), len(devices)), usual)
    for link in tables.get("links", ()):
        if key in link:
            with located(_label(link)):
                matrix[devices.index(link["from"]), devices.index(link["to"])] = parse(link[key])
    return matrix


def _label(link: dict[str, Any]) -> str:
    return f"link {shown(link['from'])}→{shown(link['to'])}"
