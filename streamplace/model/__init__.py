"""Stream graphs, clusters, placements and problems."""

from functools import partial

from streamsim.lazy import load

__getattr__ = partial(load, __name__)
