"""Best value and lowest bound of every problem, which determine proven optima."""

from array import array
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.evaluate.records import Record, key_number
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import Sense
from streamplace.placers.result import PROVEN

BLOCK = 2**16
"""Number of records that are collected before they are merged."""
ProblemNumbers = NDArray[np.uint64]
"""Numbers of problems, computed from their content hashes by `key_number`."""


class Optima(NamedTuple):
    """Proven optima of some problems, in ascending order of their numbers."""

    problem: ProblemNumbers
    value: Floats

    def at(self, problems: ProblemNumbers) -> Floats:
        """Optimum of each problem, NaN if unknown."""
        return look_up(problems, self.problem, self.value)


class BestValues:
    """Best value and lowest bound of every problem: 24 bytes each, for any number of results.

    Examples
    --------
    >>> best = BestValues("min")
    >>> best.add_record(Record("p", "g", None, "heft", "1 s", 9.0, None, 0.1, (0, 1)))
    >>> best.add_record(Record("p", "g", None, "exact", "1 s", 7.0, 7.0, 0.1, (1, 1)))
    >>> best.best().value.tolist(), best.optima().value.tolist()
    ([7.0], [7.0])
    """

    def __init__(self, sense: Sense) -> None:
        self._sign = 1.0 if sense == "max" else -1.0
        self._problem = np.empty(0, np.uint64)
        self._best, self._bound = np.empty(0), np.empty(0)
        self._waiting = _Block()

    def add_record(self, record: Record) -> None:
        """Add a record."""
        self._waiting.add(record)
        if len(self._waiting.problem) == BLOCK:
            self._merge_waiting()

    def add(self, problem: ProblemNumbers, value: Floats, bound: Floats) -> None:
        """Add results, NaN where there is no value or no bound."""
        both, at = np.unique(np.concatenate([self._problem, problem]), return_inverse=True)
        best, least = np.full(len(both), -np.inf), np.full(len(both), np.inf)
        np.fmax.at(best, at, np.concatenate([self._best, self._sign * value]))
        np.fmin.at(least, at, np.concatenate([self._bound, self._sign * bound]))
        self._problem, self._best, self._bound = both, best, least

    def best(self) -> Optima:
        """Best values, proven or not."""
        self._merge_waiting()
        return Optima(self._problem, self._sign * self._best)

    def optima(self) -> Optima:
        """Optima that are proven, as the best value meets the lowest bound."""
        self._merge_waiting()
        best, bound = self._best, self._bound
        proven = np.isfinite(bound)
        proven[proven] = best[proven] >= bound[proven] - PROVEN * np.abs(bound[proven])
        return Optima(self._problem[proven], self._sign * best[proven])

    def _merge_waiting(self) -> None:
        waiting, self._waiting = self._waiting, _Block()
        if waiting.problem:
            self.add(
                np.array(waiting.problem, np.uint64),
                np.array(waiting.value),
                np.array(waiting.bound),
            )


class _Block:
    """Columns of records before they are merged."""

    def __init__(self) -> None:
        self.problem, self.value, self.bound = array("Q"), array("d"), array("d")

    def add(self, record: Record) -> None:
        self.problem.append(key_number(record.problem))
        self.value.append(nan if record.value is None else record.value)
        self.bound.append(nan if record.bound is None else record.bound)


def look_up(problems: ProblemNumbers, listed: ProblemNumbers, values: Floats) -> Floats:
    """Look problems up in a sorted column; NaN for those that are not in it."""
    if not len(listed):
        return np.full(len(problems), nan)
    at = np.minimum(np.searchsorted(listed, problems), len(listed) - 1)
    return np.where(listed[at] == problems, values[at], nan)
