"""The library: instances with best known solutions, and bounds that `checker/` verifies."""

from functools import partial

from streamsim.lazy import load

__getattr__ = partial(load, __name__)
