"""Problems as they might be elsewhere: the same graph on a random cluster, so that pilot adapts."""

import numpy as np

from streamplace.model.cluster import Cluster
from streamplace.model.devices import Device
from streamplace.model.problem import Problem

FEWEST, MOST = 2, 5
UNEVEN = 0.5
"""Share of the random clusters whose devices and links differ among themselves."""
SPREAD = 2.0
"""Speeds and bandwidths lie between the usual ones divided and multiplied by this."""


def elsewhere(problem: Problem, rng: np.random.Generator) -> Problem:
    """Put the same graph on a random cluster of two to five devices; constraints are dropped.

    Every device has all tags that operators require.
    """
    usual = problem.cluster.devices
    bandwidth = problem.cluster.bandwidth_bps
    between = bandwidth[~np.eye(len(bandwidth), dtype=bool)]
    n = int(rng.integers(FEWEST, MOST, endpoint=True))
    mips = np.full(n, usual.mips.mean()) * _factors(rng, 1)
    wires = np.full((n, n), between.mean() if len(between) else 1e9) * _factors(rng, 1)
    if rng.random() < UNEVEN:
        mips *= _factors(rng, n)
        wires *= _factors(rng, (n, n))
    cores = int(np.median(usual.cores))
    tags = frozenset().union(*problem.graph.operators.requires)
    devices = [
        Device(f"d{i}", mips=float(speed), cores=cores, tags=tags) for i, speed in enumerate(mips)
    ]
    return Problem(problem.graph, Cluster.of(devices, bandwidth=wires))


def _factors(rng: np.random.Generator, size: int | tuple[int, int]) -> np.ndarray:
    """Factors between 1 / SPREAD and SPREAD, their logarithms uniform."""
    return np.exp(rng.uniform(-np.log(SPREAD), np.log(SPREAD), size))
