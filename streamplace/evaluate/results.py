"""Results of a comparison for one objective: columns, optima, rows of its table, and pairs.

Records become numeric columns, by rate and placer. Optima follow from the best value and the
tightest bound of every problem, rows and pairs from the columns. Several objectives have a front.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.evaluate.paired import TIE, Paired, interval_of_mean, paired
from streamplace.evaluate.records import Record, problem_number
from streamplace.model.arrays import Floats, Longs
from streamplace.model.units import digits
from streamplace.objectives.registry import Objective
from streamplace.placers.result import PROVEN

POWERS = 25
"""Number of columns of search steps; the last one is after 2²⁴ evaluations."""
ProblemNumbers = NDArray[np.uint64]
"""Numbers of problems, computed from their content hashes by `problem_number`."""


class _Result(NamedTuple):
    """Numbers of a record, without the devices of its operators."""

    problem: int
    value: float | None
    bound: float | None
    milliseconds: float
    devices_used: int
    measures: Mapping[str, float]
    steps: Sequence[tuple[int, float]]

    @classmethod
    def of(cls, record: Record) -> "_Result":
        facts = (getattr(record, name) for name in cls._fields[1:])
        return cls(problem_number(record.problem), *facts)


class ResultColumns(NamedTuple):
    """Results of one placer at one rate, a row for each record.

    ``value`` is NaN if the problem could not be placed, ``bound`` if none is proven, and
    ``measures`` if they are unknown.
    """

    problem: ProblemNumbers
    value: Floats
    bound: Floats
    milliseconds: Floats
    devices_used: Longs
    measures: dict[str, Floats]
    # [N, POWERS] values after 1, 2, 4, … evaluations, NaN before the first one; no rows if no
    # result reports its steps.
    steps: Floats


def _columns(results: Sequence[_Result]) -> ResultColumns:
    """Columns of the results of one placer."""
    measures = sorted({name for result in results for name in result.measures})
    has_steps = any(result.steps for result in results)
    steps = [_by_power(result.steps) for result in results if has_steps]
    return ResultColumns(
        problem=np.array([result.problem for result in results], np.uint64),
        value=np.array([result.value for result in results], np.float64),
        bound=np.array([result.bound for result in results], np.float64),
        milliseconds=np.array([result.milliseconds for result in results], np.float64),
        devices_used=np.array([result.devices_used for result in results], np.int64),
        measures={
            name: np.array([result.measures.get(name, nan) for result in results])
            for name in measures
        },
        steps=np.array(steps, np.float64).reshape(-1, POWERS),
    )


def _by_power(steps: Sequence[tuple[int, float]]) -> list[float]:
    """Values after 2⁰, 2¹, … evaluations; the last value is repeated."""
    row: list[float] = []
    for evaluations, value in steps:
        first = min((evaluations - 1).bit_length(), POWERS - 1)
        row[first:] = [*([row[-1] if row else nan] * (first - len(row))), value]
    return row + [row[-1] if row else nan] * (POWERS - len(row))


class Optima(NamedTuple):
    """Best values of some problems, in ascending order of the problems' numbers."""

    problem: ProblemNumbers
    value: Floats

    def at(self, problems: ProblemNumbers) -> Floats:
        """Value of each problem, NaN if unknown."""
        if not len(self.problem):
            return np.full(len(problems), nan)
        at = np.minimum(np.searchsorted(self.problem, problems), len(self.problem) - 1)
        return np.where(self.problem[at] == problems, self.value[at], nan)


def best_values(sign: float, problems: ProblemNumbers, values: Floats) -> Optima:
    """Best value of every problem; ``sign`` is 1 if larger values are better, else -1."""
    numbers, at = np.unique(problems, return_inverse=True)
    best = np.full(len(numbers), -np.inf)
    np.fmax.at(best, at, sign * values)
    return Optima(numbers, sign * best)


@dataclass(frozen=True, slots=True)
class Row:
    """One placer at one rate."""

    mean: float
    # Ends of the 95 % interval of the mean, by a bootstrap over graphs; None for fewer than six.
    interval: tuple[float, float] | None
    q1: float
    median: float
    min: float
    max: float
    # Mean and worst of value / best value of all placers, proven or not.
    of_best: tuple[float, float]
    # Mean of value / optimum over the graphs with a proven optimum; None if there are none.
    share_of_optimum: float | None
    reached: float | None  # share of these graphs on which the placer reaches the optimum
    proven: int  # number of these graphs
    devices_used: dict[int, int]  # number of graphs by number of devices used
    ms_per_graph: float
    graphs: int
    failed: int  # number of graphs that the placer could not place; other numbers ignore them
    measures: dict[str, float]  # means of further numbers by name


Table = dict[float | None, dict[str, Row]]
"""Rows by rate and placer; the rate None stands for the graphs' original rates."""


