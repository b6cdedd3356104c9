"""Policies that improve placements: their contract with a placer."""

from collections.abc import Callable, Iterator

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem

CHUNK = 16
"""Most steps between two checks of the placer's budget."""
STEPS_PER_OPERATOR = 2
"""Steps of the longest episodes, per operator."""

Improver = Callable[[Problem, Ints, np.random.Generator, int], Iterator[Ints]]
"""A policy with fixed weights: one episode of a problem from a legal placement [N].

It yields the legal placements after its steps, at most so many [T, N] at a time.
"""
