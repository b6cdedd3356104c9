"""Scan of a data set: number, rates and objectives of its problems, read before work begins."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from streamplace.evaluate.parallel import parallel_map
from streamplace.evaluate.trained_on import WeightGraphs
from streamplace.io.datasets import DataSet, Reader
from streamplace.io.lines import Line
from streamplace.model.problem import Problem
from streamplace.objectives.registry import DEFAULT, named_objective, suggested_by

BATCH = 64
"""Lines that are scanned together, so that starting processes pays off."""
GraphsOfWeights = Mapping[str, WeightGraphs]
"""Graphs of the trainings of weights, by placer; see `streamplace.evaluate.trained_on`."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Common properties of problems."""

    total: int = 0
    rates: frozenset[float] = frozenset()  # total rates of the sources, at most two of them
    objectives: frozenset[str] = frozenset()  # default objectives of the problems
    # Learned placer → number of problems whose graphs it was trained on, or its weights chosen by.
    trained_on: Mapping[str, int] = field(default_factory=Counter)
    chosen_by: Mapping[str, int] = field(default_factory=Counter)

    def __add__(self, other: "Scan") -> "Scan":
        rates = sorted(self.rates | other.rates)[:2]
        trained_on = Counter(self.trained_on) + Counter(other.trained_on)
        chosen_by = Counter(self.chosen_by) + Counter(other.chosen_by)
        objectives, total = self.objectives | other.objectives, self.total + other.total
        return Scan(total, frozenset(rates), objectives, trained_on, chosen_by)

    @property
    def rate(self) -> tuple[float, ...]:
        """Rate that all problems share, if their objective is a rate; else empty."""
        at_rates = all(named_objective(name).kind == "rate" for name in self.objectives)
        return tuple(self.rates) if len(self.rates) == 1 and at_rates else ()

    @property
    def objective(self) -> str:
        """Default objective that all problems share, else the general default."""
        return min(self.objectives) if len(self.objectives) == 1 else DEFAULT


def scan(data: DataSet, jobs: int | None, on: str | None, seen: GraphsOfWeights) -> Scan:
    """Parse all problems of a data set, so that errors are reported before work begins."""
    lines, scanned = data.lines(), partial(_scan_lines, data.reader, seen)
    batches = iter(lambda: list(islice(lines, BATCH)), [])
    return sum(parallel_map(scanned, batches, jobs, on), Scan())


def _scan_lines(reader: Reader, seen: GraphsOfWeights, lines: list[Line]) -> Scan:
    return scan_of(map(reader, lines), seen)


def scan_of(problems: Iterable[Problem], seen: GraphsOfWeights) -> Scan:
    """Common properties of problems."""
    total = Scan()
    for graph in (problem.graph for problem in problems):
        trained_on = {name: 1 for name, graphs in seen.items() if graph in graphs.trained_on}
        others = {name: graphs for name, graphs in seen.items() if name not in trained_on}
        chosen_by = {name: 1 for name, graphs in others.items() if graph in graphs.chosen_by}
        rates, objectives = frozenset({graph.source_rate}), frozenset({suggested_by(graph)})
        total += Scan(1, rates, objectives, trained_on, chosen_by)
    return total
