"""The engine: a discrete-time simulation of streams with queues, CPU sharing and a network."""

from functools import partial

from streamsim.lazy import load

__getattr__ = partial(load, __name__)
