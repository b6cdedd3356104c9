"""Clusters in TOML files and in problem documents."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import tomli_w

from streamplace.errors import ClusterError
from streamplace.io.fields import plain
from streamplace.io.files import MAX_TOML_BYTES, file_path, located, read_bytes, spot, write_text
from streamplace.io.parsing import parse_toml
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster, check_size
from streamplace.model.columns import checked_kind, rules_of
from streamplace.model.defaults import BPS
from streamplace.model.devices import Device, Devices
from streamplace.model.message_text import shown
from streamplace.model.units import (
    MAX_PLAIN_MIPS,
    Quantity,
    bandwidth_bps,
    check_bandwidth,
    is_unusual_bandwidth,
    seconds,
)


def read_cluster(name: str | PathLike[str]) -> Cluster:
    """Cluster from a TOML file; see ``streamplace schema cluster``."""
    path = file_path(name)
    return parse_cluster(read_bytes(path, MAX_TOML_BYTES), spot(path))


def write_cluster(cluster: Cluster, path: str | PathLike[str]) -> None:
    """Write a cluster as a TOML file, which `read_cluster` and ``--cluster`` read."""
    write_text(file_path(path), cluster_text(checked_kind(cluster, Cluster)))


def cluster_text(cluster: Cluster) -> str:
    """Text of a TOML file of a cluster."""
    return tomli_w.dumps(cluster_to_tables(cluster))


def parse_cluster(content: bytes, where: str) -> Cluster:
    """Cluster from the text of a TOML document; errors begin with ``where``.

    >>> text = b'devices = [{name = "cpu", count = 2, mips = "2500 MIPS"}, {name = "gpu"}]'
    >>> parse_cluster(text, "cluster.toml").devices.name
    ('cpu0', 'cpu1', 'gpu')
    """
    tables = parse_toml("cluster", content, where)
    with located(where):
        return cluster_from_tables(tables)


def cluster_from_tables(tables: dict[str, Any]) -> Cluster:
    """Cluster from validated tables, less framing and headroom.

    Placers and the simulator thus see the capacity for operators and payloads. Costs of a tuple
    take longer where headroom leaves a part of a core or link free.
    """
    check_size(sum(row.get("count", 1) for row in tables["devices"]))
    devices = Devices.of(d for row in tables["devices"] for d in _devices(row))
    fastest = float(devices.mips.max())
    use = 1.0 - tables.get("headroom", 0.0)
    wire = use / (1.0 + tables.get("framing", 0.0))
    devices = replace(
        devices,
        mips=use * devices.mips,
        reserved=use * devices.reserved,
        egress=wire * devices.egress,
        ingress=wire * devices.ingress,
    )
    links = tables.get("links", [])
    for link in links:
        with located(_label(link)):
            devices.index(link["from"]), devices.index(link["to"])
    bandwidth = wire * _matrix(devices, tables, "bandwidth", partial(_bandwidth, fastest), BPS)
    latency = _matrix(devices, tables, "latency", seconds, 0.0)
    costs = {}
    fields = {"overhead": "overhead_s", "overhead_per_byte": "overhead_s_per_byte", "gap": "gap_s"}
    for cost, name in fields.items():
        with located(cost):
            costs[name] = seconds(tables.get(cost, 0.0)) / use
    energy = tables.get("joules_per_byte", 0.0)
    defaults = ["mips"] if any("mips" not in row for row in tables["devices"]) else []
    if "bandwidth" not in tables and not any("bandwidth" in link for link in links):
        defaults.append("bandwidth")
    return Cluster(devices, bandwidth, latency, **costs, joules_per_byte=energy, defaults=defaults)


def _bandwidth(mips: float, bandwidth: Quantity) -> float:
    """Bandwidth of a link between devices of this speed."""
    number = bandwidth_bps(bandwidth)
    check_bandwidth("bandwidth", number, mips)
    return number


def cluster_to_tables(cluster: Cluster) -> dict[str, Any]:
    """Tables of a cluster file; only links that differ from most links are listed.

    Unusual numbers, which are refused as slips without a unit, have their unit.
    """
    tables: dict[str, Any] = {
        "devices": [_device(cluster.devices, d) for d in range(cluster.n_devices)]
    }
    remote = ~np.eye(cluster.n_devices, dtype=bool)
    unusual: dict[tuple[int, int], dict[str, float | str]] = {}
    speed = partial(_written_bps, mips=float(cluster.devices.mips.max()))
    for key, matrix, written in (
        ("bandwidth", cluster.bandwidth_bps, speed),
        ("latency", cluster.latency_s, plain),
    ):
        counts = Counter(matrix[remote].tolist())
        usual = min(counts, key=lambda value: (-counts[value], value), default=None)
        if usual is not None:
            tables[key] = written(usual)
        for a, b in np.argwhere(remote & (matrix != usual)).tolist():
            unusual.setdefault((a, b), {})[key] = written(matrix[a, b])
    names = cluster.devices.name
    if unusual:
        tables["links"] = [
            {"from": names[a], "to": names[b], **facts} for (a, b), facts in unusual.items()
        ]
    costs = {"overhead": cluster.overhead_s, "overhead_per_byte": cluster.overhead_s_per_byte}
    costs["gap"] = cluster.gap_s
    costs["joules_per_byte"] = cluster.joules_per_byte
    return {**tables, **{key: plain(cost) for key, cost in costs.items() if cost}}


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
    """Value of every link: as listed, else that of the cluster."""
    with located("every link"):
        usual = parse(tables.get(key, default))
    matrix, given = np.full((len(devices), len(devices)), usual), set[tuple[int, int]]()
    for link in tables.get("links", ()):
        if key in link:
            ends = devices.index(link["from"]), devices.index(link["to"])
            with located(_label(link)):
                if ends in given:
                    raise ClusterError(f"{key} is given twice")
                matrix[ends] = parse(link[key])
            given.add(ends)
    return matrix


def _label(link: dict[str, Any]) -> str:
    return f"link {shown(link['from'])}→{shown(link['to'])}"


def _device(devices: Devices, d: int) -> dict[str, Any]:
    row: dict[str, Any] = {"name": devices.name[d]}
    for name, rule in rules_of(Devices):
        value = getattr(devices, name)[d]
        if value == rule.default and name != "mips":
            continue
        if name in ("mips", "reserved"):
            row[name] = f"{float(value)!r} MIPS" if value >= MAX_PLAIN_MIPS else plain(value)
        elif name in ("egress", "ingress"):
            row[name] = _written_bps(value, devices.mips[d])
        else:
            row[name] = sorted(value) if isinstance(value, frozenset) else plain(value)
    return row


def _written_bps(bps: float, mips: float) -> float | str:
    return f"{float(bps)!r} bps" if is_unusual_bandwidth(bps, mips) else plain(bps)
