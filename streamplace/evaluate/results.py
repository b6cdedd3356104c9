"""Results of a comparison as numeric columns, for tables and plots, and proven optima.

Optima follow from the best value and the tightest bound of every problem.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.evaluate.records import Record, key_number
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import DEFAULT, Sense
from streamplace.placers.result import PROVEN

POWERS = 25
"""Number of columns of search steps; the last one is after 2²⁴ evaluations."""
BLOCK = 2**16
BOUND = ""
"""Name of the column of bounds among the measures; no measure has this name."""
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
    """Best value and tightest bound of every problem: 24 bytes for every result.

    ``limit`` is the best value in any problem: what reaches it is optimal without another proof.

    Examples
    --------
    >>> best = BestValues("min")
    >>> best.add_record(Record("p", "g", None, "heft", "1 s", 9.0, None, 0.1, (0, 1)))
    >>> best.add_record(Record("p", "g", None, "exact", "1 s", 7.0, 7.0, 0.1, (1, 1)))
    >>> best.best().value.tolist(), best.optima().value.tolist()
    ([7.0], [7.0])
    """

    def __init__(self, sense: Sense, limit: float | None = None) -> None:
        self._sign = 1.0 if sense == "max" else -1.0
        self._limit = np.inf if limit is None else self._sign * limit
        self._problem, self._value, self._bound = array("Q"), array("d"), array("d")

    def add_record(self, record: Record) -> None:
        """Add a record."""
        self._problem.append(key_number(record.problem))
        self._value.append(nan if record.value is None else record.value)
        self._bound.append(nan if record.bound is None else record.bound)

    def add(self, problem: ProblemNumbers, value: Floats, bound: Floats) -> None:
        """Add results, NaN where there is no value or no bound."""
        self._problem.frombytes(problem.tobytes())
        self._value.frombytes(value.tobytes())
        self._bound.frombytes(bound.tobytes())

    def best(self) -> Optima:
        """Best values, proven or not."""
        problem, best, _ = self._by_problem()
        return Optima(problem, self._sign * best)

    def optima(self) -> Optima:
        """Optima that are proven, as the best value meets the tightest bound."""
        problem, best, bound = self._by_problem()
        proven = np.isfinite(bound)
        proven[proven] = best[proven] >= bound[proven] - PROVEN * np.abs(bound[proven])
        return Optima(problem[proven], self._sign * best[proven])

    def _by_problem(self) -> tuple[ProblemNumbers, Floats, Floats]:
        """Problems in ascending order, with their best values and bounds as if more is better."""
        problem, at = np.unique(np.array(self._problem, np.uint64), return_inverse=True)
        best, bound = np.full(len(problem), -np.inf), np.full(len(problem), self._limit)
        np.fmax.at(best, at, self._sign * np.array(self._value))
        np.fmin.at(bound, at, self._sign * np.array(self._bound))
        return problem, best, bound


def look_up(problems: ProblemNumbers, listed: ProblemNumbers, values: Floats) -> Floats:
    """Look problems up in a sorted column; NaN for those that are not in it."""
    if not len(listed):
        return np.full(len(problems), nan)
    at = np.minimum(np.searchsorted(listed, problems), len(listed) - 1)
    return np.where(listed[at] == problems, values[at], nan)


class SearchSteps(NamedTuple):
    """Values after 1, 2, 4, … evaluations, up to the last one that each result reports."""

    value: Floats  # values of all results, one after the other; NaN before the first
    n_steps: NDArray[np.uint8]  # number of values of each result

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Results and their values [B, POWERS], padded with the last value, in blocks."""
        begin = 0
        for first in range(0, len(self.n_steps), BLOCK):
            end = begin + np.cumsum(self.n_steps[first : first + BLOCK], dtype=np.int64)
            start = np.concatenate([[begin], end[:-1]])
            at = np.minimum(start[:, None] + np.arange(POWERS), end[:, None] - 1)
            values = np.full(at.shape, nan)
            some = end > start
            values[some] = self.value[at[some]]
            yield slice(first, first + len(end)), values
            begin = int(end[-1])


