"""Plan: the quantities of a run that follow from its placement, compiled before the first tick."""

from typing import NamedTuple

import numpy as np

from streamsim.arrays import Floats, Indices, Ints
from streamsim.engine.nics import Nics, nic_resources
from streamsim.engine.wiring import WEIGHTED, Wiring
from streamsim.equation import OVERFULL
from streamsim.instance import Instance
from streamsim.jit import kernel
from streamsim.loads import core_constant, slowdown, write_constants
from streamsim.topology import group_by

TICKS = 4.0  # capacity in ticks of full rate without latency; two suffice without oscillation


class Plan(NamedTuple):
    """Turns of operators on devices, and streams on links, under one placement.

    Devices come in the order in which a topological walk first meets them, so that the names of
    identical devices make no difference.
    """

    placement: Ints  # [N]
    devices: Ints  # [D] devices in use, in order of first appearance, then the idle ones
    turn_start: Indices  # [D + 1] turns of the k-th device: turns[turn_start[k]:turn_start[k + 1]]
    turns: Indices  # [N] operators, topological within a device
    budget: Floats  # [D] core seconds per slice of the k-th device for tuples
    constant: Floats  # [D] core seconds per slice that its operators use at any rate
    cost: Floats  # [N] core seconds per input tuple, sending included
    send_cost: Floats  # [N] core seconds for sending, per output tuple
    most: Floats  # [N] tuples per slice that the subtasks of an operator can process
    limited: bool  # whether ``most`` is finite for any operator
    share: Floats  # [N] core seconds that an operator may use per turn

    remote: Ints  # [M] 1 for a stream between two devices
    remote_payload: Floats  # [M] bytes per tuple of such a stream, 0 elsewhere
    wire: Floats  # [M] seconds that a tuple occupies its link
    delay: Ints  # [M] ticks that a tuple is under way
    room: Floats  # [M] tuples that a stream may hold
    link_start: Indices  # [L + 1] streams of the l-th link in use
    link_streams: Indices  # [R] remote streams by link
    nics: Nics


@kernel
def plan_run(instance: Instance, wiring: Wiring, placement: Ints) -> Plan:
    """Compile one placement."""
    remote, wire, delay = _remote_streams(instance, placement, wiring.dt, wiring.ticks)
    devices, turn_start, turns = _turns(instance, placement)
    cost, send_cost = _costs(instance, placement, remote, wiring.window_of)
    per_slice = wiring.slice_seconds
    constants = np.zeros(len(devices) if len(instance.constant) else 0)
    write_constants(instance, placement, constants)
    budget = instance.cores[devices] * per_slice
    constant = np.zeros(len(devices))
    if len(constants):
        constant = np.minimum(constants[devices], 1.0) * budget
        budget -= constant
    weighed = (
        _full_costs(instance, placement, remote, send_cost) if wiring.policy == WEIGHTED else cost
    )
    share = _shares(wiring, weighed, turn_start, turns, budget)
    most = _most(instance, placement, per_slice, constants)
    link_start, link_streams = _links(instance, placement, remote)
    return Plan(
        placement,
        devices,
        turn_start,
        turns,
        budget,
        constant,
        cost,
        send_cost,
        most,
        bool(np.any(most < np.inf)),
        share,
        remote,
        remote * instance.payload,
        wire,
        delay,
        capacities(instance, wiring, remote, delay),
        link_start,
        link_streams,
        nic_resources(instance, placement, wire, link_start, link_streams),
    )


@kernel
def _turns(instance: Instance, placement: Ints) -> tuple[Ints, Indices, Indices]:
    """Devices by first appearance, and their operators in topological order."""
    n, d = len(placement), len(instance.device_type)
    rank = np.full(d, -1, np.int32)
    devices = np.empty(d, np.int32)
    keys = np.empty(n, np.int32)
    n_ranked = 0
    for i in range(n):
        device = placement[instance.order[i]]
        if rank[device] < 0:
            rank[device] = n_ranked
            devices[n_ranked] = device
            n_ranked += 1
        keys[i] = rank[device]
    for device in range(d):
        if rank[device] < 0:
            devices[n_ranked] = device
            n_ranked += 1
    start, positions = group_by(keys, d)
    return devices, start.astype(np.uint32), instance.order[positions].astype(np.uint32)


