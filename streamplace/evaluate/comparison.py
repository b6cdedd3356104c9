"""The result of a comparison of placers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.errors import SettingError
from streamplace.evaluate.comparison_report import as_document, comparison_report
from streamplace.evaluate.objective_results import GraphResults, ObjectiveResults
from streamplace.evaluate.paired import Paired
from streamplace.evaluate.pareto import Front, points
from streamplace.evaluate.results import ResultColumns
from streamplace.evaluate.rows import Row
from streamplace.model.display import Displayed, data_frame
from streamplace.model.messages import counted, quoted
from streamplace.model.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

COLUMNS = (
    "mean", "q1", "median", "min", "max", "share_of_optimum", "reached", "proven", "ms_per_graph",
    "graphs", "failed",
)  # fmt: skip

FRAME = (
    "objective", "rate", "graph", "placer", "value", "bound", "optimum", "milliseconds",
    "devices_used",
)  # fmt: skip
LACKS = {
    "steps": "no placer reports its steps, such as anneal",
    "scatter": "fewer than three optima are proven; add the placer exact",
    "tradeoff": "no optimum is proven; add the placer exact",
}
"""Reasons for a missing plot."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Displayed):
    """Result of a comparison; ``print`` shows the tables of ``streamplace compare``.

    Attributes
    ----------
    results
        ``judge`` and ``table`` of every objective: rows by rate and placer; the rate None stands
        for the graphs' own rates.
    reference
        Placer that the others are compared with.
    failures
        Graphs on which a placer failed, with the reasons.
    aliases
        Alias → placer, for the aliases in the tables.
    graphs
        Results by graph, for pages; None if they were not collected.
    trained
        Learned placer → number of these graphs that it was trained on, if any.
    """

    results: tuple[ObjectiveResults, ...]
    reference: str
    failures: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    graphs: GraphResults | None = None
    trained: Mapping[str, int] = field(default_factory=dict)

    @property
    def front(self) -> Front | None:
        """Trade-offs between several objectives; None for a single objective."""
        if len(self.results) < 2:
            return None
        judges = [result.judge for result in self.results]
        return points({result.judge.name: result.results for result in self.results}, judges)

    def rows(self) -> list[tuple[str, float | None, str, Row]]:
        """Objective, rate, placer, and its numbers."""
        return [
            (result.judge.name, rate, placer, row)
            for result in self.results
            for rate, by_placer in result.table.items()
            for placer, row in by_placer.items()
        ]

    def paired(self, reference: str | None = None) -> list[tuple[str, float | None, str, Paired]]:
        """Objective, rate, placer, and its comparison with a reference on the same graphs.

        Parameters
        ----------
        reference
            Placer that the others are compared with; by default that of the comparison.
        """
        rival = self.reference if reference is None else reference
        return [
            (result.judge.name, rate, placer, rivals[rival])
            for result in self.results
            for rate, by_placer in result.paired.items()
            for placer, rivals in by_placer.items()
            if rival in rivals
        ]

    def report(self) -> Report:
        """Tables, and the graphs that failed."""
        tables = comparison_report(self.results, self.front, self.reference, self.notes)
        failed = (f"failed: {graph}: {reason}" for graph, reason in self.failures.items())
        return Report((*tables.parts, *failed), tables.title, self)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on placers that were trained on graphs on which they are compared."""
        graphs = max((row.graphs for *_, row in self.rows()), default=0)
        return tuple(
            f"{placer} was trained on {number} of these {counted(graphs, 'graph')}"
            for placer, number in self.trained.items()
        )

    def document(self) -> dict[str, Any]:
        """All numbers as the JSON document of ``streamplace compare --json``."""
        named = {"aliases": dict(self.aliases), "trained_on": dict(self.trained)}
        return {**as_document(self.results, self.front), **{k: v for k, v in named.items() if v}}

    def to_pandas(self) -> "DataFrame":
        """Table with a row for every objective, rate and placer."""
        rows = self.rows()
        return data_frame(
            {
                "objective": [objective for objective, _, _, _ in rows],
                "rate": [rate for _, rate, _, _ in rows],
                "placer": [placer for _, _, placer, _ in rows],
                **{name: [getattr(row, name) for *_, row in rows] for name in COLUMNS},
            }
        )

    def frame(self) -> "DataFrame":
        """Table with a row for every objective, rate, graph and placer.

        ``value`` and ``milliseconds`` are NaN where the placer failed, ``bound`` where it proved
        none, and ``optimum`` where it is not proven. Graphs that `graphs` omits have the number of
        their problem as name.
        """
        parts = [
            self._columns(result, rate, placer, columns)
            for result in self.results
            for rate, by_placer in result.results.table().items()
            for placer, columns in by_placer.items()
        ]
        return data_frame({name: [v for part in parts for v in part[name]] for name in FRAME})

    def _columns(
        self, result: ObjectiveResults, rate: float | None, placer: str, columns: ResultColumns
    ) -> dict[str, list[Any]]:
        graphs, numbers = self.graphs or GraphResults(), columns.problem.tolist()
        milliseconds = np.where(np.isnan(columns.value), np.nan, columns.milliseconds)
        rows = [graphs.row.get(number) for number in numbers]
        return {
            "objective": [result.judge.name] * len(rows),
            "rate": [rate] * len(rows),
            "graph": [
                f"{number:016x}" if row is None else graphs.names[row]
                for row, number in zip(rows, numbers, strict=True)
            ],
            "placer": [placer] * len(rows),
            "value": columns.value.tolist(),
            "bound": columns.bound.tolist(),
            "optimum": result.optima.at(columns.problem).tolist(),
            "milliseconds": milliseconds.tolist(),
            "devices_used": columns.devices_used.tolist(),
        }

    def plot(self, kind: str = "cdf", objective: str | None = None) -> "Figure":
        """Plot the results with matplotlib.

        Parameters
        ----------
        kind
            One of the plots of ``streamplace compare -o``: "cdf", "steps", "devices", "scatter" or
            "tradeoff".
        objective
            Name of the objective; by default the first one of the comparison.
        """
        from streamplace.evaluate.comparison_plots import PLOTS

        if kind not in PLOTS:
            raise SettingError(f"there is no plot {quoted(kind)}; there are {', '.join(PLOTS)}")
        chosen = [r for r in self.results if objective in (None, r.judge.name)]
        if not chosen:
            names = ", ".join(result.judge.name for result in self.results)
            raise SettingError(
                f"the comparison has no objective {quoted(objective)}; it has {names}"
            )
        table = chosen[0].table
        graphs = max(row.graphs for by_placer in table.values() for row in by_placer.values())
        figure = PLOTS[kind](chosen[0], counted(graphs, "graph"))
        if figure is None:
            raise SettingError(f"there is nothing to plot for {kind}; {LACKS[kind]}")
        return figure

    def __repr__(self) -> str:
        rows = self.rows()
        placers = counted(len({placer for _, _, placer, _ in rows}), "placer")
        graphs = counted(max((row.graphs for *_, row in rows), default=0), "graph")
        return f"<Comparison of {placers} on {graphs}>"
