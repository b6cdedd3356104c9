"""Plots of a comparison: distribution, search steps, devices used, optima and times."""

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.drawing.charts import (
    LEGEND,
    bar_style,
    finish,
    legend_text,
    line_style,
    panels,
    point_style,
    wrapped,
)
from streamplace.drawing.figures import GREY, new_figure
from streamplace.evaluate.objective_results import ObjectiveResults
from streamplace.evaluate.results import POWERS, Optima, ResultColumns, ResultsTable
from streamplace.evaluate.rows import Row, Table, heading, ratio
from streamplace.model.arrays import Floats
from streamplace.model.messages import counted
from streamplace.objectives.registry import Objective

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOLLOW: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.8, "markersize": 8}
"""Style of points that may overlap."""
LEAST_RANGE = 0.05
"""Shortest axis of shares of the best, or of multiples; smaller differences look small."""
LEAST_POINTS = 3
"""Fewest graphs with a proven optimum for a scatter plot."""
MANY = 200
"""Number of points above which marks are small."""
OptimumPoints = dict[float | None, dict[str, tuple[Floats, Floats]]]
"""Optima and values by rate and placer."""


def draw_cdf(results: ResultsTable, judge: Objective, title: str) -> "Figure":
    """Draw the paper's Figure 5: share of graphs below each value, per rate.

    Values other than shares are drawn as multiples of the best value of any placer.
    """
    rates = _by_rate(results)
    figure, axes = panels(map(heading, rates))
    best = results.best()
    for axis, by_placer in zip(axes, rates.values(), strict=True):
        columns_of = {name: _shown(columns, judge, best) for name, columns in by_placer.items()}
        first, last = _span([*columns_of.values()], judge)
        for i, (name, values) in enumerate(columns_of.items()):
            if not len(values):
                continue
            shares = np.arange(1, len(values) + 1) / len(values)
            axis.plot(
                [first, *values, last],
                [0, *shares, 1],
                drawstyle="steps-post",
                label=legend_text(name),
                **line_style(i),
            )
        axis.set(xlabel=_axis(judge), xlim=(first, last), ylim=(0, 1.02))
    axes[0].set_ylabel("share of graphs")
    return finish(figure, _title(title, "Graphs with at most a value", list(rates)))


def _shown(columns: ResultColumns, judge: Objective, best: Optima) -> Floats:
    """Values in ascending order; multiples of the best ones unless they are shares."""
    values = ratio(columns.value, best.at(columns.problem)) if not judge.is_share else columns.value
    return np.sort(values[np.isfinite(values)])


def _span(columns: list[Floats], judge: Objective) -> tuple[float, float]:
    """Ends of an axis that contains all values and 1, with a margin."""
    every = np.concatenate([*columns, [1.0]])
    low, high = float(every.min()), float(every.max())
    low, high = min(low, 1.0 - LEAST_RANGE), max(high, 1.0)
    if judge.sense == "min":
        low, high = 1.0, max(high, 1.0 + LEAST_RANGE)
    margin = 0.04 * (high - low)
    return low - margin, high + margin


def draw_steps(results: ResultsTable, judge: Objective, title: str) -> "Figure | None":
    """Mean value after 1, 2, 4, … evaluations, as a multiple of the best value of any placer.

    A placer's line begins where it has placed all problems. None if no placer reports its steps.
    """
    rates, best = _by_rate(results), results.best()
    lines = {
        rate: {name: _mean_steps(columns, best) for name, columns in by_placer.items()}
        for rate, by_placer in rates.items()
    }
    if not any(np.isfinite(line).any() for row in lines.values() for line in row.values()):
        return None
    figure, axes = panels(map(heading, rates))
    for axis, row in zip(axes, lines.values(), strict=True):
        for i, (name, line) in enumerate(row.items()):
            finite = np.isfinite(line)
            if not finite.any():
                continue
            marker = "o" if finite.sum() == 1 else ""
            at = 2.0 ** np.flatnonzero(finite)
            label = legend_text(name)
            axis.plot(at, line[finite], marker=marker, markersize=4, label=label, **line_style(i))
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set(
            xlabel="evaluations",
            ylim=_span([line[np.isfinite(line)] for line in row.values()], judge),
        )
    axes[0].set_ylabel(f"{judge.quantity} / best found")
    return finish(figure, _title(title, "Mean value by evaluations", list(rates)))


def _mean_steps(columns: ResultColumns, best: Optima) -> Floats:
    """Mean over the problems of value / best, by power of two; NaN until all are placed."""
    best_values, placed = best.at(columns.problem), ~np.isnan(columns.value)
    sums, count = np.zeros(POWERS), np.zeros(POWERS, np.int64)
    for rows, values in columns.steps.blocks():
        shares = ratio(values[placed[rows]], best_values[rows][placed[rows], None])
        finite = np.isfinite(shares)
        sums += np.where(finite, shares, 0.0).sum(axis=0)
        count += finite.sum(axis=0)
    whole = (count == placed.sum()) & bool(placed.any())
    line: Floats = np.where(whole, sums / max(1, int(placed.sum())), np.nan)
    ends = np.flatnonzero(line[1:] != line[:-1])
    line[(int(ends[-1]) + 2 if len(ends) else 1) :] = np.nan
    return line