class ObjectiveResults:
    """Results of a comparison for one objective; records are added before they are read.

    Examples
    --------
    >>> from streamplace.objectives.registry import OBJECTIVES
    >>> row = ("p", "g", 1e4)
    >>> results = ObjectiveResults(OBJECTIVES["throughput"], [
    ...     Record(*row, "metis", "1 s", 0.6, None, 0.1, (0, 1)),
    ...     Record(*row, "exact", "1 s", 0.8, 0.8, 9.0, (1, 1))])
    >>> results.columns[1e4]["metis"].value.tolist(), results.optima.value.tolist()
    ([0.6], [0.8])
    >>> results.table[1e4]["metis"].share_of_optimum
    0.7499999999999999
    """

    def __init__(self, judge: Objective, records: Iterable[Record] = ()) -> None:
        self.judge = judge  # objective with its conditions; records of others are ignored
        self._results: dict[float | None, dict[str, list[_Result]]] = {}
        self._saved: list[_Result] = []
        self.add(records)

    def __repr__(self) -> str:
        placers = dict.fromkeys(name for row in self._results.values() for name in row)
        return f"<ObjectiveResults by {self.judge.name}: {', '.join(placers)}>"

    def add(self, records: Iterable[Record]) -> None:
        """Add records of the comparison."""
        for record in records:
            if record.objective == self.judge.name:
                by_placer = self._results.setdefault(record.rate, {})
                by_placer.setdefault(record.label, []).append(_Result.of(record))

    def add_saved(self, record: Record) -> None:
        """Add a record of an earlier comparison, which may prove an optimum but is in no table."""
        if record.objective == self.judge.name:
            self._saved.append(_Result.of(record))

    @property
    def sign(self) -> float:
        """1 if larger values are better, else -1."""
        return 1.0 if self.judge.sense == "max" else -1.0

    @cached_property
    def columns(self) -> dict[float | None, dict[str, ResultColumns]]:
        """Columns by rate and placer, in order of their first records."""
        return {
            rate: {name: _columns(results) for name, results in by_placer.items()}
            for rate, by_placer in self._results.items()
        }

    @cached_property
    def best(self) -> Optima:
        """Best values of the comparison, proven or not."""
        parts = [columns for by_placer in self.columns.values() for columns in by_placer.values()]
        return best_values(self.sign, *_joined(parts)[:2])

    @cached_property
    def optima(self) -> Optima:
        """Proven optima: the best value meets the tightest bound, or the limit of the objective.

        Saved records count as well. There are none if no record has a bound, as only graphs whose
        best value is the limit would count, and all placers would look good.
        """
        parts = [columns for by_placer in self.columns.values() for columns in by_placer.values()]
        problem, value, bound = _joined([*parts, _columns(self._saved)])
        numbers, best = best_values(self.sign, problem, value)
        # With signs by which larger values are better. The limit bounds the values of any problem.
        limit = np.inf if self.judge.limit is None else self.sign * self.judge.limit
        tightest = np.full(len(numbers), limit)
        np.fmin.at(tightest, np.searchsorted(numbers, problem), self.sign * bound)
        proven = np.isfinite(tightest) & np.isfinite(bound).any()
        reached = tightest[proven] - PROVEN * np.abs(tightest[proven])
        proven[proven] = self.sign * best[proven] >= reached
        return Optima(numbers[proven], best[proven])

    @cached_property
    def table(self) -> Table:
        """Row of every placer at every rate, compared with the best values and proven optima."""
        return {
            rate: {name: self._row(columns) for name, columns in by_placer.items()}
            for rate, by_placer in self.columns.items()
        }

    @cached_property
    def paired(self) -> dict[float | None, dict[str, dict[str, Paired]]]:
        """Comparisons of every placer with every other one, by rate, placer and rival."""
        return {
            rate: {
                name: {
                    other: paired(*_matched(columns, rival), self.sign)
                    for other, rival in by_placer.items()
                    if other != name
                }
                for name, columns in by_placer.items()
            }
            for rate, by_placer in self.columns.items()
        }

    def _row(self, results: ResultColumns) -> Row:
        sign = self.sign
        placed = ~np.isnan(results.value)
        values = results.value[placed] if placed.any() else np.array([nan])
        optimum = self.optima.at(results.problem)
        judged = placed & ~np.isnan(optimum)
        shares = ratio(results.value[judged], optimum[judged])
        of_best = ratio(results.value, self.best.at(results.problem))[placed]
        of_best = of_best if len(of_best) else np.array([nan])
        q1, median = np.quantile(values, (0.25, 0.5))
        used, graphs = np.unique(results.devices_used[placed], return_counts=True)
        milliseconds = results.milliseconds[placed]
        return Row(
            mean=float(values.mean()),
            interval=interval_of_mean(values),
            q1=float(q1),
            median=float(median),
            min=float(values.min()),
            max=float(values.max()),
            of_best=(float(of_best.mean()), float(sign * (sign * of_best).min())),
            share_of_optimum=float(shares.mean()) if len(shares) else None,
            reached=float((sign * (shares - 1) >= -PROVEN).mean()) if len(shares) else None,
            proven=len(shares),
            devices_used=dict(zip(used.tolist(), graphs.tolist(), strict=True)),
            ms_per_graph=float(milliseconds.mean()) if placed.any() else nan,
            graphs=len(placed),
            failed=len(placed) - int(placed.sum()),
            measures={name: mean_of(column) for name, column in results.measures.items()},
        )


