"""Free resources: whether TaskManagers have enough of them for a placement."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count, takewhile
from typing import Any

import numpy as np

from streamplace.engines.names import resource
from streamplace.errors import PlacementError
from streamplace.flink.layout import Layout
from streamplace.flink.pin.hook import CPU_CORES, HEAP_MB
from streamplace.flink.pin.pinning import (
    Pinning,
    SpreadLimits,
    index_name,
    limit_name,
    pinning,
)
from streamplace.flink.program.operator_names import operators_in
from streamplace.flink.rest.client import FlinkError, Refusal, Rest
from streamplace.flink.rest.plan import JobPlan
from streamplace.flink.rest.settings import BUFFER_SIZE, memory_bytes
from streamplace.flink.versions import version_of
from streamplace.model import StreamGraph
from streamplace.model.message_text import listed, quoted
from streamplace.planning.demand import group_slots

Managers = Sequence[dict[str, Any]]
TOTAL, FREE, EXTERNAL = "totalResource", "freeResource", "extendedResources"
UNPAIRED = ("hash", "rebalance")
"""Partitionings that join every subtask to every other one, so that their order does not matter."""
BUFFERS = (
    ("taskmanager.network.memory.buffers-per-channel", 2),
    ("taskmanager.network.memory.floating-buffers-per-gate", 8),
)
"""Settings of network buffers: number per channel, further number per input or output; defaults.

