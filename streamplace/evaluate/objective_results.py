"""All results of a comparison, by objective: columns, proven optima and the rows of the table."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streamplace.evaluate.best_values import BestValues, Optima
from streamplace.evaluate.paired import PairedTable, paired_by_rate
from streamplace.evaluate.records import Record
from streamplace.evaluate.results import ResultsTable
from streamplace.evaluate.rows import Table, rows_by_rate
from streamplace.objectives.registry import Objective


class ObjectiveResults(NamedTuple):
    """Results of a comparison for one objective."""

    judge: Objective
    results: ResultsTable
    optima: Optima
    table: Table
    paired: PairedTable


class ResultsByObjective:
    """Collects the records of a comparison, and those that were saved before it, by objective."""

    def __init__(self, judges: Sequence[Objective]) -> None:
        self._judges = judges
        self._results = {
            judge.name: ResultsTable(objective=judge.name, sense=judge.sense) for judge in judges
        }
        self._best = {judge.name: BestValues(judge.sense) for judge in judges}

    def add_saved(self, record: Record) -> None:
        """Add a saved record, which may prove an optimum but is in no table."""
        if record.objective in self._best:
            self._best[record.objective].add_record(record)

    def add(self, records: Iterable[Record]) -> None:
        """Add records of the comparison."""
        for record in records:
            self._results[record.objective].add([record])
            self.add_saved(record)

    def results(self) -> list[ObjectiveResults]:
        """Results by objective."""
        return [self._of(judge) for judge in self._judges]

    def _of(self, judge: Objective) -> ObjectiveResults:
        results, optima = self._results[judge.name], self._best[judge.name].optima()
        table = rows_by_rate(results, optima)
        return ObjectiveResults(judge, results, optima, table, paired_by_rate(results))
