"""Loads that one flow causes, and the kinds of resources that can limit a placement."""

from streamsim.instance import Instance
from streamsim.platform import Platform


def flow_loads(
    platform: Platform | Instance, tuples: float, traffic: float, a: int, b: int
) -> tuple[float, float, float]:
    """Load by tuples/s and bytes/s of link a→b, of a's outgoing NIC and of b's incoming NIC."""
    link = traffic * platform.seconds_per_byte[a, b] + tuples * platform.gap
    return float(link), float(traffic * platform.egress[a]), float(traffic * platform.ingress[b])


def handling(platform: Platform | Instance, tuples: float, traffic: float, d: int) -> float:
    """Load of device d by sending or receiving ``tuples`` tuples/s and ``traffic`` bytes/s."""
    seconds = tuples * platform.overhead + traffic * platform.overhead_per_byte
    return float(seconds / platform.free_cores[d])


def only_devices_and_links(instance: Instance) -> bool:
    """Whether tuples cost nothing beyond CPU and bytes on links: no NIC caps, overhead or gap."""
    per_tuple = instance.overhead or instance.overhead_per_byte or instance.gap
    return not (per_tuple or instance.egress.any() or instance.ingress.any())


def limits_subtasks(instance: Instance) -> bool:
    """Whether a subtask may be full, of its core or its `max_rate`, before its device is."""
    return len(instance.max_rate) > 0 or bool((instance.cores > 1).any())
