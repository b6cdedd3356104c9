"""Scan of a data set: number, rates and objectives of its problems, read before work begins."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from streamplace.evaluate.parallel import parallel_map
from streamplace.evaluate.trained_on import graph_number
from streamplace.io.datasets import DataSet, Reader
from streamplace.io.lines import Line
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem
from streamplace.objectives.registry import DEFAULT, named_objective, suggested_by

BATCH = 64
"""Lines that are scanned together, so that starting processes pays off."""
TrainedGraphs = Mapping[str, frozenset[int]]
"""Hashes of graphs by the placer that was trained on them; see `trained_on`."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Common properties of problems."""

    total: int = 0
    # Rates of all their sources; if there are more than two different ones, two of them.
    rates: frozenset[float] = frozenset()
    objectives: frozenset[str] = frozenset()  # default objectives of the problems
    # Number of the problems whose graph each learned placer was trained on.
    trained: Mapping[str, int] = field(default_factory=Counter)

    def __add__(self, other: "Scan") -> "Scan":
        rates = sorted(self.rates | other.rates)[:2]
        trained = Counter(self.trained) + Counter(other.trained)
        objectives = self.objectives | other.objectives
        return Scan(self.total + other.total, frozenset(rates), objectives, trained)

    @property
    def rate(self) -> tuple[float, ...]:
        """Rate that all problems share, if their objective is a rate; else empty."""
        at_rates = all(named_objective(name).kind == "rate" for name in self.objectives)
        return tuple(self.rates) if len(self.rates) == 1 and at_rates else ()

    @property
    def objective(self) -> str:
        """Default objective that all problems share, else the general default."""
        return min(self.objectives) if len(self.objectives) == 1 else DEFAULT


def scan(data: DataSet, jobs: int | None, on: str | None, trained: TrainedGraphs) -> Scan:
    """Parse all problems of a data set, so that errors are reported before work begins.

    ``trained`` has the graphs that placers were trained on.
    """
    lines, scanned = data.lines(), partial(_scan_batch, data.reader, trained)
    batches = iter(lambda: list(islice(lines, BATCH)), [])
    return sum(parallel_map(scanned, batches, jobs, on), Scan())


def scan_of(problems: Iterable[Problem], trained: TrainedGraphs) -> Scan:
    """Common properties of problems."""
    return sum((_scan_of(problem.graph, trained) for problem in problems), Scan())


def _scan_of(graph: StreamGraph, trained: TrainedGraphs) -> Scan:
    number = graph_number(graph) if trained else 0
    trained_placers = {name: 1 for name, graphs in trained.items() if number in graphs}
    return Scan(
        1, frozenset({graph.source_rate}), frozenset({suggested_by(graph)}), trained_placers
    )


def _scan_batch(reader: Reader, trained: TrainedGraphs, batch: list[Line]) -> Scan:
    return scan_of(map(reader, batch), trained)
