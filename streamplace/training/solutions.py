"""Solutions to learn from and optima to judge by, found once on all cores and kept."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from streamplace.evaluate.compare import compare
from streamplace.evaluate.comparison import Comparison
from streamplace.evaluate.optima import PROVER
from streamplace.evaluate.record_file import RecordFile
from streamplace.evaluate.records import Record
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import named_objective
from streamplace.placers.registry import Budget
from streamplace.training.run import TrainingRun

EFFORT = Budget(seconds=10.0, evaluations=30_000)
"""For each problem: some 50 ms where graphs are small, and no machine's speed changes an answer."""
SEARCHER = "anneal"

Track = Callable[[Iterable[Any], str, int], Iterable[Any]]
"""Passes items on and shows how far that is, under a title, out of a total."""


def untracked(items: Iterable[Any], title: str, total: int) -> Iterable[Any]:
    """Pass items on and show nothing."""
    return items


@dataclass(frozen=True, slots=True)
class Solver:
    """Solves the problems of a run; what was solved is kept in a file.

    Proven optima are shared with `streamplace.evaluate.compare` through the user's cache.
    """

    run: TrainingRun
    file: Path
    track: Track = untracked
    on: str | None = None

    def optima(self, problems: Sequence[Problem]) -> Floats:
        """Proven optimum of every problem at every rate, NaN where no proof is quick."""
        found = self._records(problems, PROVER, "proving optima of the validation graphs")
        values = [record.value if record.proven else None for record in chain(*found)]
        return np.array([np.nan if value is None else value for value in values], np.float64)

    def targets(self, problems: Sequence[Problem]) -> tuple[Ints | None, ...]:
        """Best placement found of every problem at every rate, None where there is none."""
        proofs = self._records(problems, PROVER, "solving the training graphs")
        unproven = [
            problem
            for problem, records in zip(problems, proofs, strict=True)
            if not all(record.proven for record in records)
        ]
        others = self._records(unproven, SEARCHER, "searching where no proof is quick")
        best = {record.problem: record for record in chain(*proofs)}
        for record in chain(*others):
            if self._better(record, best[record.problem]):
                best[record.problem] = record
        chosen = (best[record.problem] for record in chain(*proofs))
        return tuple(
            None if record.value is None else np.array(record.devices, np.int32)
            for record in chosen
        )

    def _better(self, record: Record, other: Record) -> bool:
        """Whether a placement was found that is better than another, if that was found."""
        if record.value is None or other.value is None:
            return other.value is None
        return named_objective(self.run.objective).better(record.value, other.value)

    def _records(self, problems: Sequence[Problem], placer: str, title: str) -> list[list[Record]]:
        run = self.run
        contest = Comparison((placer,), run.rates, run.seed, EFFORT, run.objective)
        with _script_left_alone():
            found = compare(contest, problems, RecordFile(self.file), on=self.on)
            return list(self.track(found, title, len(problems)))


@contextmanager
def _script_left_alone() -> Iterator[None]:
    """Keep worker processes from running the user's script, which thus needs no guard."""
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
