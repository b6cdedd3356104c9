"""The result of a comparison of placers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamplace.evaluate.comparison_report import as_document, comparison_report
from streamplace.evaluate.graph_results import GraphResults
from streamplace.evaluate.objective_results import ObjectiveResults
from streamplace.evaluate.paired import Paired
from streamplace.evaluate.pareto import Front, points
from streamplace.evaluate.rows import Row
from streamplace.model.display import Displayed, data_frame
from streamplace.model.messages import counted
from streamplace.model.report import Report

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = (
    "mean", "q1", "median", "min", "max", "share_of_optimum", "reached", "proven", "ms_per_graph",
    "graphs", "failed",
)  # fmt: skip


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
    """

    results: tuple[ObjectiveResults, ...]
    reference: str
    failures: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    graphs: GraphResults | None = None

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
        tables = comparison_report(self.results, self.front, self.reference)
        failed = (f"failed: {graph}: {reason}" for graph, reason in self.failures.items())
        return Report((*tables.parts, *failed), tables.title, self)

    def document(self) -> dict[str, Any]:
        """All numbers as the JSON document of ``streamplace compare --json``."""
        document = as_document(self.results, self.front)
        return {**document, "aliases": dict(self.aliases)} if self.aliases else document

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

    def __repr__(self) -> str:
        placers = len({placer for _, _, placer, _ in self.rows()})
        return f"<Comparison of {counted(placers, 'placer')}>"
