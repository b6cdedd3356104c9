"""Verbs: a class for each command, and the function of its name for Python users."""

from functools import partial

from streamsim.lazy import load

__getattr__ = partial(load, __name__)
