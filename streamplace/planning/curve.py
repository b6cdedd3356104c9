"""Curves: plans for several rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.io.fields import plain
from streamplace.model.display import Pictured
from streamplace.model.report import Report, Sheet
from streamplace.model.units import floor_digits
from streamplace.planning.hours import ends_in_words, machines_in_words
from streamplace.planning.result import PlanResult, gap_in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class PlanCurve(Pictured):
    """Cost and bound along a range of rates: the frontier.

    Attributes
    ----------
    values
        Rates in tuples/s, ascending.
    results
        The plan for each rate.
    """

    values: tuple[float, ...]
    results: tuple[PlanResult, ...]

    def __repr__(self) -> str:
        first, last = self.results[0].cost, self.results[-1].cost
        return f"<PlanCurve of {len(self.values)} plans: cost {first:g} to {last:g}>"

    def report(self) -> Report:
        """Cost and bound for each rate, and what the plan of a measured graph carries."""
        rows = tuple(
            (f"{value:g}", *_row(result))
            for value, result in zip(self.values, self.results, strict=True)
        )
        cost = "cost per hour" if self.results[0].priced else "machines"
        carries = ("carries, tuples/s",) if self.results[0].interval is not None else ()
        head = ("tuples/s", cost, "bound", "above the bound", "machines", *carries)
        return Report((Sheet(head, rows),), subject=self)

    def figure(self) -> "Figure":
        """Return a plot of cost and proven bound against the rate."""
        from streamplace.drawing.charts import PALETTE, finish, legend_text, panels

        first = self.results[0]
        costs = [result.cost for result in self.results]
        bounds = [float(result.bound) for result in self.results]
        unit = "cost per hour" if first.priced else "machines"
        figure, (axis,) = panels([""])
        axis.fill_between(self.values, bounds, costs, color=PALETTE[0], alpha=0.15, linewidth=0)
        axis.plot(self.values, costs, color=PALETTE[0], marker="o", markersize=4, label="plan")
        axis.plot(self.values, bounds, color=PALETTE[1], linestyle="--", label="proven bound")
        axis.set(xlabel="tuples/s", ylabel=unit, ylim=(0, 1.08 * max(costs)))
        axis.locator_params("x", nbins=6, integer=all(v.is_integer() for v in self.values))
        axis.xaxis.set_major_formatter("{x:g}")
        return finish(figure, f"Cost against rate\n{legend_text(first.graph.name)}")

    def write(self, path: str | PathLike[str]) -> None:
        """Write the plot (.svg, .png or .pdf) or the report (.html)."""
        from streamplace.drawing.figures import save

        if Path(path).suffix == ".html":
            self.report().save(path)
            return
        save(self.figure(), Path(path))

    def to_json(self) -> list[dict[str, Any]]:
        """Return the documents of the plans, each with its rate."""
        return [
            {"rate": plain(value), **result.to_json()}
            for value, result in zip(self.values, self.results, strict=True)
        ]


def _row(result: PlanResult) -> Sequence[str]:
    bound, gap = floor_digits(result.bound), gap_in_words(result.gap)
    cells = (f"{result.cost:g}", bound, gap, machines_in_words(result.machines))
    if result.interval is None:
        return cells
    return *cells, ends_in_words(result.interval)
