"""Functions for Python users, with the names of the commands."""

from functools import partial

from streamsim.lazy import load

__getattr__ = partial(load, __name__)