def _joined(parts: Sequence[ResultColumns]) -> tuple[ProblemNumbers, Floats, Floats]:
    """Problems, values and bounds of several columns, one after the other."""
    empty = np.empty(0)
    return (
        np.concatenate([part.problem for part in parts] or [empty.astype(np.uint64)]),
        np.concatenate([part.value for part in parts] or [empty]),
        np.concatenate([part.bound for part in parts] or [empty]),
    )


def _last_values(results: ResultColumns) -> Optima:
    """Value of every problem; that of the last row if a graph occurs twice."""
    problem, last = np.unique(results.problem[::-1], return_index=True)
    return Optima(problem, results.value[::-1][last])


def _matched(results: ResultColumns, rival: ResultColumns) -> tuple[Floats, Floats]:
    """Both placers' values on the graphs that both placed, in the order of the problems."""
    problem, values = _last_values(results)
    rival_values = _last_values(rival).at(problem)
    both = ~(np.isnan(values) | np.isnan(rival_values))
    return values[both], rival_values[both]


def heading(rate: float | None) -> str:
    """Title of the table of a rate."""
    return "own rates" if rate is None else f"{digits(rate, 6)} tuples/s"


def mean_of(column: Floats) -> float:
    """Mean of the numbers of a column; NaN if it has none."""
    numbers = column[~np.isnan(column)]
    return float(numbers.mean()) if len(numbers) else nan


def ratio(values: Floats, best: Floats) -> Floats:
    """Values / best values: 1 for equal values, even for 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values == best, 1.0, values / best)


@dataclass(frozen=True, slots=True)
class TradeOff:
    """Values by all objectives of a placer that optimised one of them."""

    placer: str
    objective: str  # objective that it optimised
    of_best: dict[str, float]  # mean of value / best known value, by objective; 1 is best
    # Whether it is on the Pareto front of the points that have placed the most graphs.
    front: bool


TradeOffs = dict[float | None, list[TradeOff]]
"""Points by rate."""


def trade_offs_of(results: Sequence[ObjectiveResults]) -> TradeOffs:
    """Trade-offs between several objectives, and the Pareto front of each rate."""
    rates = dict.fromkeys(rate for result in results for rate in result.columns)
    return {rate: _points(results, rate) for rate in rates}


def _points(results: Sequence[ObjectiveResults], rate: float | None) -> list[TradeOff]:
    placed_by = [(result, result.columns.get(rate, {})) for result in results]
    best = {}
    for target in results:
        parts = [
            (c.problem, _by(c, result, target)) for result, row in placed_by for c in row.values()
        ]
        numbers, values = map(np.concatenate, zip(*parts, strict=True))
        best[target.judge.name] = best_values(target.sign, numbers, values)
    rows, placed = [], []
    for result, by_placer in placed_by:
        for placer, columns in by_placer.items():
            shares = {}
            for target in results:
                optimum = best[target.judge.name].at(columns.problem)
                shares[target.judge.name] = mean_of(ratio(_by(columns, result, target), optimum))
            if all(map(isfinite, shares.values())):
                rows.append((placer, result.judge.name, shares))
                placed.append(int((~np.isnan(columns.value)).sum()))
    goods = np.array([[r.sign * shares[r.judge.name] for r in results] for *_, shares in rows])
    goods = goods.reshape(len(rows), len(results))
    # A placer that failed on graphs has means over other graphs.
    complete = np.array(placed) == max(placed, default=0)
    return [
        TradeOff(*row, front=bool(complete[i]) and not _is_dominated(goods[complete], goods[i]))
        for i, row in enumerate(rows)
    ]


def _by(columns: ResultColumns, result: ObjectiveResults, target: ObjectiveResults) -> Floats:
    """Values by the objective of ``target`` of placements that were optimised for ``result``.

    Measures have the name of the objective without its conditions, which all placements meet.
    """
    if result is target:
        return columns.value
    judge = target.judge
    measure = judge.name if judge.base is None else judge.base.name
    return columns.measures.get(measure, np.full(len(columns.value), nan))


def _is_dominated(goods: Floats, row: Floats) -> bool:
    """Whether any row of ``goods`` is nowhere less than ``row``, and somewhere more."""
    no_worse = (goods >= row - TIE * abs(row)).all(axis=1)
    better = (goods > row + TIE * abs(row)).any(axis=1)
    return bool((no_worse & better).any())
