"""streamsim: steady state and queueing simulation of placed stream graphs, on plain arrays."""

from functools import partial

from streamsim.lazy import load

__getattr__ = partial(load, __name__)
