"""Exploring for the memory: how many random placements, and some near remembered ones."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from streamsim.canonical import canonical

from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem


def exploration(first: float, decay: float, epoch: int) -> int:
    """Number of random samples in an epoch, first · e^(-decay · epoch).

    >>> [exploration(20, 1.0, epoch) for epoch in range(5)]
    [20, 7, 3, 1, 0]
    """
    return round(first * math.exp(-decay * epoch))


def neighbours(
    problem: Problem, order: NDArray[Any], bases: NDArray[Any], rng: np.random.Generator
) -> Ints:
    """Legal placements that differ from given ones [S, N] in one run of operators.

    A run is contiguous in the order; its length is geometric with mean 2.
    """
    size, n = bases.shape
    start = rng.integers(n, size=(size, 1))
    length = rng.geometric(0.5, size=(size, 1))
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    moved = (position >= start) & (position < start + length)
    device = rng.integers(problem.n_devices, size=(size, 1), dtype=np.int32)
    return problem.repaired(np.where(moved, device, bases))


def canonical_along(problem: Problem, order: NDArray[Any], placements: NDArray[Any]) -> Ints:
    """Placements [S, N] with interchangeable devices renumbered by first appearance in an order."""
    rows = np.ascontiguousarray(placements, np.int32)
    return canonical(rows, order.astype(np.int32), np.array(problem.interchangeable))