@kernel
def _remote_streams(
    instance: Instance, placement: Ints, dt: float, ticks: int
) -> tuple[Ints, Floats, Ints]:
    """Whether streams cross devices, seconds that a tuple holds the link, and latency in ticks.

    A latency that is longer than the run counts as long as the run: no tuple arrives in either.
    """
    m = len(instance.source)
    remote = np.zeros(m, np.int32)
    wire = np.zeros(m)
    delay = np.zeros(m, np.int32)
    for e in range(m):
        a, b = placement[instance.source[e]], placement[instance.target[e]]
        if a != b:
            remote[e] = 1
            wire[e] = instance.gap + instance.payload[e] * instance.seconds_per_byte[a, b]
            delay[e] = int(min(np.ceil(instance.latency[a, b] / dt - 1e-9), ticks))
    return remote, wire, delay


@kernel
def _costs(
    instance: Instance, placement: Ints, remote: Ints, window_of: Ints
) -> tuple[Floats, Floats]:
    """Core seconds per input tuple and, for sending alone, per output tuple.

    A windowed operator pays for sending when its window emits, all others with each input tuple.
    """
    n = len(placement)
    cost = np.empty(n)
    send_cost = np.zeros(n)
    for e in range(len(remote)):
        u = instance.source[e]
        handling = _handling(instance, e, placement[u])
        send_cost[u] += handling * instance.selectivity[e] * remote[e]
    for v in range(n):
        cost[v] = instance.seconds[v, instance.device_type[placement[v]]]
        if window_of[v] < 0:
            cost[v] += send_cost[v]
    return cost, send_cost


@kernel
def _handling(instance: Instance, e: int, d: int) -> float:
    """Core seconds in which device d sends or receives a tuple of stream e."""
    handling = instance.overhead + instance.overhead_per_byte * instance.payload[e]
    return float(handling * slowdown(instance, d))


@kernel
def _full_costs(instance: Instance, placement: Ints, remote: Ints, send_cost: Floats) -> Floats:
    """Core seconds per input tuple at full rate, for sending and receiving as well."""
    cost = np.empty(len(placement))
    for v in range(len(placement)):
        cost[v] = instance.seconds[v, instance.device_type[placement[v]]]
        if instance.input_rate[v] > 0.0:
            cost[v] += send_cost[v] * (instance.output_rate[v] / instance.input_rate[v])
    for e in range(len(remote)):
        v = instance.target[e]
        if remote[e] and instance.input_rate[v] > 0.0:
            received = instance.tuples[e] / instance.input_rate[v]
            cost[v] += received * _handling(instance, e, placement[v])
    return cost


@kernel
def _most(instance: Instance, placement: Ints, per_slice: float, constants: Floats) -> Floats:
    """Tuples per slice that the subtasks of an operator can process; infinite without a limit.

    Subtasks are limited by their cores, if the device has more, and by their largest rate. 0 if
    constant loads exceed the device or core.
    """
    limit = np.full(len(placement), np.inf)
    for v in range(len(placement)):
        seconds = instance.seconds[v, instance.device_type[placement[v]]]
        if instance.parallelism[v] < instance.cores[placement[v]] and seconds > 0.0:
            limit[v] = instance.parallelism[v] * per_slice / seconds
        if len(constants):
            constant = core_constant(instance, v, placement[v])
            if limit[v] < np.inf:
                limit[v] *= max(1.0 - constant, 0.0)
            if max(constants[placement[v]], constant) > 1.0 + OVERFULL:
                limit[v] = 0.0
        if len(instance.max_rate):
            rate = instance.parallelism[v] * instance.max_rate[v]
            limit[v] = min(limit[v], rate * per_slice)
    return limit


