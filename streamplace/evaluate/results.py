"""Tallies: results as columns of numbers, all that tables and plots need of them."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.evaluate.records import Record, numbered
from streamplace.evaluate.verdict import PROVEN
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import Sense

POWERS = 25
"""Searches are looked at after up to 2²⁴ evaluations."""
BLOCK = 2**16
BOUND = ""
"""Column of bounds among those of further numbers, none of which is called like that."""
Problems = NDArray[np.uint64]


class Steps(NamedTuple):
    """Values reached after 1, 2, 4, … evaluations, up to the last that each result tells.

    Attributes
    ----------
    value
        Those of all results, one after the other; NaN before the first.
    told
        How many of them each result has.
    """

    value: Floats
    told: NDArray[np.uint8]

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Results and their values [B, POWERS], the last one repeated, some thousands at a time."""
        begin = 0
        for first in range(0, len(self.told), BLOCK):
            end = begin + np.cumsum(self.told[first : first + BLOCK], dtype=np.int64)
            start = np.concatenate([[begin], end[:-1]])
            at = np.minimum(start[:, None] + np.arange(POWERS), end[:, None] - 1)
            values = np.full(at.shape, nan)
            some = end > start
            values[some] = self.value[at[some]]
            yield slice(first, first + len(end)), values
            begin = int(end[-1])


class Results(NamedTuple):
    """Results of one placer at one rate; a value is NaN where it could not place.

    Problems are told apart by a number made of their content hash.
    """

    problem: Problems
    value: Floats
    bound: Floats
    milliseconds: NDArray[np.float32]
    devices_used: NDArray[np.uint32]
    measures: dict[str, Floats]
    steps: Steps


class ResultsTable:
    """Results by rate and placer for one objective, counted one after the other.

    Parameters
    ----------
    objective
        Results for any other are left out.
    sense
        Whether larger values are better ("max") or smaller ones.

    Examples
    --------
    >>> tally = ResultsTable([Record("ab" * 32, "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))])
    >>> tally.table()[1e4]["metis"].value.tolist()
    [0.8]
    """

    def __init__(
        self,
        records: Iterable[Record] = (),
        *,
        objective: str = "throughput",
        sense: Sense = "max",
    ) -> None:
        self.objective, self.sense = objective, sense
        self._columns: dict[float | None, dict[str, _Columns]] = {}
        self.add(records)

    def add(self, records: Iterable[Record]) -> None:
        """Count further records."""
        for record in records:
            if record.objective != self.objective:
                continue
            by_placer = self._columns.setdefault(record.rate, {})
            by_placer.setdefault(record.placer, _Columns()).add(record)

    def table(self) -> dict[float | None, dict[str, Results]]:
        """Columns by rate and placer, in the order in which they came."""
        return {
            rate: {name: columns.results() for name, columns in by_placer.items()}
            for rate, by_placer in self._columns.items()
        }

    def optima(self) -> "Optima":
        """Proven optima: where the best value of a problem meets its lowest bound."""
        found = Found(self.sense)
        for results in self.every():
            found.add(results.problem, results.value, results.bound)
        return found.optima()

    def best(self) -> "Optima":
        """Best values known, proven or not."""
        found = Found(self.sense)
        for results in self.every():
            found.add(results.problem, results.value, results.bound)
        return found.best()

    def every(self) -> Iterator[Results]:
        """Columns of every placer at every rate."""
        return (c.results() for by_placer in self._columns.values() for c in by_placer.values())


class Optima(NamedTuple):
    """Proven optima of some problems, which are in ascending order."""

    problem: Problems
    value: Floats

    @classmethod
    def of(cls, values: Mapping[str, float]) -> "Optima":
        """Optima by the content hash of the problem."""
        rows = sorted((numbered(name), value) for name, value in values.items())
        return cls(
            np.array([row[0] for row in rows], np.uint64),
            np.array([row[1] for row in rows], np.float64),
        )

    def at(self, problems: Problems) -> Floats:
        """Optimum of each problem, NaN where it is not known."""
        return looked_up(problems, self.problem, self.value)


