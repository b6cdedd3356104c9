"""streamsim: steady state and queueing simulation of placed stream graphs, on plain arrays."""

from typing import TYPE_CHECKING

from streamsim.lazy import loader

if TYPE_CHECKING:
    from streamsim.flow import CycleError
    from streamsim.instance import Instance, WindowedOperator, build_instance
    from streamsim.steady import Loads, bottleneck, resource_loads, source_rates, throughput

_MODULES = {
    "flow": "CycleError",
    "instance": "Instance WindowedOperator build_instance",
    "steady": "Loads bottleneck resource_loads source_rates throughput",
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

__getattr__ = loader(__name__, _MODULES)
