"""Fit a placement to a cluster: check the resources that its TaskManagers offer and have left."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import count, takewhile
from typing import Any

import numpy as np

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.pin.hook import CPU_CORES, HEAP_MB
from streamplace.engines.flink.pin.names import index_name, limit_name, limited
from streamplace.engines.flink.pin.network import MIB, buffers_of, network_bytes
from streamplace.engines.flink.pin.pinning import Pinning, pinning
from streamplace.engines.flink.pin.spread import SpreadLimits
from streamplace.engines.flink.rest.answers import Resources
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.plan import JobPlan
from streamplace.engines.flink.rest.settings import cluster_fault
from streamplace.engines.names import resource
from streamplace.errors import PlacementError
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import listed, quoted
from streamplace.planning.subtasks import group_slots

Managers = Sequence[dict[str, Any]]
Fitted = tuple[Pinning, dict[str, int]]
ALL, LEFT = "totalResource", "freeResource"
UNPAIRED = ("hash", "rebalance")
"""Partitionings that join every subtask to every other one, so that their order does not matter."""


def check_cluster(rest: Rest, layout: Layout) -> None:
    """Raise an error if a cluster cannot run a placement."""
    if fault := cluster_fault(rest):
        raise FlinkError(fault)
    check_offers(rest.offered(), layout)


def check_upload(rest: Rest) -> None:
    """Raise FlinkError if a cluster does not accept jars."""
    settings = rest.settings()
    if settings.get("execution.target") == "embedded":
        raise FlinkError(
            f"the Flink at {rest.url} runs in application mode and accepts no job but its own; "
            "create the jar of that job with 'streamplace flink jar'"
        )
    if settings.get("web.submit.enable", "").lower() == "false":
        raise FlinkError(
            f"the Flink at {rest.url} accepts no jars (web.submit.enable: false); write a jar "
            "with 'streamplace flink jar' and submit it with 'flink run', or run it in "
            "application mode"
        )


def fitted(
    rest: Rest,
    layout: Layout,
    most_mb: int | None = None,
    managers: Managers | None = None,
    plan: JobPlan | None = None,
) -> Fitted:
    """Pinning with the free resources of a cluster, and free managed memory of TaskManagers in MB.

    ``most_mb`` limits the managed memory on each TaskManager. ``managers`` are the TaskManagers as
    they will be, if that differs from their present state. Network memory is checked only with the
    ``plan`` of the job, whose streams need it.
    """
    managers = rest.task_managers() if managers is None else managers
    managers = _with_room(rest, managers, layout.devices)
    answer = pinning(layout, limits_of(managers, layout.spread_devices))
    for group, counts in answer.spread.items():
        for manager in managers:
            _check_count(manager, answer.groups[group], counts.get(manager["id"], 0))
    slots = _slots(layout, answer)
    _check_slots(managers, {device: sum(row.values()) for device, row in slots.items()})
    if plan is not None and (buffers := buffers_of(rest.settings())) is not None:
        _check_network(managers, slots, network_bytes(plan, layout, answer, buffers))
    managed = {row["id"]: int(row[LEFT]["managedMemory"]) for row in managers}
    return answer, {
        name: mb if most_mb is None else min(mb, most_mb) for name, mb in managed.items()
    }


def pinnable(layout: Layout, graph: StreamGraph, managers: Managers) -> Layout | None:
    """Return a layout as it can be pinned; None if that is impossible.

    If it takes more indexes than are left, the devices of operators without partners are sorted,
    so that operators with equal numbers on the same devices have one index together. Layouts on
    TaskManagers that are not there yet are returned as they are.

    ``managers`` have the resources that the job may use. Every operator that is spread over devices
    takes an index on each of them, unless another one has the same devices in the same order.
    """
    if not layout.devices <= {manager["id"] for manager in managers}:
        return layout
    return next((one for one in (layout, _merged(layout, graph)) if _fits(one, managers)), None)


def _merged(layout: Layout, graph: StreamGraph) -> Layout:
    """Layout with sorted devices of the operators of which no subtask has a partner."""
    paired = {
        name
        for stream in graph.streams
        if stream.partitioning not in UNPAIRED
        for name in (stream.source, stream.target)
    }
    return Layout({n: used if n in paired else sorted(used) for n, used in layout.items()})


def _fits(layout: Layout, managers: Managers) -> bool:
    try:
        pinning(layout, limits_of(managers, layout.spread_devices))
    except PlacementError:
        return False
    return True


def left_without(rest: Rest, *jobs: str) -> list[dict[str, Any]]:
    """TaskManagers with the resources of some jobs free, as they will be when these have ended."""
    return [
        row if row[LEFT] == row[ALL] else _without({**row, **rest.task_manager(row["id"])}, jobs)
        for row in rest.task_managers()
    ]


def holds_whole(rest: Rest, job: str) -> bool:
    """Whether a slot of a job has all resources of a TaskManager, because the job is unplaced."""
    for manager in rest.task_managers():
        if manager[LEFT] == manager[ALL]:
            continue
        pin = resource(manager["id"])
        offered = _amounts(manager, ALL).get(pin, math.inf)
        for slot in rest.task_manager(manager["id"]).get("allocatedSlots", []):
            taken = slot.get("resource", {}).get("extendedResources", {}).get(pin, 0)
            if slot["jobId"] == job and taken >= offered:
                return True
    return False


def _slots(layout: Layout, answer: Pinning) -> dict[str, dict[str, int]]:
    """Device → slots that each group of a placement needs there."""
    groups, devices = list(answer.groups), sorted(layout.devices)
    of_operator = np.array([groups.index(answer.operators[name]) for name in layout], np.int32)
    subtasks = [layout.counts(name) for name in layout]
    counts = np.array([[one.get(device, 0) for one in subtasks] for device in devices])
    rows = group_slots(of_operator, counts).tolist()
    return {d: dict(zip(groups, row, strict=True)) for d, row in zip(devices, rows, strict=True)}


def limits_of(managers: Managers, used: Collection[str]) -> SpreadLimits:
    """Indexes and layers that are still free for spread groups on the TaskManagers in use."""
    rows = {manager["id"]: manager for manager in managers if manager["id"] in used}
    pins_of = [_known(row) for row in rows.values()]
    pins = sorted(set[str].intersection(*pins_of).union(map(resource, rows))) if pins_of else []
    indexes = {device: _numbers(row, "") for device, row in rows.items()}
    layers = {device: _numbers(row, resource(device)) for device, row in rows.items()}
    return SpreadLimits(tuple(pins), indexes, layers)


def check_offers(offered: Mapping[str, Mapping[str, float]], layout: Layout) -> None:
    """Raise PlacementError for a device that the cluster lacks or that cannot be pinned to."""
    for operator, devices in layout.items():
        is_spread = len(set(devices)) > 1
        for device in devices:
            if device not in offered:
                raise PlacementError(
                    f"operator {quoted(operator)} is on {quoted(device)}, which is not a "
                    f"TaskManager of the cluster; it has {listed(tuple(offered))}"
                )
            pin = resource(device)
            if pin not in offered[device]:
                raise _unprepared(device, pin, "nothing can be pinned to it")
            for name in (index_name(0), limit_name(0, pin)) if is_spread else ():
                if name not in offered[device]:
                    raise _unprepared(device, name, "no operator can be spread over it")


def _without(manager: Mapping[str, Any], jobs: Collection[str]) -> dict[str, Any]:
    """Return a TaskManager as it will be when some jobs have released their slots."""
    left, slots = manager[LEFT], manager.get("allocatedSlots", [])
    held = [slot["resource"] for slot in slots if slot["jobId"] in jobs and "resource" in slot]
    freed = _sum_of(left, held)
    if (most := manager[ALL].get("networkMemory")) is not None and "networkMemory" in left:
        parts = [left["networkMemory"], *(row.get("networkMemory", most) for row in held)]
        freed["networkMemory"] = min(most, sum(parts) + len(held))  # Flink rounds each down
    return {**manager, LEFT: freed}


def _sum_of(left: Resources, held: Sequence[Resources]) -> Resources:
    external = Counter[str]()
    for row in (left, *held):
        external.update(row.get("extendedResources", {}))
    return {
        "cpuCores": sum(row.get("cpuCores", 0.0) for row in (left, *held)),
        "taskHeapMemory": sum(row.get("taskHeapMemory", 0) for row in (left, *held)),
        "managedMemory": sum(row["managedMemory"] for row in (left, *held)),
        "extendedResources": dict(external),
    }


def _check_count(manager: Mapping[str, Any], demand: Mapping[str, int], wanted: int) -> None:
    """Raise PlacementError if a TaskManager could hold more or fewer slots than it should."""
    offered, device = _amounts(manager, ALL), manager["id"]
    most = {name: int(offered.get(name, 0) // amount) for name, amount in demand.items()}
    scarce = min(most, key=lambda name: most[name])
    if most[scarce] < wanted:
        raise _unprepared(device, scarce, "no operator can be spread over it and others")
    if most[scarce] > wanted:
        raise PlacementError(
            f"TaskManager {quoted(device)} joined a cluster that was not configured for it, and "
            "could receive subtasks that are placed elsewhere; restart the other TaskManagers "
            "with the configuration that 'streamplace flink config --subtasks' writes for all, or "
            f"restart this one with {quoted(resource(device))} as its only resource"
        )


def _with_room(rest: Rest, managers: Managers, used: Collection[str]) -> list[dict[str, Any]]:
    """Return the TaskManagers, with a new state of those whose resources had been occupied.

    Raises
    ------
    FlinkError
        For a TaskManager that is fully occupied by a job without a placement.
    """
    answer = [dict(manager) for manager in managers]
    for manager in answer:
        device = manager["id"]
        if device in used and _amounts(manager, LEFT).get(resource(device), 0) < 1:
            if holders := rest.holders(device):
                raise FlinkError(
                    f"TaskManager {quoted(device)} is fully occupied by {listed(holders)}: each "
                    "slot of a job without a placement takes all resources of a TaskManager; "
                    "cancel that job, or submit it with 'streamplace flink apply'"
                )
            manager.update(rest.task_manager(device))
    return answer


def _check_slots(managers: Managers, needed: Mapping[str, int]) -> None:
    """Raise FlinkError if the free resources of a TaskManager do not suffice for its slots."""
    for manager in managers:
        device, left = manager["id"], manager[LEFT]
        room = left.get("taskHeapMemory", math.inf) // HEAP_MB
        room = min(room, round(left.get("cpuCores", math.inf) / CPU_CORES, 6) // 1)
        if needed.get(device, 0) > room:
            raise FlinkError(
                f"TaskManager {quoted(device)} has room for {room:g} slots beside those of other "
                f"jobs, but {needed[device]} are placed on it (each asks for {HEAP_MB} MB of heap "
                f"and {CPU_CORES:g} cores); place fewer subtasks on it, or cancel other jobs"
            )


def _check_network(
    managers: Managers, slots: Mapping[str, Mapping[str, int]], slot_bytes: Mapping[str, int]
) -> None:
    """Raise FlinkError if a TaskManager surely has too little network memory for its slots.

    What Flink tells of it is rounded down to whole MiB.
    """
    needed = {
        device: sum(number * slot_bytes.get(group, 0) for group, number in row.items())
        for device, row in slots.items()
    }
    for manager in managers:
        device, left = manager["id"], manager[LEFT].get("networkMemory")
        if left is not None and needed.get(device, 0) >= (left + 1) * MIB:
            raise FlinkError(
                f"TaskManager {quoted(device)} has {left} MiB of network memory left beside other "
                f"jobs, but the slots that are placed on it need {needed[device] / MIB:.1f} MiB or "
                "more; place fewer subtasks on it, or give it more "
                "(taskmanager.memory.network.fraction, .min and .max)"
            )


def _unprepared(device: str, name: str, why: str) -> PlacementError:
    option = "" if name == resource(device) else " --subtasks"
    return PlacementError(
        f"TaskManager {quoted(device)} does not offer {quoted(name)}, so {why}; add the output of "
        f"'streamplace flink config{option}' to its config.yaml and restart it"
    )


def _amounts(manager: Mapping[str, Any], kind: str) -> Mapping[str, float]:
    amounts: Mapping[str, float] = manager[kind].get("extendedResources", {})
    return amounts


def _known(manager: Mapping[str, Any]) -> set[str]:
    """Resources of the devices that a TaskManager is configured for."""
    return {pin for name in _amounts(manager, ALL) if (pin := limited(0, name)) is not None}


def _numbers(manager: Mapping[str, Any], pin: str) -> set[int]:
    """Numbers of the indexes, or of the layers of a device, that are unused."""
    total, left = _amounts(manager, ALL), _amounts(manager, LEFT)

    def name(number: int) -> str:
        return limit_name(number, pin) if pin else index_name(number)

    offered = takewhile(lambda number: name(number) in total, count())
    return {number for number in offered if left.get(name(number)) == total[name(number)]}
