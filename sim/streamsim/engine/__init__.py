"""The engine: a discrete-time simulation of streams with queues, CPU sharing and a network."""

from typing import TYPE_CHECKING

from streamsim.lazy import loader

if TYPE_CHECKING:
    from streamsim.engine.fitting import Doubt, Fit, GivenSettings, fit, settings_for
    from streamsim.engine.generators import Burst, Constant, Generator, Ramp, Replay
    from streamsim.engine.observations import Observations, Trace, observe, observe_traced, trace
    from streamsim.engine.runs import Runs, simulate, simulate_every_tick
    from streamsim.engine.settings import Policy, Settings

_MODULES = {
    "fitting": "Doubt Fit GivenSettings fit settings_for",
    "generators": "Burst Constant Generator Ramp Replay",
    "observations": "Observations Trace observe observe_traced trace",
    "runs": "Runs simulate simulate_every_tick",
    "settings": "Policy Settings",
}

__all__ = [
    "GivenSettings",
    "Burst",
    "Constant",
    "Doubt",
    "Fit",
    "Generator",
    "Observations",
    "Policy",
    "Ramp",
    "Replay",
    "Runs",
    "Settings",
    "Trace",
    "fit",
    "observe",
    "observe_traced",
    "settings_for",
    "simulate",
    "simulate_every_tick",
    "trace",
]

__getattr__ = loader(__name__, _MODULES)
