"""Targets to learn from and optima to compare with, computed on all cores and saved."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from streamplace.evaluate.records import Record
from streamplace.evaluate.runner import ComparisonRun, records_of
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import named_objective
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget
from streamplace.progress import tracked

EFFORT = Budget(evaluations=30_000)
"""Budget for each problem, whatever the machine: some 50 ms for a small graph."""
PROVER, SEARCHER = "exact", "anneal"
FILE = "solutions.jsonl"

Track = Callable[[Iterable[Any], str, int], Iterable[Any]]
"""Passes items on and shows their progress: title, and total number."""


@dataclass(frozen=True, slots=True)
class Solver:
    """Solves the problems of a training, at their rates, and saves the solutions in its folder."""

    objective: str
    seed: int
    folder: Path
    on: str | None = None  # address of the Ray that computes
    track: Track = tracked

    @property
    def can_prove(self) -> bool:
        """Whether optima by the objective can be proven."""
        return named_placer(PROVER).judges(named_objective(self.objective))

    def optima(self, problems: Sequence[Problem]) -> Floats:
        """Optimal value of every problem, NaN if the proof takes too long."""
        proofs = self._records(problems, PROVER, "proving optima of the validation graphs")
        return np.array([proof.value if proof.proven else None for proof in proofs], np.float64)

    def targets(self, problems: Sequence[Problem]) -> tuple[Ints | None, ...]:
        """Best placement of every problem, None if there is none."""
        proofs = self._records(problems, PROVER, "solving the training graphs")
        pairs = zip(problems, proofs, strict=True)
        unproven = [problem for problem, record in pairs if not record.proven]
        best, judge = {record.problem: record for record in proofs}, named_objective(self.objective)
        for record in self._records(unproven, SEARCHER, "searching graphs without a quick proof"):
            value, other = record.value, best[record.problem].value
            if other is None or (value is not None and judge.better(value, other)):
                best[record.problem] = record
        return _placements(best[record.problem] for record in proofs)

    def searched(self, problems: Sequence[Problem], evaluations: int) -> tuple[Ints | None, ...]:
        """Best placement of every problem that a search of so many evaluations finds."""
        budget = Budget(evaluations=evaluations)
        found = self._records(problems, SEARCHER, "searching the training graphs", budget)
        return _placements(found)

    def _records(
        self, problems: Sequence[Problem], placer: str, title: str, budget: Budget = EFFORT
    ) -> list[Record]:
        comparison = ComparisonRun((placer,), (), self.seed, budget, (self.objective,))
        with _without_script():
            solved = records_of(comparison, problems, self.folder / FILE, on=self.on)
            return list(chain(*self.track(solved, title, len(problems))))


def _placements(records: Iterable[Record]) -> tuple[Ints | None, ...]:
    """Devices of the operators of every problem, None if it was not placed."""
    return tuple(None if r.value is None else np.array(r.devices, np.int32) for r in records)


@contextmanager
def _without_script() -> Iterator[None]:
    """Keep worker processes from running the user's script, so that it needs no guard."""
    script = vars(sys.modules["__main__"])
    before: dict[str, Any] = {
        name: script[name] for name in ("__file__", "__spec__") if name in script
    }
    try:
        script.update(dict.fromkeys(before))
        script.pop("__file__", None)  # Ray wants a text, or nothing
        yield
    finally:
        script.update(before)
