"""The result of a comparison of placers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.display.report import Report
from streamplace.errors import SettingError
from streamplace.evaluate.comparison_report import as_document, comparison_report
from streamplace.evaluate.paired import Paired
from streamplace.evaluate.records import Record, key_number, problem_hash
from streamplace.evaluate.results import Front, ObjectiveResults, ResultColumns, Row, front_of
from streamplace.model.messages import counted, quoted
from streamplace.model.objects import Displayed, data_frame
from streamplace.model.problem import Problem

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
REASONS = {
    "steps": "no placer reports its steps, such as anneal",
    "scatter": "fewer than three optima are proven; add the placer exact",
    "tradeoff": "no optimum is proven; add the placer exact",
}
"""Reasons for a missing plot."""
MAX_GRAPHS = 2_000
"""Graphs whose results a page shows one by one; a browser draws so many rows at once."""
MAX_PLACED = 6_000
"""Operators of all placements that a page shows, which keep it below about a megabyte."""


class GraphResults:
    """Names of the first graphs of a comparison, and placements of fewer of them.

    Attributes
    ----------
    names
        Names of the graphs.
    row
        Row of a graph by the number of its problem, which differs between rates.
    placed
        Records of the first graphs, by row.
    problems
        Problems of the records in ``placed``, by row; see `read`.
    left_out
        Number of further graphs.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.row: dict[int, int] = {}
        self.placed: dict[int, list[Record]] = {}
        self.problems: dict[int, Problem] = {}
        self.left_out = 0
        self._size = 0

    def __repr__(self) -> str:
        return f"<GraphResults of {counted(len(self.names), 'graph')}>"

    def add(self, records: list[Record]) -> None:
        """Add the records of one graph."""
        if not records:
            return
        if len(self.names) == MAX_GRAPHS:
            self.left_out += 1
            return
        row = len(self.names)
        self.names.append(records[0].graph)
        for record in records:
            self.row.setdefault(key_number(record.problem), row)
        first = [
            record
            for record in records
            if record.value is not None
            and (record.rate, record.objective) == (records[0].rate, records[0].objective)
        ]
        self._size += sum(len(record.devices) for record in first)
        if first and self._size <= MAX_PLACED:
            self.placed[row] = first

    def read(self, problems: Iterable[Problem]) -> None:
        """Find the problems of the records in ``placed`` among those of the comparison."""
        if not self.placed:
            return
        rates = {records[0].rate for records in self.placed.values()}
        for problem in islice(problems, max(self.placed) + 1):
            for rate in rates:
                at_rate = problem if rate is None else problem.at_rate(rate)
                row = self.row.get(key_number(problem_hash(at_rate)), -1)
                if row in self.placed:
                    self.problems[row] = at_rate


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Displayed):
    """Result of a comparison; ``print`` shows the tables of ``streamplace compare``.

    Attributes
    ----------
    results
        ``judge`` and ``table`` of every objective: rows by rate and placer; the rate None stands
        for the graphs' original rates.
    reference
        Placer that the others are compared with.
    failures
        Graphs on which a placer failed, with the reasons.
    aliases
        Alias → placer, for the aliases in the tables.
    graphs
        Results by graph, for pages.
    trained
        Learned placer → number of these graphs that it was trained on, if any.
    """

    results: tuple[ObjectiveResults, ...]
    reference: str
    failures: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    graphs: GraphResults = field(default_factory=GraphResults)
    trained: Mapping[str, int] = field(default_factory=dict)

    @property
    def front(self) -> Front | None:
        """Trade-offs between several objectives; None for a single objective."""
        return front_of(self.results) if len(self.results) > 1 else None

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
            for rate, by_placer in result.columns.items()
            for placer, columns in by_placer.items()
        ]
        return data_frame({name: [v for part in parts for v in part[name]] for name in FRAME})

    def _columns(
        self, result: ObjectiveResults, rate: float | None, placer: str, columns: ResultColumns
    ) -> dict[str, list[Any]]:
        numbers = columns.problem.tolist()
        rows = [self.graphs.row.get(number) for number in numbers]
        milliseconds = np.where(np.isnan(columns.value), np.nan, columns.milliseconds)
        return {
            "objective": [result.judge.name] * len(rows),
            "rate": [rate] * len(rows),
            "graph": [
                f"{number:016x}" if row is None else self.graphs.names[row]
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
            raise SettingError(f"there is nothing to plot for {kind}; {REASONS[kind]}")
        return figure

    def __repr__(self) -> str:
        rows = self.rows()
        placers = counted(len({placer for _, _, placer, _ in rows}), "placer")
        graphs = counted(max((row.graphs for *_, row in rows), default=0), "graph")
        return f"<Comparison of {placers} on {graphs}>"
