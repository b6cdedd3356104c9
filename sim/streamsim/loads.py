"""Loads of all resources under one placement at full rate, in the order of `equation`."""

from streamsim.arrays import Floats, Ints
from streamsim.equation import (
    egress_at,
    handling_load,
    ingress_at,
    link_at,
    link_load,
    nic_load,
    pressure,
)
from streamsim.instance import Instance
from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.platform import Platform


@inlined_kernel
def flow_loads(
    platform: Platform | Instance, tuples: float, traffic: float, a: int, b: int
) -> tuple[float, float, float]:
    """Load by tuples/s and bytes/s of link a→b, of a's outgoing NIC and of b's incoming NIC."""
    link = link_load(traffic, tuples, platform.seconds_per_byte[a, b], platform.gap)
    return link, nic_load(traffic, platform.egress[a]), nic_load(traffic, platform.ingress[b])


@inlined_kernel
def stream_loads(instance: Instance, e: int, a: int, b: int) -> tuple[float, float, float]:
    """`flow_loads` of stream e at full rate."""
    loads: tuple[float, float, float] = flow_loads(
        instance, instance.tuples[e], instance.traffic[e], a, b
    )
    return loads


@inlined_kernel
def wire_between(instance: Instance, a: int, b: int) -> float:
    """Seconds per byte from device a to b: those of the slowest of the link and the two NICs."""
    nics = max(instance.egress[a], instance.ingress[b])
    wire: float = max(instance.seconds_per_byte[a, b], nics)
    return wire


@inlined_kernel
def handling(platform: Platform | Instance, tuples: float, traffic: float, d: int) -> float:
    """Load of device d by sending or receiving ``tuples`` tuples/s and ``traffic`` bytes/s."""
    overhead, per_byte = platform.overhead, platform.overhead_per_byte
    load: float = handling_load(tuples, traffic, overhead, per_byte, platform.free_cores[d])
    return load


@inlined_kernel
def add_flow(
    platform: Platform, loads: Floats, a: int, b: int, tuples: float, traffic: float
) -> None:
    """Add the loads of tuples/s and bytes/s from device a to another device b."""
    d = len(platform.cores)
    link, egress, ingress = flow_loads(platform, tuples, traffic, a, b)
    loads[a] += handling(platform, tuples, traffic, a)
    loads[b] += handling(platform, tuples, traffic, b)
    loads[link_at(d, a, b)] += link
    loads[egress_at(d, a)] += egress
    loads[ingress_at(d, b)] += ingress


@inlined_kernel
def stream_handling(instance: Instance, e: int, d: int, share: float) -> float:
    """Load of device d by sending or receiving a share of stream e."""
    load: float = handling(instance, share * instance.tuples[e], share * instance.traffic[e], d)
    return load


@inlined_kernel
def slowdown(instance: Instance, d: int) -> float:
    """Seconds that device d takes for a core second of handling, beside other processes."""
    times: float = instance.cores[d] / instance.free_cores[d]
    return times


@inlined_kernel
def handles(instance: Instance) -> bool:
    """Whether sending or receiving loads devices."""
    costly: bool = instance.overhead > 0 or instance.overhead_per_byte > 0
    return costly


@inlined_kernel
def add_operator(instance: Instance, loads: Floats, v: int, d: int, share: float) -> None:
    """Add the load of ``share`` of operator v to device d."""
    loads[d] += share * instance.load[v, instance.device_type[d]]


@inlined_kernel
def add_stream(instance: Instance, loads: Floats, e: int, a: int, b: int, share: float) -> None:
    """Add the loads of ``share`` of stream e to devices a and b, their link and their NICs."""
    if a == b:
        return
    d = len(instance.device_type)
    link, egress, ingress = stream_loads(instance, e, a, b)
    loads[a] += stream_handling(instance, e, a, share)
    loads[b] += stream_handling(instance, e, b, share)
    loads[link_at(d, a, b)] += share * link
    loads[egress_at(d, a)] += share * egress
    loads[ingress_at(d, b)] += share * ingress


@borrowing_kernel
def full_rate_loads(instance: Instance, placement: Ints, loads: Floats) -> None:
    """Write the load of every resource at full rate."""
    loads[:] = 0.0
    for v in range(len(placement)):
        add_operator(instance, loads, v, placement[v], 1.0)
    for e in range(len(instance.source)):
        a, b = placement[instance.source[e]], placement[instance.target[e]]
        add_stream(instance, loads, e, a, b, 1.0)


def only_devices_and_links(instance: Instance) -> bool:
    """Whether tuples cost nothing beyond CPU and bytes on links: no NIC caps, overhead or gap."""
    per_tuple = instance.overhead or instance.overhead_per_byte or instance.gap
    return not (per_tuple or instance.egress.any() or instance.ingress.any())


def n_constants(instance: Instance) -> int:
    """Length of the vector of constant loads: the number of devices, or 0 if there are none."""
    return instance.n_devices if len(instance.constant) else 0


def limits_subtasks(instance: Instance) -> bool:
    """Whether a subtask may be full, of its core or its `max_rate`, before its device is."""
    return len(instance.max_rate) > 0 or bool((instance.cores > 1).any())


@inlined_kernel
def core_load(instance: Instance, v: int, d: int) -> float:
    """Fraction of one core of device d, or of its `max_rate`, that a subtask of v uses."""
    fraction: float = instance.core_load[v, instance.device_type[d]]
    return fraction


@inlined_kernel
def core_constant(instance: Instance, v: int, d: int) -> float:
    """Fraction of one core of device d that a subtask of operator v uses at any rate."""
    if len(instance.core_constant) == 0:
        return 0.0
    fraction: float = instance.core_constant[v, instance.device_type[d]]
    return fraction


@inlined_kernel
def core_pressure(instance: Instance, v: int, d: int) -> float:
    """Load of one core as a fraction of the capacity that the subtask's constant load leaves."""
    share: float = pressure(core_load(instance, v, d), core_constant(instance, v, d))
    return share


@inlined_kernel
def write_constants(instance: Instance, placement: Ints, constants: Floats) -> None:
    """Compute the constant load of every device, unless ``constants`` is empty."""
    constants[:] = 0.0
    if len(constants):
        for v in range(len(placement)):
            d = placement[v]
            constants[d] += instance.constant[v, instance.device_type[d]]


@inlined_kernel
def highest(loads: Floats, constants: Floats) -> float:
    """Largest load as a fraction of the capacity that constant loads leave, at least 0."""
    worst = 0.0
    for r in range(len(constants)):
        worst = max(worst, pressure(loads[r], constants[r]))
    for r in range(len(constants), len(loads)):
        worst = max(worst, loads[r])
    return worst


@inlined_kernel
def busiest_core(instance: Instance, placement: Ints) -> float:
    """Largest pressure of one subtask on its core."""
    worst = 0.0
    for v in range(len(placement)):
        worst = max(worst, core_pressure(instance, v, placement[v]))
    return worst
