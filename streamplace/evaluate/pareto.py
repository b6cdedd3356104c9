"""Comparison by several objectives: values of every placer, and the Pareto front."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.charts import MARKERS, PALETTE, finish, legend_text, panels
from streamplace.drawing.figures import GREY
from streamplace.evaluate.results import BestValues, Optima, ResultColumns, ResultsTable
from streamplace.evaluate.rows import heading, mean_of, ratio
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import Objective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Point:
    """Values by all objectives of a placer that optimised one of them."""

    placer: str
    asked: str
    of_best: dict[str, float]  # mean of value / best known value, by objective; 1 is best
    front: bool  # whether no other point is at least as good by all objectives and better by one


Front = dict[float | None, list[Point]]
"""Points by rate."""


def points(results: Mapping[str, ResultsTable], judges: Sequence[Objective]) -> Front:
    """Points by rate, from the results of all objectives."""
    tables = {name: table.table() for name, table in results.items()}
    rates = {rate: None for table in tables.values() for rate in table}
    return {
        rate: _points({n: t.get(rate, {}) for n, t in tables.items()}, judges) for rate in rates
    }


def _points(
    tables: Mapping[str, Mapping[str, ResultColumns]], judges: Sequence[Objective]
) -> list[Point]:
    best = {judge: _best(tables, judge) for judge in judges}
    rows = []
    for asked, table in tables.items():
        for placer, columns in table.items():
            shares = {
                judge.name: mean_of(ratio(_by(columns, judge, asked), optima.at(columns.problem)))
                for judge, optima in best.items()
            }
            if all(np.isfinite(share) for share in shares.values()):
                rows.append((placer, asked, shares))
    sign = {judge.name: 1.0 if judge.sense == "max" else -1.0 for judge in judges}
    goods = np.array([[sign[name] * shares[name] for name in sign] for *_, shares in rows])
    goods = goods.reshape(len(rows), len(judges))
    return [Point(*row, front=not _dominated(goods, i)) for i, row in enumerate(rows)]


def _by(columns: ResultColumns, judge: Objective, asked: str) -> Floats:
    """Values by one objective of placements that were optimised for another, or for the same.

    Measures are named after the objective without its conditions, which all placements meet.
    """
    if judge.name == asked:
        return columns.value
    measure = judge.name if judge.base is None else judge.base.name
    return columns.measures.get(measure, np.full(len(columns.value), np.nan))


def _best(tables: Mapping[str, Mapping[str, ResultColumns]], judge: Objective) -> Optima:
    """Best value of every problem, whichever objective it was optimised for."""
    best = BestValues(judge.sense)
    for asked, table in tables.items():
        for columns in table.values():
            values = _by(columns, judge, asked)
            best.add(columns.problem, values, np.full(len(values), np.nan))
    return best.best()


def _dominated(goods: Floats, i: int) -> bool:
    """Whether another row is nowhere less than row i, and somewhere more."""
    no_worse = (goods >= goods[i]).all(axis=1)
    better = (goods > goods[i]).any(axis=1)
    return bool((no_worse & better).any())


def draw_front(
    points: Mapping[float | None, Sequence[Point]], judges: Sequence[Objective], title: str
) -> "Figure":
    """Draw every point by the first two objectives; a line joins those that are not dominated."""
    x, y = (judge.name for judge in judges[:2])
    figure, axes = panels(map(heading, points))
    placers = list(dict.fromkeys(p.placer for row in points.values() for p in row))
    asked = list(dict.fromkeys(p.asked for row in points.values() for p in row))
    for axis, row in zip(axes, points.values(), strict=True):
        front = sorted((p.of_best[x], p.of_best[y]) for p in row if p.front)
        axis.plot(*zip(*front, strict=True), color=GREY, linewidth=1.2, zorder=1)
        for point in row:
            axis.plot(
                point.of_best[x],
                point.of_best[y],
                MARKERS[asked.index(point.asked) % len(MARKERS)],
                color=PALETTE[placers.index(point.placer) % len(PALETTE)],
                markerfacecolor=None if point.front else "white",
                linestyle="none",
                label=legend_text(f"{point.placer}, asked for {point.asked}"),
            )
        axis.set_xlabel(f"{x} / best known")
        axis.margins(0.08)
        axis.ticklabel_format(useOffset=False)
    axes[0].set_ylabel(f"{y} / best known")
    (rate, *others) = points
    at = "" if others else f", {heading(rate)}"
    return finish(figure, f"Trade-off (filled: not dominated)\n{title}{at}")
