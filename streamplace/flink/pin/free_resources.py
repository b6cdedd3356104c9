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
ALL, LEFT, EXTERNAL = "totalResource", "freeResource", "extendedResources"
UNPAIRED = ("hash", "rebalance")
"""Partitionings that join every subtask to every other one, so that their order does not matter."""
BUFFERS = (
    ("taskmanager.network.memory.buffers-per-channel", 2),
    ("taskmanager.network.memory.floating-buffers-per-gate", 8),
)
"""Numbers of network buffers per channel, and more of them per input or output; with defaults.

Flink 2 has the defaults as constants, and ignores the settings.
"""


def fitted(
    rest: Rest,
    layout: Layout,
    most_mb: int | None = None,
    jobs: Sequence[str] = (),
    plan: JobPlan | None = None,
) -> Pinning:
    """Pinning with the free resources and managed memory of a cluster.

    Raises an error if the cluster cannot run the placement. ``most_mb`` limits the managed memory
    on each TaskManager. The resources of ``jobs`` count as free, as these will have ended. Network
    memory is checked only with the ``plan`` of the job, whose streams need it.
    """
    managers = left_without(rest, *jobs)
    _check_prepared(managers, layout)
    _check_shared(rest, managers, layout.devices)
    answer = pinning(layout, limits_of(managers, layout.spread_devices))
    for group, counts in answer.spread.items():
        for manager in managers:
            _check_count(manager, answer.groups[group], counts.get(manager["id"], 0))
    network = {} if plan is None else _network_bytes(rest, plan, layout, answer)
    _check_slots(managers, _slots(layout, answer), network)
    managed = {row["id"]: int(row[LEFT]["managedMemory"]) for row in managers}
    if most_mb is not None:
        managed = {name: min(mb, most_mb) for name, mb in managed.items()}
    return replace(answer, managed=managed)


def pinnable(layout: Layout, graph: StreamGraph, managers: Managers) -> Layout | None:
    """Return a layout as it can be pinned; None if that is impossible.

    If it takes more indexes than are left, the devices of operators without partners are sorted,
    so that operators with equal numbers on the same devices have one index together. Layouts on
    Future TaskManagers are returned unchanged.

    ``managers`` have the resources that the job may use. Every operator that is spread over devices
    takes an index on each of them, unless another one has the same devices in the same order.
    """
    if not layout.devices <= {manager["id"] for manager in managers}:
        return layout
    paired = {
        name
        for stream in graph.streams
        if stream.partitioning not in UNPAIRED
        for name in (stream.source, stream.target)
    }
    merged = Layout({n: used if n in paired else sorted(used) for n, used in layout.items()})
    for variant in (layout, merged):
        with suppress(PlacementError):
            pinning(variant, limits_of(managers, variant.spread_devices))
            return variant
    return None


def left_without(rest: Rest, *jobs: str) -> list[dict[str, Any]]:
    """TaskManagers with the resources of some jobs free, as they will be when these have ended."""
    answer = []
    for row in rest.task_managers():
        if row[LEFT] == row[ALL]:
            answer.append(row)
            continue
        with suppress(Refusal):  # it has left the cluster in the meantime
            answer.append(_without({**row, **rest.task_manager(row["id"])}, jobs))
    return answer


def _without(manager: Mapping[str, Any], jobs: Collection[str]) -> dict[str, Any]:
    """Return a TaskManager as it will be when some jobs have released their slots."""
    slots = manager.get("allocatedSlots", [])
    held = [slot["resource"] for slot in slots if slot["jobId"] in jobs and "resource" in slot]
    left = {
        name: amount + sum(row.get(name, 0) for row in held)
        for name, amount in manager[LEFT].items()
        if name != EXTERNAL
    }
    if "networkMemory" in left:
        left["networkMemory"] += len(held)  # Flink rounds each down
    external = Counter(manager[LEFT].get(EXTERNAL, {}))
    for row in held:
        external.update(row.get(EXTERNAL, {}))
    return {**manager, LEFT: {**left, EXTERNAL: dict(external)}}


def is_pinnable(manager: Mapping[str, Any]) -> bool:
    """Whether a TaskManager offers the resource of its own name."""
    return resource(manager["id"]) in _amounts(manager, ALL)


