"""streamsim: steady state and queueing simulation of placed stream graphs, on plain arrays."""

from typing import TYPE_CHECKING

from streamsim.lazy import loader

if TYPE_CHECKING:
    from streamsim.flow import CycleError
    from streamsim.instance import Instance, WindowedOperator, build_instance
    from streamsim.steady import Loads, bottleneck, resource_loads, source_rates, throughput

_HOME = {
    "bottleneck": "steady",
    "build_instance": "instance",
    "CycleError": "flow",
    "Instance": "instance",
    "Loads": "steady",
    "resource_loads": "steady",
    "source_rates": "steady",
    "throughput": "steady",
    "WindowedOperator": "instance",
}

__all__ = [
    "CycleError",
    "Instance",
    "Loads",
    "WindowedOperator",
    "bottleneck",
    "build_instance",
    "resource_loads",
    "source_rates",
    "throughput",
]

__getattr__ = loader(__name__, _HOME)
