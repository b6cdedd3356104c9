"""Tallies: results as columns of numbers, all that tables and plots need of them."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.evaluate.records import Record, numbered
from streamplace.evaluate.verdict import PROVEN
from streamplace.model.columns import Floats
from streamplace.objectives.registry import Sense

POWERS = 25
"""Searches are looked at after up to 2²⁴ evaluations."""
Problems = NDArray[np.uint64]


class Results(NamedTuple):
    """Results of one placer at one rate; a value is NaN where it could not place.

    Problems are told apart by a number made of their content hash. ``steps`` [R, POWERS] holds the
    value reached after 1, 2, 4, … evaluations, NaN before the first and where nothing is told.
    """

    problem: Problems
    value: Floats
    bound: Floats
    milliseconds: Floats
    devices_used: NDArray[np.uint32]
    measures: dict[str, Floats]
    steps: Floats


class Tally:
    """Results by rate and placer for one objective, counted one after the other.

    Parameters
    ----------
    objective
        Results for any other are left out.
    sense
        Whether larger values are better ("max") or smaller ones.

    Examples
    --------
    >>> tally = Tally([Record("ab" * 32, "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))])
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
        found = [r for by_placer in self.table().values() for r in by_placer.values()]
        if not found:
            return Optima.of({})
        problem, at = np.unique(np.concatenate([r.problem for r in found]), return_inverse=True)
        sign = 1.0 if self.sense == "max" else -1.0
        best, bound = np.full(len(problem), -np.inf), np.full(len(problem), np.inf)
        np.fmax.at(best, at, sign * np.concatenate([r.value for r in found]))
        np.fmin.at(bound, at, sign * np.concatenate([r.bound for r in found]))
        proven = np.isfinite(bound)
        proven[proven] = best[proven] >= bound[proven] - PROVEN * np.abs(bound[proven])
        return Optima(problem[proven], sign * best[proven])

    def best(self) -> "Optima":
        """Best values known, proven or not."""
        found = [r for by_placer in self.table().values() for r in by_placer.values()]
        if not found:
            return Optima.of({})
        problem, at = np.unique(np.concatenate([r.problem for r in found]), return_inverse=True)
        sign = 1.0 if self.sense == "max" else -1.0
        best = np.full(len(problem), -np.inf)
        np.fmax.at(best, at, sign * np.concatenate([r.value for r in found]))
        return Optima(problem, sign * best)


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


def looked_up(problems: Problems, known: Problems, values: Floats) -> Floats:
    """Value of each problem by a column of known ones, in ascending order; NaN where unknown."""
    if not len(known):
        return np.full(len(problems), nan)
    at = np.minimum(np.searchsorted(known, problems), len(known) - 1)
    return np.where(known[at] == problems, values[at], nan)


@dataclass(frozen=True, slots=True)
class _Columns:
    problem: "array[int]" = field(default_factory=lambda: array("Q"))
    value: "array[float]" = field(default_factory=lambda: array("d"))
    bound: "array[float]" = field(default_factory=lambda: array("d"))
    milliseconds: "array[float]" = field(default_factory=lambda: array("d"))
    devices_used: "array[int]" = field(default_factory=lambda: array("I"))
    measures: "dict[str, array[float]]" = field(default_factory=dict)
    steps: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, record: Record) -> None:
        self.problem.append(numbered(record.problem))
        self.value.append(nan if record.value is None else record.value)
        self.bound.append(nan if record.bound is None else record.bound)
        self.milliseconds.append(record.milliseconds)
        self.devices_used.append(record.devices_used)
        self.steps.extend(_by_power(record.steps))
        for name in record.measures.keys() | self.measures.keys():
            column = self.measures.setdefault(name, array("d", [nan] * (len(self.value) - 1)))
            column.append(record.measures.get(name, nan))

    def results(self) -> Results:
        return Results(
            np.array(self.problem, np.uint64),
            np.array(self.value),
            np.array(self.bound),
            np.array(self.milliseconds),
            np.array(self.devices_used, np.uint32),
            {name: np.array(column) for name, column in sorted(self.measures.items())},
            np.array(self.steps).reshape(-1, POWERS),
        )


def _by_power(steps: Sequence[tuple[int, float]]) -> list[float]:
    """Value reached after 2⁰, 2¹, … evaluations; the last one stays."""
    row = [nan] * POWERS
    for evaluations, value in steps:
        first = min((evaluations - 1).bit_length(), POWERS - 1)
        row[first:] = [value] * (POWERS - first)
    return row
