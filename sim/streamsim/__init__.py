"""streamsim: steady state and queueing simulation of placed stream graphs, on plain arrays."""

from streamsim.flow import CycleError
from streamsim.instance import Instance, WindowedOperator, build_instance
from streamsim.steady import Loads, bottleneck, resource_loads, source_rates, throughput

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