class Found:
    """Best value and lowest bound of every problem, 24 bytes each, however many results there are.

    Parameters
    ----------
    sense
        Whether larger values are better ("max") or smaller ones.
    """

    def __init__(self, sense: Sense) -> None:
        self._sign = 1.0 if sense == "max" else -1.0
        self._problem = np.empty(0, np.uint64)
        self._best, self._bound = np.empty(0), np.empty(0)

    def add(self, problem: Problems, value: Floats, bound: Floats) -> None:
        """Count further results, NaN where there is no value or no bound."""
        both, at = np.unique(np.concatenate([self._problem, problem]), return_inverse=True)
        best, least = np.full(len(both), -np.inf), np.full(len(both), np.inf)
        np.fmax.at(best, at, np.concatenate([self._best, self._sign * value]))
        np.fmin.at(least, at, np.concatenate([self._bound, self._sign * bound]))
        self._problem, self._best, self._bound = both, best, least

    def best(self) -> Optima:
        """Best values known, proven or not."""
        return Optima(self._problem, self._sign * self._best)

    def optima(self) -> Optima:
        """Proven optima: where the best value meets the lowest bound."""
        best, bound = self._best, self._bound
        proven = np.isfinite(bound)
        proven[proven] = best[proven] >= bound[proven] - PROVEN * np.abs(bound[proven])
        return Optima(self._problem[proven], self._sign * best[proven])


def proven_by(records: Iterable[Record], objective: str, sense: Sense) -> Optima:
    """Optima that records prove, of which only the best of every problem is kept."""
    found = Found(sense)
    asked = (record for record in records if record.objective == objective)
    while block := list(islice(asked, BLOCK)):
        columns = ResultsTable(block, objective=objective, sense=sense)
        for results in columns.every():
            found.add(results.problem, results.value, results.bound)
    return found.optima()


def looked_up(problems: Problems, known: Problems, values: Floats) -> Floats:
    """Value of each problem by a column of known ones, in ascending order; NaN where unknown."""
    if not len(known):
        return np.full(len(problems), nan)
    at = np.minimum(np.searchsorted(known, problems), len(known) - 1)
    return np.where(known[at] == problems, values[at], nan)


class _Columns:
    """Columns that grow: 16 bytes per result, and 8 for each further number that is told."""

    def __init__(self) -> None:
        self.problem, self.value = array("Q"), array("d")
        self.milliseconds, self.devices_used = array("f"), array("I")
        self.sparse: dict[str, array[float]] = {}
        self.reached, self.told = array("d"), array("B")

    def add(self, record: Record) -> None:
        """Count a record."""
        self.problem.append(numbered(record.problem))
        self.value.append(nan if record.value is None else record.value)
        self.milliseconds.append(record.milliseconds)
        self.devices_used.append(record.devices_used)
        steps = _by_power(record.steps)
        self.reached.extend(steps)
        self.told.append(len(steps))
        told = {**record.measures, **({} if record.bound is None else {BOUND: record.bound})}
        for name in told.keys() | self.sparse.keys():
            column = self.sparse.setdefault(name, array("d", [nan]) * (len(self.value) - 1))
            column.append(told.get(name, nan))

    def results(self) -> Results:
        """Columns as arrays; of those that somebody still adds to, copies."""
        columns = {name: np.array(column) for name, column in sorted(self.sparse.items())}
        return Results(
            np.array(self.problem, np.uint64),
            np.array(self.value),
            columns.pop(BOUND, np.full(len(self.value), nan)),
            np.array(self.milliseconds, np.float32),
            np.array(self.devices_used, np.uint32),
            columns,
            Steps(np.array(self.reached), np.array(self.told, np.uint8)),
        )


def _by_power(steps: Sequence[tuple[int, float]]) -> list[float]:
    """Value reached after 2⁰, 2¹, … evaluations, up to the last that is told."""
    row: list[float] = []
    for evaluations, value in steps:
        first = min((evaluations - 1).bit_length(), POWERS - 1)
        row[first:] = [*([row[-1] if row else nan] * (first - len(row))), value]
    return row