class ResultColumns(NamedTuple):
    """Results of one placer at one rate; a value is NaN if it could not place the problem.

    Problems are numbered by their content hashes.
    """

    problem: ProblemNumbers
    value: Floats
    bound: Floats
    milliseconds: NDArray[np.float32]
    devices_used: NDArray[np.uint32]
    measures: dict[str, Floats]
    steps: SearchSteps


class ResultsTable:
    """Results by rate and placer for one objective, which grow by records.

    Records of other objectives are ignored.

    Examples
    --------
    >>> record = Record("ab" * 32, "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))
    >>> results = ResultsTable([record])
    >>> results.table()[1e4]["metis"].value.tolist()
    [0.8]
    """

    def __init__(
        self, records: Iterable[Record] = (), *, objective: str = DEFAULT, sense: Sense = "max"
    ) -> None:
        self.objective, self.sense = objective, sense
        self._columns: dict[float | None, dict[str, _Columns]] = {}
        self.add(records)

    def __repr__(self) -> str:
        placers = dict.fromkeys(name for row in self._columns.values() for name in row)
        return f"<ResultsTable by {self.objective}: {', '.join(placers)}>"

    def add(self, records: Iterable[Record]) -> None:
        """Add further records."""
        for record in records:
            if record.objective != self.objective:
                continue
            by_placer = self._columns.setdefault(record.rate, {})
            by_placer.setdefault(record.label, _Columns()).add(record)

    def table(self) -> dict[float | None, dict[str, ResultColumns]]:
        """Columns by rate and placer, in order of their first records."""
        return {
            rate: {name: columns.results() for name, columns in by_placer.items()}
            for rate, by_placer in self._columns.items()
        }

    def optima(self) -> "Optima":
        """Proven optima, for which the best value meets the lowest bound."""
        return self._best_values().optima()

    def best(self) -> "Optima":
        """Best known values, proven or not."""
        return self._best_values().best()

    def _best_values(self) -> BestValues:
        best = BestValues(self.sense)
        for results in self.every():
            best.add(results.problem, results.value, results.bound)
        return best

    def every(self) -> Iterator[ResultColumns]:
        """Columns of every placer at every rate."""
        return (c.results() for by_placer in self._columns.values() for c in by_placer.values())


class _Columns:
    """Columns that grow: 16 bytes per result, and 8 per further number."""

    def __init__(self) -> None:
        self.problem, self.value = array("Q"), array("d")
        self.milliseconds, self.devices_used = array("f"), array("I")
        self.sparse: dict[str, array[float]] = {}
        self.reached, self.n_steps = array("d"), array("B")

    def add(self, record: Record) -> None:
        """Add a record."""
        self.problem.append(key_number(record.problem))
        self.value.append(nan if record.value is None else record.value)
        self.milliseconds.append(record.milliseconds)
        self.devices_used.append(record.devices_used)
        steps = _by_power(record.steps)
        self.reached.extend(steps)
        self.n_steps.append(len(steps))
        numbers = {**record.measures, **({} if record.bound is None else {BOUND: record.bound})}
        for name in numbers.keys() | self.sparse.keys():
            column = self.sparse.setdefault(name, array("d", [nan]) * (len(self.value) - 1))
            column.append(numbers.get(name, nan))

    def results(self) -> ResultColumns:
        """Columns as arrays, which later records do not change."""
        columns = {name: np.array(column) for name, column in sorted(self.sparse.items())}
        return ResultColumns(
            np.array(self.problem, np.uint64),
            np.array(self.value),
            columns.pop(BOUND, np.full(len(self.value), nan)),
            np.array(self.milliseconds, np.float32),
            np.array(self.devices_used, np.uint32),
            columns,
            SearchSteps(np.array(self.reached), np.array(self.n_steps, np.uint8)),
        )


def _by_power(steps: Sequence[tuple[int, float]]) -> list[float]:
    """Values after 2⁰, 2¹, … evaluations, up to the last one that is reported."""
    row: list[float] = []
    for evaluations, value in steps:
        first = min((evaluations - 1).bit_length(), POWERS - 1)
        row[first:] = [*([row[-1] if row else nan] * (first - len(row))), value]
    return row