def occupied_devices(managers: Managers) -> frozenset[str]:
    """Devices to which nothing can be pinned, from TaskManagers and their free resources.

    Other jobs use them exclusively, or they are not configured for pins although others are.
    """
    prepared = any(map(is_pinnable, managers))
    return frozenset(row["id"] for row in managers if prepared and _is_full(row))


def _is_full(manager: Mapping[str, Any]) -> bool:
    """Whether nothing can be pinned to a TaskManager beside its present slots."""
    return _amounts(manager, LEFT).get(resource(manager["id"]), 0) < 1


def is_placed(job: str, managers: Managers) -> bool | None:
    """Whether slots of a job request their TaskManagers, as the slots of a placement do.

    A slot of any other job has its part of everything that the TaskManager offers. None if no slot
    shows it. Rows of ``managers`` have their slots, as `left_without` reports them.
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
    # the devices that every TaskManager is configured for
    start = limit_name(0, "")
    configured = [
        {name.removeprefix(start) for name in _amounts(row, ALL) if name.startswith(start)}
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
    """Numbers of the unused ones among the first resources of a TaskManager."""
    total, left = _amounts(manager, ALL), _amounts(manager, LEFT)
    offered = enumerate(takewhile(total.__contains__, names))
    return {number for number, name in offered if left.get(name) == total[name]}


def _amounts(manager: Mapping[str, Any], kind: str) -> Mapping[str, float]:
    amounts: Mapping[str, float] = manager[kind].get(EXTERNAL, {})
    return amounts


def _slots(layout: Layout, answer: Pinning) -> dict[str, dict[str, int]]:
    """Device → slots that each group of a placement needs there."""
    groups, devices = list(answer.groups), sorted(layout.devices)
    of_operator = np.array([groups.index(answer.operators[name]) for name in layout], np.int32)
    subtasks = [layout.counts(name) for name in layout]
    counts = np.array([[own.get(device, 0) for own in subtasks] for device in devices])
    rows = group_slots(of_operator, counts).tolist()
    return {d: dict(zip(groups, row, strict=True)) for d, row in zip(devices, rows, strict=True)}


def _check_prepared(managers: Managers, layout: Layout) -> None:
    """Raise PlacementError if a device of a placement is not there, or not configured for it."""
    offered = {manager["id"]: _amounts(manager, ALL) for manager in managers}
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


def _check_count(manager: Mapping[str, Any], demand: Mapping[str, int], wanted: int) -> None:
    """Raise PlacementError if a TaskManager could hold more or fewer slots than it should."""
    offered, device = _amounts(manager, ALL), manager["id"]
    room = {name: int(offered.get(name, 0) // amount) for name, amount in demand.items()}
    scarce = min(room, key=lambda name: room[name])
    if room[scarce] < wanted:
        raise _unprepared(device, scarce)
    if room[scarce] > wanted:
        raise PlacementError(
            f"TaskManager {quoted(device)} joined a cluster that was not configured for it, and "
            "could receive subtasks that are placed elsewhere; restart the other TaskManagers "
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
        device, free = manager["id"], manager[LEFT]
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


def _network_bytes(rest: Rest, plan: JobPlan, layout: Layout, answer: Pinning) -> dict[str, int]:
    """Group → bytes of network memory that each of its slots needs at least, by Flink's own rule.

    A slot gets so many buffers per channel of every input and output of its group, and more of each
    input or output. Only what is certain is counted: neither streams that Flink may replace by
    chains, nor those whose ends get other numbers of subtasks.
    """
    settings = rest.settings()
    size = int(memory_bytes(settings.get(BUFFER_SIZE, "32kb")) or 0)
    numbers = {} if version_of(rest) >= (2, 0) else settings
    per_channel, more = (int(numbers.get(key, usual)) for key, usual in BUFFERS)
    _, tasks, edges = plan
    task_of, groups = {task.id: task for task in tasks}, {}
    for task in tasks:
        names = operators_in(task.name)
        if all(
            name in layout and (name in layout.uncounted or len(layout[name]) == task.parallelism)
            for name in names
        ):
            groups[task.id] = [answer.operators[name] for name in names]
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
            needed[senders[0]] += size * (channels * per_channel + more)
        channels = -(-n // m) if edge.is_pointwise else n
        needed[receivers[0]] += size * (channels * per_channel + more)
    return needed
