"""All results of a comparison: by objective, with the rows of the tables, and by graph.

By objective there are columns, proven optima and comparisons of pairs; by graph there are
placements of the first graphs.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from streamplace.evaluate.paired import PairedTable, paired_by_rate
from streamplace.evaluate.records import Record, key_number, problem_hash
from streamplace.evaluate.results import BestValues, Optima, ResultsTable
from streamplace.evaluate.rows import Table, rows_by_rate
from streamplace.model.messages import counted
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective

MOST_GRAPHS = 2_000
"""Most graphs whose results are kept apart."""
MOST_PLACED = 6_000
"""Most operators of all placements that are kept."""


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
        self._best = {judge.name: BestValues(judge.sense, judge.limit) for judge in judges}

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
        if len(self.names) == MOST_GRAPHS:
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
        if first and self._size <= MOST_PLACED:
            self.placed[row] = first

    def read(self, problems: Iterable[Problem]) -> None:
        """Find the problems of the records in ``placed`` among those of the comparison."""
        if not self.placed:
            return
        for problem in islice(problems, max(self.placed) + 1):
            for rate in {records[0].rate for records in self.placed.values()}:
                asked = problem if rate is None else problem.at_rate(rate)
                row = self.row.get(key_number(problem_hash(asked)), -1)
                if row in self.placed:
                    self.problems[row] = asked
