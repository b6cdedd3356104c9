"""Plots of a comparison: distribution, search steps, devices used, trade-offs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.figures import (
    GREY,
    LEGEND,
    MARKERS,
    PALETTE,
    bar_style,
    finish,
    legend_text,
    line_style,
    panels,
)
from streamplace.evaluate.results import (
    POWERS,
    ObjectiveResults,
    Optima,
    ResultColumns,
    TradeOff,
    heading,
    ratio,
)
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import Objective

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIN_RANGE = 0.05
"""Minimum length of an axis of shares of the best, so that small differences look small."""


def draw_distributions(results: Sequence[ObjectiveResults], title: str) -> "Figure":
    """Draw the distribution of every placer's values, in a column per objective and rate.

    It is the paper's Figure 5, the share of graphs below each value, with box plots below it.
    Values other than shares are drawn as multiples of the best value of any placer.
    """
    cases = [(result, rate, row) for result in results for rate, row in _by_rate(result).items()]
    rates = list(dict.fromkeys(rate for _, rate, _ in cases))
    names = [f"{r.judge.name}, " if len(results) > 1 else "" for r, _, _ in cases]
    figure, axes = panels(
        (f"{name}{heading(case[1])}" for name, case in zip(names, cases, strict=True)), rows=2
    )
    for (result, _, row), above, below in zip(cases, axes, axes[len(cases) :], strict=False):
        judge, values = result.judge, {n: _sorted(columns, result) for n, columns in row.items()}
        first, last = _span([*values.values()], judge)
        for i, (name, of_placer) in enumerate(values.items()):
            if len(of_placer):
                shares = np.arange(1, len(of_placer) + 1) / len(of_placer)
                steps, style = ([first, *of_placer, last], [0, *shares, 1]), line_style(i)
                above.plot(*steps, drawstyle="steps-post", label=legend_text(name), **style)
                _draw_box(below, i, of_placer)
        label = f"relative {judge.name}" if judge.is_share else f"{judge.name} / best found"
        above.set(xlabel=label, xlim=(first, last), ylim=(0, 1.02))
        below.set(ylabel=label, ylim=(first, last), xlim=(-0.7, len(values) - 0.3), xticks=[])
    axes[0].set_ylabel("share of graphs with at most this")
    axes[len(cases)].set_xlabel("quartiles, mean (×), whiskers up to 1.5 boxes", fontsize=LEGEND)
    return finish(figure, _title(title, "Distribution over graphs", rates))


def _sorted(columns: ResultColumns, results: ObjectiveResults) -> Floats:
    """Values of a placer in ascending order, relative to the best values unless they are shares."""
    values = columns.value
    if not results.judge.is_share:
        values = ratio(values, results.best.at(columns.problem))
    return np.sort(values[np.isfinite(values)])


def _draw_box(axis: "Axes", i: int, values: Floats) -> None:
    """Draw the box plot of placer i in its colour."""
    colour = PALETTE[i % len(PALETTE)]
    of_mean = {"marker": "x", "markeredgecolor": "black", "markersize": 5}
    outside = {"marker": ".", "markeredgecolor": colour, "markersize": 3}
    axis.boxplot(
        [values], positions=[i], widths=0.6, showmeans=True, meanprops=of_mean, flierprops=outside,
        patch_artist=True, boxprops={"facecolor": colour, "alpha": 0.6},
        medianprops={"color": "black"}, manage_ticks=False,
    )  # fmt: skip


def _span(columns: list[Floats], judge: Objective) -> tuple[float, float]:
    """Ends of an axis that contains all values and 1, with a margin."""
    values = np.concatenate([*columns, [1.0]])
    low, high = float(values.min()), float(values.max())
    low, high = min(low, 1.0 - MIN_RANGE), max(high, 1.0)
    if judge.sense == "min":
        low, high = 1.0, max(high, 1.0 + MIN_RANGE)
    margin = 0.04 * (high - low)
    return low - margin, high + margin


def draw_steps(results: ObjectiveResults, title: str) -> "Figure | None":
    """Mean value after 1, 2, 4, … evaluations, as a multiple of the best value of any placer.

    A placer's line begins where it has placed all problems. None if no placer reports its steps.
    """
    rates = _by_rate(results)
    lines = {
        rate: {name: _mean_steps(columns, results.best) for name, columns in by_placer.items()}
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
            ylim=_span([line[np.isfinite(line)] for line in row.values()], results.judge),
        )
    axes[0].set_ylabel(f"{results.judge.quantity} / best found")
    return finish(figure, _title(title, "Mean value by evaluations", list(rates)))


def _mean_steps(columns: ResultColumns, best: Optima) -> Floats:
    """Mean over the problems of value / best, by power of two; NaN until all are placed."""
    placed = ~np.isnan(columns.value)
    if not len(columns.steps) or not placed.any():
        return np.full(POWERS, np.nan)
    best_values = best.at(columns.problem)[placed, None]
    line: Floats = ratio(columns.steps[placed], best_values).mean(axis=0)
    line[~np.isfinite(line)] = np.nan
    ends = np.flatnonzero(line[1:] != line[:-1])
    line[(int(ends[-1]) + 2 if len(ends) else 1) :] = np.nan
    return line


def draw_devices(results: ObjectiveResults, title: str) -> "Figure":
    """Draw the paper's Figure 6: number of graphs by placer and number of devices."""
    figure, axes = panels(map(heading, results.table))
    for axis, by_placer in zip(axes, results.table.values(), strict=True):
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
    return finish(figure, _title(title, "Devices used", list(results.table)))


def draw_front(
    points: Mapping[float | None, Sequence[TradeOff]], judges: Sequence[Objective], title: str
) -> "Figure":
    """Draw every point by the first two objectives; a line joins the points that none dominates."""
    x, y = (judge.name for judge in judges[:2])
    figure, axes = panels(map(heading, points))
    placers = list(dict.fromkeys(p.placer for row in points.values() for p in row))
    objectives = list(dict.fromkeys(p.objective for row in points.values() for p in row))
    for axis, row in zip(axes, points.values(), strict=True):
        front = sorted((p.of_best[x], p.of_best[y]) for p in row if p.front)
        axis.plot(*zip(*front, strict=True), color=GREY, linewidth=1.2, zorder=1)
        for point in row:
            axis.plot(
                point.of_best[x],
                point.of_best[y],
                MARKERS[objectives.index(point.objective) % len(MARKERS)],
                color=PALETTE[placers.index(point.placer) % len(PALETTE)],
                markerfacecolor=None if point.front else "white",
                linestyle="none",
                label=legend_text(f"{point.placer}, optimised for {point.objective}"),
            )
        axis.set_xlabel(f"{x} / best known")
        axis.margins(0.08)
        axis.ticklabel_format(useOffset=False)
    axes[0].set_ylabel(f"{y} / best known")
    return finish(figure, _title(title, "Trade-off (filled: not dominated)", list(points)))


def _title(data: str, content: str, rates: list[float | None]) -> str:
    """Title of a figure: its content, the data, and the rate if there is only one."""
    rate = f", {heading(rates[0])}" if len(rates) == 1 else ""
    return f"{content}\n{data}{rate}"


def _by_rate(results: ObjectiveResults) -> dict[float | None, dict[str, ResultColumns]]:
    return dict(sorted(results.columns.items(), key=lambda item: item[0] or 0.0))


PLOTS: dict[str, Callable[[ObjectiveResults, str], "Figure | None"]] = {
    "distribution": lambda results, title: draw_distributions([results], title),
    "steps": draw_steps,
    "devices": draw_devices,
}
"""Plots by name; None where there is nothing to plot."""
