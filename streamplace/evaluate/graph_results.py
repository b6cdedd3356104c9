"""Results of a comparison by graph, with placements of the first graphs."""

from collections.abc import Iterable
from itertools import islice

from streamplace.evaluate.records import Record, key_number, problem_hash
from streamplace.model.messages import counted
from streamplace.model.problem import Problem

MOST_GRAPHS = 2_000
"""Most graphs whose results are kept apart."""
MOST_PLACED = 6_000
"""Most operators of all placements that are kept."""


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
