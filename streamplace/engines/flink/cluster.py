"""A running cluster as a TOML file: every TaskManager a device."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from streamplace.engines.flink.cpu import processes_of
from streamplace.engines.flink.limits import cpu_limit, whole_cores
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

    A TaskManager on this machine whose cgroup limits its CPU has that much. Others on one host
    share its cores evenly.

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
    limits = {device: cpu_limit(pid) for device, pid in processes_of(rest).items()}
    if overhead is not None:
        overhead = slowed(overhead, [limit for limit in limits.values() if limit is not None])
        costs += f"overhead = {overhead:.3g}  # s of a core per remote tuple and end, measured\n"
    tables = [
        _table(manager, _cores(manager, mips, crowd[_host(manager)], limits.get(manager["id"])))
        for manager in managers
    ]
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


def slowed(seconds: float, limits: Sequence[float]) -> float:
    """Seconds of a core of limited devices, in the mean, for seconds of a whole core.

    >>> slowed(1e-6, [0.25, 0.25]), slowed(1e-6, [])
    (4e-06, 1e-06)
    """
    shares = [whole_cores(limit)[1] for limit in limits]
    return seconds * len(shares) / sum(shares) if shares else seconds


def _cores(manager: dict[str, Any], mips: str, crowd: int, limit: float | None) -> str:
    """Speed and number of the cores of a TaskManager, as lines of its table."""
    most = manager["hardware"]["cpuCores"]
    if limit is None or limit >= most:
        return f"mips = {quoted_toml(mips)}\ncores = {max(1, most // crowd)}\n"
    cores, share = whole_cores(limit)
    speed = quoted_toml(f"{share * parsed_mips(mips):g} MIPS")
    return f"mips = {speed}  # limited to {limit:g} cores\ncores = {cores}\n"


def _table(manager: dict[str, Any], cores: str) -> str:
    memory = manager["memoryConfiguration"].get("totalProcessMemory")
    return f"\n[[devices]]\nname = {quoted_toml(manager['id'])}\n{cores}" + (
        "" if memory is None else f"memory = {memory}\n"
    )


def _host(manager: dict[str, Any]) -> str:
    """Name of the machine in an address such as ``pekko.tcp://flink@host:6122/user/rpc``."""
    try:
        return urlsplit(str(manager["path"])).hostname or ""
    except ValueError:
        return str(manager["path"])
