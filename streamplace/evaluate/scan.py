"""A first look at a data set: how many problems, at which rates, and what to ask of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from streamplace.evaluate.parallel import parallel_map
from streamplace.io.datasets import DataSet, Reader
from streamplace.io.lines import Line
from streamplace.objectives.registry import suggested_by

BATCH = 64
"""Lines that are looked at together: a thousand are not worth starting processes for."""
SEVERAL = 2


@dataclass(frozen=True, slots=True)
class Scan:
    """What problems have in common.

    Attributes
    ----------
    rates
        Rates of all their sources; of many different ones, two.
    objectives
        What they suggest to be judged by.
    """

    total: int = 0
    rates: frozenset[float] = frozenset()
    objectives: frozenset[str] = frozenset()

    def __add__(self, other: "Scan") -> "Scan":
        rates = sorted(self.rates | other.rates)[:SEVERAL]
        return Scan(self.total + other.total, frozenset(rates), self.objectives | other.objectives)

    @property
    def rate(self) -> tuple[float, ...]:
        """Rate that all have, if they do; task graphs are compared as they are."""
        common = len(self.rates) == 1 and self.objectives == {"throughput"}
        return tuple(self.rates) if common else ()

    @property
    def objective(self) -> str:
        """Objective that all suggest."""
        return min(self.objectives) if len(self.objectives) == 1 else "throughput"


def survey(data: DataSet, jobs: int | None = None, on: str | None = None) -> Scan:
    """Read all problems of a data set once, which finds what cannot be read before work begins."""
    return sum(parallel_map(_Surveyor(data.reader), _batches(data), jobs, on), Scan())


def _batches(data: DataSet) -> Iterator[list[Line]]:
    lines = data.lines()
    while batch := list(islice(lines, BATCH)):
        yield batch


@dataclass(frozen=True, slots=True)
class _Surveyor:
    reader: Reader

    def __call__(self, batch: list[Line]) -> Scan:
        found = Scan()
        for problem in map(self.reader, batch):
            graph = problem.graph
            rate, objective = frozenset({graph.source_rate}), frozenset({suggested_by(graph)})
            found += Scan(1, rate, objective)
        return found