Flink 2 ignores the settings; the defaults are constants there.
"""


def fitted(
    rest: Rest,
    layout: Layout,
    max_managed_mb: int | None = None,
    jobs: Sequence[str] = (),
    plan: JobPlan | None = None,
) -> Pinning:
    """Pinning with the free resources and managed memory of a cluster.

    Raises an error if the cluster cannot run the placement. ``max_managed_mb`` limits the managed
    memory on each TaskManager. The resources of ``jobs`` count as free, because these will have
    ended. Network memory is checked only with the ``plan`` of the job, whose streams need it.
    """
    managers = managers_without(rest, *jobs)
    _check_prepared(managers, layout)
    _check_shared(rest, managers, layout.devices)
    pins = pinning(layout, limits_of(managers, layout.spread_devices))
    for group, counts in pins.spread.items():
        for manager in managers:
            _check_count(manager, pins.groups[group], counts.get(manager["id"], 0))
    network = {} if plan is None else _network_bytes(rest, plan, layout, pins)
    _check_slots(managers, _slots(layout, pins), network)
    managed = {row["id"]: int(row[FREE]["managedMemory"]) for row in managers}
    if max_managed_mb is not None:
        managed = {name: min(mb, max_managed_mb) for name, mb in managed.items()}
    return replace(pins, managed=managed)


def pinnable(layout: Layout, graph: StreamGraph, managers: Managers) -> Layout | None:
    """Return a layout that can be pinned; None if that is impossible.

    Every operator that is spread over devices takes an index on each of them, unless another one
    has the same devices in the same order. If the free indexes do not suffice, the devices of
    operators whose subtasks are not paired are sorted, so that more operators share an index.
    Layouts on future TaskManagers are returned unchanged.

    ``managers``: TaskManagers with the resources that the job may use.
    """
    if not layout.devices <= {manager["id"] for manager in managers}:
        return layout
    paired = {
        name
        for stream in graph.streams
        if stream.partitioning not in UNPAIRED
        for name in (stream.source, stream.target)
    }
    in_order = Layout({n: used if n in paired else sorted(used) for n, used in layout.items()})
    for variant in (layout, in_order):
        with suppress(PlacementError):
            pinning(variant, limits_of(managers, variant.spread_devices))
            return variant
    return None


def managers_without(rest: Rest, *jobs: str) -> list[dict[str, Any]]:
    """TaskManagers whose free resources include those of some jobs, as after the end of these."""
    managers = []
    for row in rest.task_managers():
        if row[FREE] == row[TOTAL]:
            managers.append(row)
            continue
        with suppress(Refusal):  # it has left the cluster in the meantime
            managers.append(_without({**row, **rest.task_manager(row["id"])}, jobs))
    return managers


def _without(manager: Mapping[str, Any], jobs: Collection[str]) -> dict[str, Any]:
    """TaskManager after some jobs have released their slots."""
    slots = manager.get("allocatedSlots", [])
    released = [slot["resource"] for slot in slots if slot["jobId"] in jobs and "resource" in slot]
    free = {
        name: amount + sum(row.get(name, 0) for row in released)
        for name, amount in manager[FREE].items()
        if name != EXTERNAL
    }
    if "networkMemory" in free:
        free["networkMemory"] += len(released)  # Flink rounds each down
    external = Counter(manager[FREE].get(EXTERNAL, {}))
    for row in released:
        external.update(row.get(EXTERNAL, {}))
    return {**manager, FREE: {**free, EXTERNAL: dict(external)}}


def is_pinnable(manager: Mapping[str, Any]) -> bool:
    """Whether a TaskManager offers the resource of its own name."""
    return resource(manager["id"]) in _amounts(manager, TOTAL)


def occupied_devices(managers: Managers) -> frozenset[str]:
    """Devices to which nothing can be pinned.

    Other jobs occupy them fully, or they are not configured for pins although others are.
    """
    prepared = any(map(is_pinnable, managers))
    return frozenset(row["id"] for row in managers if prepared and _is_full(row))


def _is_full(manager: Mapping[str, Any]) -> bool:
    """Whether nothing can be pinned to a TaskManager beside its present slots."""
    return _amounts(manager, FREE).get(resource(manager["id"]), 0) < 1


def is_placed(job: str, managers: Managers) -> bool | None:
    """Whether slots of a job request their TaskManagers, as the slots of a placement do.

    A slot of any other job takes a share of every resource of its TaskManager. None if no slot
    shows it. ``managers`` have their slots, as in the result of `managers_without`.
    """
    for manager in filter(is_pinnable, managers):
        for slot in manager.get("allocatedSlots", ()):
            amounts = slot.get("resource", {}).get(EXTERNAL, {})
            if slot["jobId"] == job and amounts:
                return bool(amounts.get(resource(manager["id"]), 0) <= 1)
    return None


def limits_of(managers: Managers, used: Collection[str]) -> SpreadLimits:
    """Indexes and layers that are still free for spread groups on the TaskManagers in use."""
    rows = {manager["id"]: manager for manager in managers if manager["id"] in used}
    prefix = limit_name(0, "")
    configured = [  # the devices that each TaskManager is configured for
        {name.removeprefix(prefix) for name in _amounts(row, TOTAL) if name.startswith(prefix)}
        for row in rows.values()
    ]
    common = set[str].intersection(*configured) if rows else set[str]()
    pins = sorted(common.union(map(resource, rows)))
    indexes = {device: _unused(row, map(index_name, count())) for device, row in rows.items()}
    layers = {
        device: _unused(row, (limit_name(layer, resource(device)) for layer in count()))
        for device, row in rows.items()
    }
    return SpreadLimits(tuple(pins), indexes, layers)


def _unused(manager: Mapping[str, Any], names: Iterable[str]) -> set[int]:
    """Positions of unused resources in ``names``, up to the first that is not offered."""
    total, free = _amounts(manager, TOTAL), _amounts(manager, FREE)
    offered = enumerate(takewhile(total.__contains__, names))
    return {number for number, name in offered if free.get(name) == total[name]}


def _amounts(manager: Mapping[str, Any], kind: str) -> Mapping[str, float]:
    amounts: Mapping[str, float] = manager[kind].get(EXTERNAL, {})
    return amounts


def _slots(layout: Layout, pins: Pinning) -> dict[str, dict[str, int]]:
    """Device → group → number of slots that it needs there."""
    groups, devices = list(pins.groups), sorted(layout.devices)
    of_operator = np.array([groups.index(pins.operators[name]) for name in layout], np.int32)
    by_operator = [layout.counts(name) for name in layout]
    counts = np.array([[row.get(device, 0) for row in by_operator] for device in devices])
    rows = group_slots(of_operator, counts).tolist()
    return {d: dict(zip(groups, row, strict=True)) for d, row in zip(devices, rows, strict=True)}


def _check_prepared(managers: Managers, layout: Layout) -> None:
    """Raise PlacementError if a device of a placement is missing, or not configured for it."""
    offered = {manager["id"]: _amounts(manager, TOTAL) for manager in managers}
    for operator, devices in layout.items():
        is_spread = len(set(devices)) > 1
        for device in dict.fromkeys(devices):
            if device not in offered:
                raise PlacementError(
                    f"operator {quoted(operator)} is on {quoted(device)}, which is not a "
                    f"TaskManager of the cluster; it has {listed(tuple(offered))}"
                )
            pin = resource(device)
            for name in (pin, index_name(0), limit_name(0, pin)) if is_spread else (pin,):
                if name not in offered[device]:
                    raise _unprepared(device, name)


def _check_shared(rest: Rest, managers: Managers, used: Collection[str]) -> None:
    """Raise FlinkError for a TaskManager that a job without a placement occupies fully."""
    for manager in managers:
        device = manager["id"]
        if device not in used or not _is_full(manager):
            continue
        if holders := rest.holders(device):
            raise FlinkError(
                f"TaskManager {quoted(device)} is fully occupied by {listed(holders)}: each slot "
                "of a job without a placement takes all resources of a TaskManager; cancel that "
                "job, or submit it with 'streamplace flink apply'"
            )


def _check_count(manager: Mapping[str, Any], demand: Mapping[str, int], placed: int) -> None:
    """Raise PlacementError if a TaskManager can hold more or fewer slots than are placed on it."""
    offered, device = _amounts(manager, TOTAL), manager["id"]
    room = {name: int(offered.get(name, 0) // amount) for name, amount in demand.items()}
    scarce = min(room, key=lambda name: room[name])
    if room[scarce] < placed:
        raise _unprepared(device, scarce)
    if room[scarce] > placed:
        raise PlacementError(
            f"TaskManager {quoted(device)} joined a cluster that was not configured for it, and "
            "could receive subtasks of other devices; restart the other TaskManagers "
            "with the configuration that 'streamplace flink config --subtasks' writes for all, or "
            f"restart this one with {quoted(resource(device))} as its only resource"
        )


def _unprepared(device: str, name: str) -> PlacementError:
    why, option = "nothing can be pinned to it", ""
    if name != resource(device):
        why, option = "no operator can be spread over it", " --subtasks"
    return PlacementError(
        f"TaskManager {quoted(device)} does not offer {quoted(name)}, so {why}; add the output of "
        f"'streamplace flink config{option}' to its config.yaml and restart it"
    )


def _check_slots(
    managers: Managers, slots: Mapping[str, Mapping[str, int]], slot_bytes: Mapping[str, int]
) -> None:
    """Raise FlinkError if the free resources of a TaskManager do not suffice for its slots."""
    for manager in managers:
        device, free = manager["id"], manager[FREE]
        needed = slots.get(device, {})
        room = free.get("taskHeapMemory", math.inf) // HEAP_MB
        room = min(room, round(free.get("cpuCores", math.inf) / CPU_CORES, 6) // 1)
        if sum(needed.values()) > room:
            raise FlinkError(
                f"TaskManager {quoted(device)} has room for {room:g} slots beside those of other "
                f"jobs, but {sum(needed.values())} are placed on it (each asks for {HEAP_MB} MB of "
                f"heap and {CPU_CORES:g} cores); place fewer subtasks on it, or cancel other jobs"
            )
        network = sum(number * slot_bytes.get(group, 0) for group, number in needed.items())
        network_mb = free.get("networkMemory", math.inf)  # rounded down to whole MiB
        if network >= (network_mb + 1) * 2**20:
            raise FlinkError(
                f"TaskManager {quoted(device)} has {network_mb} MiB of network memory left beside "
                f"other jobs, but the slots that are placed on it need {network / 2**20:.1f} MiB "
                "or more; place fewer subtasks on it, or give it more "
                "(taskmanager.memory.network.fraction, .min and .max)"
            )


def _network_bytes(rest: Rest, plan: JobPlan, layout: Layout, pins: Pinning) -> dict[str, int]:
    """Group → minimum bytes of network memory of each of its slots, by Flink's rule.

    A slot gets a number of buffers per channel of every input and output of its group, and a
    further number per input and output. Only certain streams are counted: neither streams that
    Flink may replace by chains, nor those between operators that get other numbers of subtasks.
    """
    settings = rest.settings()
    size = int(memory_bytes(settings.get(BUFFER_SIZE, "32kb")) or 0)
    numbers = {} if version_of(rest) >= (2, 0) else settings
    per_channel, per_gate = (int(numbers.get(key, usual)) for key, usual in BUFFERS)
    _, tasks, edges = plan
    task_of, groups = {task.id: task for task in tasks}, {}
    for task in tasks:
        names = operators_in(task.name)
        if all(
            name in layout and (name in layout.uncounted or len(layout[name]) == task.parallelism)
            for name in names
        ):
            groups[task.id] = [pins.operators[name] for name in names]
    needed: Counter[str] = Counter()
    for edge in edges:
        if not groups.keys() >= {edge.source, edge.target}:
            continue
        senders, receivers = groups[edge.source], groups[edge.target]
        if edge.partitioning == "forward" and set(senders) & set(receivers):
            continue
        n, m = task_of[edge.source].parallelism, task_of[edge.target].parallelism
        if len(set(senders)) == 1:  # otherwise, any operator of the chain may send
            channels = -(-m // n) if edge.is_pointwise else m
            needed[senders[0]] += size * (channels * per_channel + per_gate)
        channels = -(-n // m) if edge.is_pointwise else n
        needed[receivers[0]] += size * (channels * per_channel + per_gate)
    return needed
