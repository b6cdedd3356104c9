"""The referee of a contest: lets every placer loose on one problem, except where it is known."""

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import StreamplaceError
from streamplace.evaluate.comparison import Comparison
from streamplace.evaluate.optima import is_answer
from streamplace.evaluate.record_index import RecordIndex
from streamplace.evaluate.records import Record, numbered, problem_hash
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import demanded
from streamplace.objectives.registry import Objective, named_objective
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget, Improvement

LOG = logging.getLogger(__name__)


class Origin(Enum):
    """Where a record comes from; a FAILED one is no result, and tried again next time."""

    FILE, CACHE, NEW, FAILED = range(4)


class Answer(NamedTuple):
    """A record, and where it comes from; of a known one only the key, the graph and the rate."""

    record: Record
    origin: Origin


def as_it_is(problem: Problem) -> Problem:
    """Return a problem that needs no reading."""
    return problem


@dataclass(frozen=True, slots=True)
class Runner:
    """Answers of all placers at all rates.

    Attributes
    ----------
    reader
        Makes a problem of what it is given.
    kept
        Numbers of the keys of all results that are kept, ascending.
    proven
        Answers of the exact placer that were kept elsewhere.
    """

    contest: Comparison
    reader: Callable[[Any], Problem]
    kept: NDArray[np.uint64] | None = None
    proven: RecordIndex | None = None

    def __call__(self, item: Any) -> list[Answer]:
        """Answers in the order of rates and placers."""
        asked = self.reader(item)
        found = []
        for rate, problem in self.contest.at_rates(asked):
            digest = problem_hash(problem)
            for name in self.contest.placers:
                found.append(
                    self._answer(self._blank(digest, asked.graph.name, rate, name), problem)
                )
        return found

    def failed(self, asked: Problem, why: str) -> list[Answer]:
        """Answers where there is none, and why."""
        every = product(self.contest.at_rates(asked), self.contest.placers)
        return [
            Answer(
                replace(self._blank(problem_hash(at), asked.graph.name, rate, name), error=why),
                Origin.FAILED,
            )
            for (rate, at), name in every
        ]

    def measured_at(self, asked: Problem, i: int, record: Record) -> Record:
        """Return the record of the answer of a number with all that is to be measured of it."""
        problems = [problem for _, problem in self.contest.at_rates(asked)]
        return self._measured(record, problems[i // len(self.contest.placers)])

    def _blank(self, digest: str, graph: str, rate: float | None, name: str) -> Record:
        terms, judge = self.contest.terms(name), self.contest.judge.name
        return Record(digest, graph, rate, name, terms, None, None, 0.0, (), objective=judge)

    def _answer(self, blank: Record, problem: Problem) -> Answer:
        if self._is_kept(blank):
            return Answer(blank, Origin.FILE)
        known = None if self.proven is None else self.proven.find(blank.key)
        if known is not None and is_answer(known, problem):
            told = replace(known, graph=blank.graph, rate=blank.rate)
            return Answer(self._measured(told, problem), Origin.CACHE)
        try:
            return Answer(self._measured(self._record(blank, problem), problem), Origin.NEW)
        except StreamplaceError as error:  # a refusal is a result
            return Answer(replace(blank, error=str(error)), Origin.NEW)
        except Exception as error:
            LOG.info("%s on %s: %s", blank.placer, blank.graph, traceback.format_exc())
            why = f"{blank.placer}: {said(error)}"
            return Answer(replace(blank, error=why), Origin.FAILED)

    def _is_kept(self, blank: Record) -> bool:
        if self.kept is None:
            return False
        wanted = np.uint64(numbered(*blank.key))
        at = int(np.searchsorted(self.kept, wanted))
        return at < len(self.kept) and self.kept[at] == wanted

    def _measured(self, record: Record, problem: Problem) -> Record:
        """Return a record with all that is to be measured of its placement."""
        judge = self.contest.judge
        if record.value is None:
            return record
        measures = dict(judge.measures(problem, record.value))
        for name in self.contest.beside:
            other = named_objective(name)
            if name not in record.measures and other.refuses(problem) is None:
                measures[name] = other.value(problem, record.placement(problem))
        return replace(record, measures={**record.measures, **measures})

    def _record(self, blank: Record, problem: Problem) -> Record:
        judge, placer = self.contest.judge, named_placer(blank.placer)
        _warm_up(blank.placer, problem, judge)
        result = placer.place(problem, judge, seed=self.contest.seed, budget=self.contest.budget)
        demanded(problem, judge, result.placement)
        order = result.placement.priority
        return replace(
            blank,
            value=result.value,
            bound=result.bound,
            milliseconds=1000 * result.seconds,
            devices=tuple(result.placement.index.tolist()),
            priority=None if order is None else tuple(order.tolist()),
            queue=result.placement.queue,
            steps=_thinned(result.trace),
        )


def said(error: Exception) -> str:
    """What an unexpected error says, in one line."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return " ".join(f"{type(error).__name__}: {error}".split())


def _thinned(trace: Sequence[Improvement]) -> tuple[tuple[int, float], ...]:
    """Values by evaluations, the last of those between two powers of two."""
    last = {step.evaluations.bit_length(): (step.evaluations, step.value) for step in trace}
    return tuple(last[power] for power in sorted(last))


_warm: set[str] = set()


def _warm_up(name: str, problem: Problem, judge: Objective) -> None:
    """Let a placer load its libraries and kernels once per process, outside the clock."""
    if name not in _warm:
        _warm.add(name)
        brief = replace(named_placer(name), budget=Budget(seconds=0.05, evaluations=1))
        brief.place(problem, judge)