@kernel
def _shares(
    wiring: Wiring, cost: Floats, turn_start: Indices, turns: Indices, budget: Floats
) -> Floats:
    """Equal shares of each device's budget, or shares in proportion to weight × cost."""
    share = np.empty(len(turns))
    for k in range(len(budget)):
        mine = turns[turn_start[k] : turn_start[k + 1]]
        total = 0.0
        for v in mine:
            share[v] = 1.0
            if wiring.policy == WEIGHTED:
                share[v] = wiring.weights[v] * cost[v]
            total += share[v]
        for v in mine:
            share[v] *= budget[k] / total if total > 0 else 0.0
    return share


@kernel
def _links(instance: Instance, placement: Ints, remote: Ints) -> tuple[Indices, Indices]:
    """Remote streams grouped by (sender, receiver): a radix sort of two passes."""
    d = len(instance.device_type)
    streams = np.nonzero(remote)[0].astype(np.int32)
    receiver = placement[instance.target[streams]]
    streams = streams[group_by(receiver, d)[1]]
    sender = placement[instance.source[streams]]
    streams = streams[group_by(sender, d)[1]]
    start = np.empty(len(streams) + 1, np.int32)
    links = 0
    for i in range(len(streams)):
        if i == 0 or not _same_link(instance, placement, streams[i - 1], streams[i]):
            start[links] = i
            links += 1
    start[links] = len(streams)
    return start[: links + 1].astype(np.uint32), streams.astype(np.uint32)


@kernel
def _same_link(instance: Instance, placement: Ints, e: int, f: int) -> bool:
    return bool(
        placement[instance.source[e]] == placement[instance.source[f]]
        and placement[instance.target[e]] == placement[instance.target[f]]
    )


@kernel
def capacities(instance: Instance, wiring: Wiring, remote: Ints, delay: Ints) -> Floats:
    """Capacity of each stream in tuples under one placement.

    A capacity given by the user holds for all streams. Otherwise it is the number of tuples at full
    rate in `TICKS` ticks, in the stream's latency, and in the longer of two times: twice the
    longest latency (for so long a sender blocked on one stream starves the receivers of its
    others), and the longest advance of a window (whose results come all at once and delay
    everything on the same device or link). Into a join, the time by which the other inputs arrive
    later is added. Queues in proportion to their rates fill in the same time, so that a slow stream
    does not settle later than a fast one.
    """
    m = len(instance.source)
    if wiring.capacity > 0.0:
        return np.full(m, wiring.capacity)
    ticks = np.full(m, TICKS)
    for e in range(m):
        ticks[:] = np.maximum(ticks, TICKS + 2.0 * delay[e])
    for k in range(len(instance.windows)):
        ticks[:] = np.maximum(ticks, TICKS + instance.windows[k, 2] / wiring.dt)
    if np.any(wiring.joins):
        ticks += _lead(instance, wiring, remote, delay)
    return instance.tuples * (wiring.peak * wiring.dt) * (ticks + delay)


@kernel
def _lead(instance: Instance, wiring: Wiring, remote: Ints, delay: Ints) -> Floats:
    """Ticks by which the tuples of a stream reach a join earlier than those of its last input."""
    latest = np.zeros(len(instance.rate))
    arrival = np.empty(len(instance.source))
    for e in range(len(instance.source)):
        u = instance.source[e]
        arrival[e] = latest[u] + remote[e] * (1.0 + delay[e])
        if wiring.window_of[u] >= 0:
            row = instance.windows[wiring.window_of[u]]
            arrival[e] += (row[1] + row[2]) / wiring.dt
        v = instance.target[e]
        latest[v] = max(latest[v], arrival[e])
    for e in range(len(arrival)):
        v = instance.target[e]
        arrival[e] = latest[v] - arrival[e] if wiring.joins[v] else 0.0
    return arrival
