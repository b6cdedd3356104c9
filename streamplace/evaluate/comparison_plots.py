"""Plots of a comparison: throughput CDF, devices used, scatter and time against the optimum."""

from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.drawing.figures import GREY, new_figure
from streamplace.evaluate.best_values import Optima
from streamplace.evaluate.results import POWERS, ResultColumns, ResultsTable
from streamplace.evaluate.rows import Row, Table, heading, ratio
from streamplace.model.arrays import Floats
from streamplace.objectives.registry import Objective

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#3366aa", "#dd7733", "#44997a", "#b0467c", "#8a7333", "#6a55b0", "#55a9d4", "#333333")
LEAST_RANGE = 1.05
"""Of multiples of the best, where all are close to it."""
LINES = ("-", "--", "-.", ":")


def draw_cdf(results: ResultsTable, judge: Objective) -> "Figure":
    """Return the paper's Figure 5: share of graphs below each value, per rate.

    What is no share of 1 is drawn as a multiple of the best value that any placer found.
    """
    rates = _by_rate(results)
    figure, axes = new_figure(len(rates), width=4.6, height=3.4)
    best = results.best()
    for axis, (rate, by_placer) in zip(axes, rates.items(), strict=True):
        first, last = (1.0, LEAST_RANGE) if judge.sense == "min" else (0.0, 1.0)
        for i, (name, columns) in enumerate(by_placer.items()):
            values = columns.value
            if judge.unit:
                values = ratio(values, best.at(columns.problem))
            values = np.sort(values[np.isfinite(values)])
            last = max([last, *values[-1:].tolist()])
            shares = np.arange(1, len(values) + 1) / max(1, len(values))
            axis.plot(
                [first, *values, last],
                [0, *shares, 1],
                drawstyle="steps-post",
                label=name,
                **_style(i),
            )
        axis.set(xlabel=_axis(judge), ylabel="share of graphs", xlim=(first, last), ylim=(0, 1))
        axis.set_title(heading(rate), fontsize=10)
    axes[0].legend(fontsize=8, frameon=False, loc="upper left")
    return figure


def draw_steps(results: ResultsTable, judge: Objective) -> "Figure | None":
    """Mean value after 1, 2, 4, … evaluations, as a multiple of the best that any placer found.

    A placer's line begins where it has placed all problems. None if no placer reports its steps.
    """
    rates, best = _by_rate(results), results.best()
    lines = {
        rate: {name: _mean_steps(columns, best) for name, columns in by_placer.items()}
        for rate, by_placer in rates.items()
    }
    if not any(np.isfinite(line).any() for row in lines.values() for line in row.values()):
        return None
    figure, axes = new_figure(len(rates), width=4.6, height=3.4)
    for axis, (rate, row) in zip(axes, lines.items(), strict=True):
        for i, (name, line) in enumerate(row.items()):
            finite = np.isfinite(line)
            marker = "o" if finite.sum() == 1 else ""
            at = 2.0 ** np.flatnonzero(finite)
            axis.plot(at, line[finite], marker=marker, markersize=4, label=name, **_style(i))
        axis.set_xscale("log", base=2)
        axis.set(xlabel="evaluations", ylabel=f"{judge.quantity} / best found")
        axis.set_title(heading(rate), fontsize=10)
    axes[0].legend(fontsize=8, frameon=False)
    return figure


def _mean_steps(columns: ResultColumns, best: Optima) -> Floats:
    """Mean over the problems of value / best, by power of two; NaN until all have an answer."""
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


def draw_devices(table: Table) -> "Figure":
    """Return the paper's Figure 6: how many graphs every placer puts on how many devices."""
    figure, axes = new_figure(len(table), width=4.6, height=3.4)
    for axis, (rate, by_placer) in zip(axes, table.items(), strict=True):
        counts = sorted({k for s in by_placer.values() for k in s.devices_used})
        width = 0.8 / len(by_placer)
        for i, (name, row) in enumerate(by_placer.items()):
            at = np.arange(len(counts)) - 0.4 + (i + 0.5) * width
            heights = [row.devices_used.get(k, 0) for k in counts]
            axis.bar(at, heights, width * 0.92, label=name, color=_style(i)["color"])
        axis.set_xticks(range(len(counts)), [str(k) for k in counts])
        axis.set(xlabel="devices used", ylabel="graphs")
        axis.set_title(heading(rate), fontsize=10)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        fontsize=8,
        frameon=False,
        loc="outside lower center",
        ncols=4,
    )
    return figure


def draw_scatter(results: ResultsTable, best: Optima, judge: Objective) -> "Figure | None":
    """Every graph's value against its proven optimum, one panel per placer; None without optima."""
    rates = _by_rate(results)
    if not len(best.value):
        return None
    names = list(dict.fromkeys(name for by_placer in rates.values() for name in by_placer))
    columns = min(len(names), 4)
    figure, axes = new_figure(columns, rows=-(-len(names) // columns), width=2.8, height=2.8)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    axes = axes[: len(names)]
    for axis, name in zip(axes, names, strict=True):
        most = (float(best.value.max()) if judge.unit else 1.0) or 1.0
        axis.plot([0, most], [0, most], color=GREY, linewidth=0.8)
        for i, (rate, by_placer) in enumerate(rates.items()):
            axis.plot(
                best.at(by_placer[name].problem),
                by_placer[name].value,
                ".",
                markersize=2.5,
                alpha=0.6,
                color=PALETTE[i % len(PALETTE)],
                label=heading(rate),
            )
        axis.set(xlim=(0, 1.02 * most), xlabel="optimum")
        axis.set_ylim(0, 1.02 if not judge.unit else None)
        axis.set_title(name, fontsize=10)
    axes[0].set_ylabel(f"{judge.name} ({judge.unit})" if judge.unit else f"relative {judge.name}")
    axes[0].legend(fontsize=8, frameon=False, loc="upper left", markerscale=3)
    return figure


def draw_tradeoff(table: Table) -> "Figure | None":
    """Mean share of the optimum against milliseconds per graph; None without proven optima."""
    if not any(s.share_of_optimum is not None for t in table.values() for s in t.values()):
        return None
    figure, axes = new_figure(len(table), width=4.6, height=3.4)
    for axis, (rate, by_placer) in zip(axes, table.items(), strict=True):
        for i, (name, row) in enumerate(by_placer.items()):
            if row.share_of_optimum is not None:
                _labelled_point(axis, row, name, i)
        axis.set_xscale("log")
        axis.margins(x=0.25, y=0.12)
        axis.set(xlabel="milliseconds per graph", ylabel="mean share of the optimum")
        axis.set_title(heading(rate), fontsize=10)
    return figure


def _labelled_point(axis: "Axes", row: Row, name: str, i: int) -> None:
    at = (max(row.ms_per_graph, 1e-3), row.share_of_optimum or 0.0)
    axis.plot(*at, "o", color=_style(i)["color"], markersize=7)
    axis.annotate(name, at, xytext=(6, 4 if i % 2 else -10), textcoords="offset points", fontsize=8)


def _axis(judge: Objective) -> str:
    return f"{judge.name} / best found" if judge.unit else f"relative {judge.name}"


def _by_rate(results: ResultsTable) -> dict[float | None, dict[str, ResultColumns]]:
    return dict(sorted(results.table().items(), key=lambda item: item[0] or 0.0))


def _style(i: int) -> dict[str, Any]:
    return {
        "color": PALETTE[i % len(PALETTE)],
        "linestyle": LINES[(i // len(PALETTE) + i) % len(LINES)],
    }
