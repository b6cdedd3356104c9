"""A running cluster as a TOML file: every TaskManager a device."""

from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.names import resource
from streamplace.engines.text import quoted_toml
from streamplace.model.units import mips as parsed_mips

FRAMING = 0.05
"""Headers of Ethernet, TCP and Flink's buffers per byte of payload."""
HEADROOM = 0.05
"""Part of every CPU and link that stays free: bursts leave that much of a full one unused."""


def cluster_toml(
    rest: Rest,
    mips: str,
    bandwidth: str,
    java: float | None = None,
    overhead: float | None = None,
    beside: Mapping[str, float] | None = None,
) -> str:
    """Cluster file of the TaskManagers; what REST does not tell is as given.

    TaskManagers on one host share its cores evenly.

    Parameters
    ----------
    java
        Core seconds per second that Java takes of each besides its tasks; None where unmeasured.
    overhead
        Core seconds per remote tuple and end; None where unmeasured.
    beside
        Device → core seconds per second that jobs take there which stay where they are.
    """
    managers = rest.task_managers()
    if not managers:
        raise FlinkError(f"the Flink at {rest.url} has no TaskManager; start one")
    crowd = Counter(map(_host, managers))
    head = f"# TaskManagers of the Flink at {rest.url}; speed and network are not measured.\n"
    costs = f"framing = {FRAMING}  # headers, per byte of payload\n"
    costs += f"headroom = {HEADROOM}  # part of every CPU and link that stays free, for bursts\n"
    if overhead is not None:
        costs += f"overhead = {overhead:.3g}  # s of a core per remote tuple and end, measured\n"
    tables = [_table(manager, mips, crowd[_host(manager)]) for manager in managers]
    if java is not None or beside:
        taken = ((java or 0.0) + (beside or {}).get(manager["id"], 0.0) for manager in managers)
        what = "Java takes besides the tasks" if java is not None else ""
        what += f"{' and ' if what else ''}jobs that stay take" if beside else ""
        speed = parsed_mips(mips)
        tables = [
            f"{table}reserved = {cores * speed:.3g}  # MIPS that {what}, measured\n"
            for table, cores in zip(tables, taken, strict=True)
        ]
    return f"{head}bandwidth = {quoted_toml(bandwidth)}\n{costs}{''.join(tables)}"


def unpinnable(rest: Rest) -> list[str]:
    """TaskManagers that do not offer the resource of their own name."""
    return [
        manager["id"]
        for manager in rest.task_managers()
        if resource(manager["id"]) not in manager["totalResource"].get("extendedResources", {})
    ]


def _table(manager: dict[str, Any], mips: str, crowd: int) -> str:
    cores = max(1, manager["hardware"]["cpuCores"] // crowd)
    memory = manager["memoryConfiguration"].get("totalProcessMemory")
    return (
        f"\n[[devices]]\nname = {quoted_toml(manager['id'])}\nmips = {quoted_toml(mips)}\n"
        f"cores = {cores}\n" + ("" if memory is None else f"memory = {memory}\n")
    )


def _host(manager: dict[str, Any]) -> str:
    """Name of the machine in an address such as ``pekko.tcp://flink@host:6122/user/rpc``."""
    try:
        return urlsplit(str(manager["path"])).hostname or ""
    except ValueError:
        return str(manager["path"])
