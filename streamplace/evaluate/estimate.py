"""Estimated cost of work on a data set, from timings of a random sample of its graphs."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress, count
from math import nan
from typing import Any

import numpy as np

from streamplace.io.datasets import DataSet
from streamplace.io.lines import Line

TRIED = 20
LEAST_TRIED = 3
PATIENCE_S = 30.0
"""Time limit for the sample."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected cost of work on a data set."""

    graphs: int
    placements: int
    tried: int  # number of graphs that were timed
    seconds_per_graph: float  # mean time on one core of this machine
    # Cost of the complete data set, in core hours.
    core_hours: float
    standard_error: float


def estimate(work: Callable[[Line], Any], data: DataSet, total: int, each: int) -> Estimate:
    """Time the work on a sample of a data set's graphs, each of which has ``each`` placements."""
    seconds = np.array(list(_times(work, _drawn(data, total))))
    hours = total / 3600
    error = float(seconds.std(ddof=1)) / len(seconds) ** 0.5 if len(seconds) > 1 else nan
    mean = float(seconds.mean())
    return Estimate(total, total * each, len(seconds), mean, hours * mean, hours * error)


def _drawn(data: DataSet, total: int) -> list[Line]:
    """Draw lines in random order, always the same."""
    rng = np.random.default_rng(0)
    chosen = rng.choice(total, min(TRIED, total), replace=False)
    wanted = set(chosen.tolist())
    lines = list(compress(data.lines(), (number in wanted for number in count())))
    return [lines[i] for i in rng.permutation(len(lines))]


def _times(work: Callable[[Line], Any], lines: list[Line]) -> Iterator[float]:
    work(lines[0])  # loads libraries and kernels
    begin = time.perf_counter()
    for tried, line in enumerate(lines, 1):
        start = time.perf_counter()
        work(line)
        yield time.perf_counter() - start
        if tried >= LEAST_TRIED and time.perf_counter() - begin > PATIENCE_S:
            return
