"""What one objective costs by another: every placer's answers by all of them, and the front."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.figures import GREY, new_figure
from streamplace.evaluate.comparison_plots import PALETTE
from streamplace.evaluate.results import Optima, Results, ResultsTable
from streamplace.evaluate.rows import heading, ratio
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import Objective, Sense

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "os^Dv<>P"


@dataclass(frozen=True, slots=True)
class Point:
    """What a placer that was asked for one objective reaches by all of them.

    Attributes
    ----------
    of_best
        Mean of value / best value known, by objective; 1 is the best there is.
    front
        Whether no other point is at least as good by all objectives and better by one.
    """

    placer: str
    asked: str
    of_best: dict[str, float]
    front: bool


def points(
    tallies: Mapping[str, ResultsTable], judges: Sequence[Objective]
) -> dict[float | None, list[Point]]:
    """Points by rate, from the tallies of contests for each of the objectives."""
    tables = {name: tally.table() for name, tally in tallies.items()}
    rates = {rate: None for table in tables.values() for rate in table}
    return {
        rate: _points({n: t.get(rate, {}) for n, t in tables.items()}, judges) for rate in rates
    }


def _points(
    tables: Mapping[str, Mapping[str, Results]], judges: Sequence[Objective]
) -> list[Point]:
    best = {judge.name: _best(tables, judge) for judge in judges}
    found = []
    for asked, table in tables.items():
        for placer, results in table.items():
            reached = {
                name: _mean(ratio(_by(results, name, asked), known.at(results.problem)))
                for name, known in best.items()
            }
            if all(np.isfinite(value) for value in reached.values()):
                found.append((placer, asked, reached))
    senses: dict[str, Sense] = {judge.name: judge.sense for judge in judges}
    goods = np.array([_goods(reached, senses) for *_, reached in found]).reshape(len(found), -1)
    return [Point(*one, front=not _dominated(goods, i)) for i, one in enumerate(found)]


def _by(results: Results, objective: str, asked: str) -> Floats:
    """Values by an objective of answers that were asked for another, or for the same."""
    if objective == asked:
        return results.value
    return results.measures.get(objective, np.full(len(results.value), np.nan))


def _best(tables: Mapping[str, Mapping[str, Results]], judge: Objective) -> Optima:
    """Best value known of every problem, whatever it was asked for."""
    sign = 1.0 if judge.sense == "max" else -1.0
    every = [(r, asked) for asked, table in tables.items() for r in table.values()]
    numbers = np.concatenate([r.problem for r, _ in every])
    values = sign * np.concatenate([_by(r, judge.name, asked) for r, asked in every])
    problem, at = np.unique(numbers, return_inverse=True)
    best = np.full(len(problem), -np.inf)
    np.fmax.at(best, at, values)
    return Optima(problem, sign * best)


def _mean(column: Floats) -> float:
    known = column[~np.isnan(column)]
    return float(known.mean()) if len(known) else np.nan


def _goods(reached: Mapping[str, float], senses: Mapping[str, Sense]) -> list[float]:
    """Reached values, turned so that more is better."""
    return [value if senses[name] == "max" else -value for name, value in reached.items()]


def _dominated(goods: Floats, i: int) -> bool:
    no_worse = (goods >= goods[i]).all(axis=1)
    better = (goods > goods[i]).any(axis=1)
    return bool((no_worse & better).any())


def draw_front(
    found: Mapping[float | None, Sequence[Point]], judges: Sequence[Objective]
) -> "Figure":
    """Every point by the first two objectives; a line joins those that nobody dominates."""
    x, y = (judge.name for judge in judges[:2])
    figure, axes = new_figure(len(found), width=5.2, height=4.0)
    placers = list(dict.fromkeys(p.placer for row in found.values() for p in row))
    asked = list(dict.fromkeys(p.asked for row in found.values() for p in row))
    for axis, (rate, row) in zip(axes, found.items(), strict=True):
        front = sorted((p.of_best[x], p.of_best[y]) for p in row if p.front)
        axis.plot(*zip(*front, strict=True), color=GREY, linewidth=1.2, zorder=1)
        for point in row:
            axis.plot(
                point.of_best[x],
                point.of_best[y],
                MARKERS[asked.index(point.asked) % len(MARKERS)],
                color=PALETTE[placers.index(point.placer) % len(PALETTE)],
                markerfacecolor=None if point.front else "white",
                label=f"{point.placer}, asked for {point.asked}",
            )
        axis.set(xlabel=f"{x} / best known", ylabel=f"{y} / best known")
        axis.margins(0.08)
        axis.set_title(heading(rate), fontsize=10)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        fontsize=7,
        frameon=False,
        loc="outside lower center",
        ncols=2,
    )
    return figure