def draw_devices(table: Table, title: str) -> "Figure":
    """Draw the paper's Figure 6: number of graphs by placer and number of devices."""
    figure, axes = panels(map(heading, table))
    for axis, by_placer in zip(axes, table.values(), strict=True):
        counts = sorted({k for s in by_placer.values() for k in s.devices_used})
        width = 0.8 / len(by_placer)
        for i, (name, row) in enumerate(by_placer.items()):
            at = np.arange(len(counts)) - 0.4 + (i + 0.5) * width
            heights = [row.devices_used.get(k, 0) for k in counts]
            axis.bar(at, heights, width * 0.92, label=legend_text(name), **bar_style(i))
        axis.set_xticks(range(len(counts)), [str(k) for k in counts])
        axis.set_xlabel("devices used")
        axis.locator_params("y", integer=True)
    axes[0].set_ylabel("graphs")
    return finish(figure, _title(title, "Devices used", list(table)))


def draw_scatter(
    results: ResultsTable, best: Optima, judge: Objective, title: str
) -> "Figure | None":
    """Every graph's value against its proven optimum, one panel per placer.

    None if fewer than three optima are proven.
    """
    points = _points(results, best)
    names = list(dict.fromkeys(name for by_name in points.values() for name in by_name))
    count = max((len(x) for by_name in points.values() for x, _ in by_name.values()), default=0)
    if count < LEAST_POINTS:
        return None
    n_columns = -(-len(names) // -(-len(names) // 4))
    figure, axes = new_figure(n_columns, rows=-(-len(names) // n_columns), width=2.9, height=2.7)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    limits = _limits(points)
    for number, (axis, name) in enumerate(zip(axes, names, strict=False)):
        axis.axline((limits[0], limits[0]), slope=1, color=GREY, linewidth=0.8)
        for i, (rate, by_name) in enumerate(points.items()):
            style = point_style(i) | {"alpha": 0.6, "markeredgewidth": 0}
            label = heading(rate) if len(points) > 1 else None
            size = 3 if count > MANY else 6
            axis.plot(*by_name.get(name, ((), ())), markersize=size, label=label, **style)
        axis.set(xlim=limits, ylim=limits)
        axis.set_title(wrapped(legend_text(name), 26), fontsize=LEGEND + 0.5)
        if number >= len(names) - n_columns:
            axis.set_xlabel("optimum")
    unit = f"{judge.name} ({judge.unit})" if judge.unit else judge.name
    unit = f"relative {judge.name}" if judge.is_share else unit
    for axis in axes[::n_columns]:
        axis.set_ylabel(unit)
    return finish(figure, _title(title, "Value against the proven optimum", list(points)))


def _limits(points: OptimumPoints) -> tuple[float, float]:
    """Ends of both axes of all panels, with a margin."""
    every = [column for by_name in points.values() for pair in by_name.values() for column in pair]
    whole = np.concatenate(every)
    margin = 0.05 * (float(np.ptp(whole)) or 0.1 * abs(float(whole[0])) or 1.0)
    return float(whole.min()) - margin, float(whole.max()) + margin


def _points(results: ResultsTable, best: Optima) -> OptimumPoints:
    """Optima and values by rate and placer, where both are known."""
    points: OptimumPoints = {}
    for rate, by_placer in _by_rate(results).items():
        for name, columns in by_placer.items():
            optimum = best.at(columns.problem)
            both = np.isfinite(optimum) & np.isfinite(columns.value)
            if both.any():
                points.setdefault(rate, {})[name] = optimum[both], columns.value[both]
    return points


def draw_tradeoff(table: Table, judge: Objective, title: str) -> "Figure | None":
    """Mean share of the optimum against milliseconds per graph; None without proven optima.

    Placers are omitted if their share is infinite, because an optimum is 0.
    """
    rows = [row for by_placer in table.values() for row in by_placer.values()]
    shares = [row.share_of_optimum or 0.0 for row in rows if _has_share(row)]
    if not shares:
        return None
    figure, axes = panels(map(heading, table))
    limits = _span([np.array(shares)], judge)
    for axis, by_placer in zip(axes, table.values(), strict=True):
        axis.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
        for i, (name, row) in enumerate(by_placer.items()):
            if _has_share(row):
                at = (max(row.ms_per_graph, 1e-3), row.share_of_optimum or 0.0)
                axis.plot(*at, label=legend_text(name), **point_style(i) | HOLLOW)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.margins(x=0.15)
        proven = max(row.proven for row in by_placer.values())
        graphs = counted(max(row.graphs for row in by_placer.values()), "graph")
        axis.set(
            xlabel=f"milliseconds per graph\noptimum proven for {proven} of {graphs}", ylim=limits
        )
    axes[0].set_ylabel("mean value / optimum")
    return finish(figure, _title(title, "Quality against time", list(table)))


def _has_share(row: Row) -> bool:
    return row.share_of_optimum is not None and isfinite(row.share_of_optimum)


def _title(data: str, what: str, rates: list[float | None]) -> str:
    """Title of a figure: its content, the data, and the rate if there is only one."""
    rate = f", {heading(rates[0])}" if len(rates) == 1 else ""
    return f"{what}\n{data}{rate}"


def _axis(judge: Objective) -> str:
    return f"relative {judge.name}" if judge.is_share else f"{judge.name} / best found"


def _by_rate(results: ResultsTable) -> dict[float | None, dict[str, ResultColumns]]:
    return dict(sorted(results.table().items(), key=lambda item: item[0] or 0.0))


PLOTS: dict[str, Callable[[ObjectiveResults, str], "Figure | None"]] = {
    "cdf": lambda result, title: draw_cdf(result.results, result.judge, title),
    "steps": lambda result, title: draw_steps(result.results, result.judge, title),
    "devices": lambda result, title: draw_devices(result.table, title),
    "scatter": lambda result, title: draw_scatter(
        result.results, result.optima, result.judge, title
    ),
    "tradeoff": lambda result, title: draw_tradeoff(result.table, result.judge, title),
}
"""Plots by name; None where there is nothing to plot."""
