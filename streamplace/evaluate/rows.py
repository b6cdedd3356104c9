"""Rows of a comparison's table: statistics of each placer, and its distance to the optimum."""

from dataclasses import dataclass
from math import nan

import numpy as np

from streamplace.evaluate.paired import compared
from streamplace.evaluate.results import Optima, ResultColumns, ResultsTable, look_up
from streamplace.model.arrays import Floats
from streamplace.model.units import digits
from streamplace.placers.result import PROVEN


@dataclass(frozen=True, slots=True)
class Row:
    """One placer at one rate."""

    mean: float
    q1: float
    median: float
    min: float
    max: float
    # Mean and worst of value / best value of all placers, proven or not.
    of_best: tuple[float, float]
    # Shares of the graphs on which the placer is better than, equal to or worse than each other
    # placer, by the name of the other.
    better_than: dict[str, float]
    equal_to: dict[str, float]
    worse_than: dict[str, float]
    # Mean of value / optimum over the graphs with a proven optimum; None if there are none.
    share_of_optimum: float | None
    reached: float | None  # share of those graphs on which the placer reaches the optimum
    proven: int  # number of those graphs
    devices_used: dict[int, int]  # number of graphs by number of devices used
    ms_per_graph: float
    graphs: int
    failed: int  # number of graphs that the placer could not place; other numbers ignore them
    measures: dict[str, float]  # means of further numbers by name


Table = dict[float | None, dict[str, Row]]
"""Rows by rate and placer; the rate None stands for the graphs' own rates."""


def heading(rate: float | None) -> str:
    """Title of the table of a rate."""
    return "own rates" if rate is None else f"{digits(rate, 6)} tuples/s"


def rows_by_rate(results: ResultsTable, optima: Optima) -> Table:
    """Row of every placer at every rate, compared with all others and with proven optima."""
    best = results.best()
    sign = 1.0 if results.sense == "max" else -1.0
    return {
        rate: {name: _row(columns, table, optima, best, sign) for name, columns in table.items()}
        for rate, table in results.table().items()
    }


def _row(
    results: ResultColumns,
    rivals: dict[str, ResultColumns],
    optima: Optima,
    best: Optima,
    sign: float,
) -> Row:
    """Row of one placer; ``sign`` is 1 if larger values are better, else -1."""
    placed = ~np.isnan(results.value)
    values = results.value[placed] if placed.any() else np.array([nan])
    optimum = optima.at(results.problem)
    judged = placed & ~np.isnan(optimum)
    shares = ratio(results.value[judged], optimum[judged])
    of_best = ratio(results.value, best.at(results.problem))[placed]
    of_best = of_best if len(of_best) else np.array([nan])
    signs = {name: _signs(results, rival, sign) for name, rival in rivals.items()}
    q1, median = np.quantile(values, (0.25, 0.5))
    used, graphs = np.unique(results.devices_used[placed], return_counts=True)
    return Row(
        mean=float(values.mean()),
        q1=float(q1),
        median=float(median),
        min=float(values.min()),
        max=float(values.max()),
        of_best=(float(of_best.mean()), float(sign * (sign * of_best).min())),
        better_than={name: sign[1] for name, sign in signs.items()},
        equal_to={name: sign[0] for name, sign in signs.items()},
        worse_than={name: sign[-1] for name, sign in signs.items()},
        share_of_optimum=float(shares.mean()) if len(shares) else None,
        reached=float((sign * (shares - 1) >= -PROVEN).mean()) if len(shares) else None,
        proven=len(shares),
        devices_used=dict(zip(used.tolist(), graphs.tolist(), strict=True)),
        ms_per_graph=float(results.milliseconds[placed].mean(dtype=np.float64))
        if placed.any()
        else nan,
        graphs=len(placed),
        failed=len(placed) - int(placed.sum()),
        measures={name: mean_of(column) for name, column in results.measures.items()},
    )


def mean_of(column: Floats) -> float:
    """Mean of the numbers of a column; NaN if it has none."""
    numbers = column[~np.isnan(column)]
    return float(numbers.mean()) if len(numbers) else nan


def ratio(values: Floats, best: Floats) -> Floats:
    """Values relative to the best ones: 1 for equal values, even for a best of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values == best, 1.0, values / best)


def _signs(results: ResultColumns, rival: ResultColumns, sign: float) -> dict[int, float]:
    """Share of graphs on which the value is better (1) than the rival's, equal (0), worse (-1)."""
    problem, last = np.unique(rival.problem[::-1], return_index=True)
    theirs = look_up(results.problem, problem, rival.value[::-1][last])
    both = ~(np.isnan(results.value) | np.isnan(theirs))
    signs = compared(results.value[both], theirs[both], sign)
    return {way: float((signs == way).sum()) / max(1, len(signs)) for way in (-1, 0, 1)}
