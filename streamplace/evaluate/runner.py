"""Runner of a comparison: every placer places one problem, unless the result is known."""

import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import MissingPackageError, StreamplaceError
from streamplace.evaluate.comparison_run import ComparisonRun, terms_of
from streamplace.evaluate.optima import is_answer
from streamplace.evaluate.record_file import RecordIndex
from streamplace.evaluate.records import Record, key_number, problem_hash
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective, named_objective
from streamplace.placers.named import AliasedPlacer, named_placer
from streamplace.placers.registry import Budget, Placer
from streamplace.placers.request import PlacementRequest
from streamplace.placers.result import Improvement

LOG = logging.getLogger(__name__)


class Origin(Enum):
    """Origin of a record; a FAILED one is not a result, and is tried again next time."""

    FILE, CACHE, NEW, FAILED = range(4)


class Outcome(NamedTuple):
    """A record and its origin; a record from the FILE only has a key, a graph and a rate."""

    record: Record
    origin: Origin


class ComparedPlacer(NamedTuple):
    """A placer of a comparison: its name there, the resolved placer, and its terms."""

    named: AliasedPlacer
    placer: Placer
    terms: str


class PlacementAttempt(NamedTuple):
    """One placer on one problem at one rate for one objective; its record has no value yet."""

    record: Record
    problem: Problem
    judge: Objective
    request: PlacementRequest


def same_problem(problem: Problem) -> Problem:
    """Return a problem that needs no parsing."""
    return problem


class Runner:
    """Outcomes of all placers at all rates for all objectives."""

    def __init__(
        self,
        comparison: ComparisonRun,
        reader: Callable[[Any], Problem],
        saved: NDArray[np.uint64] | None = None,  # numbers of the keys of saved results, ascending
        proofs: RecordIndex | None = None,  # answers of the exact placer from the user's cache
    ) -> None:
        self.comparison, self.reader = comparison, reader
        self._saved, self._proofs = saved, proofs

    def __reduce__(self) -> tuple[Any, ...]:
        return Runner, (self.comparison, self.reader, self._saved, self._proofs)

    def __call__(self, item: Any) -> list[Outcome]:
        """Outcomes in the order of objectives, rates and placers."""
        return [self._outcome(attempt) for attempt in self._attempts(self.reader(item))]

    @cached_property
    def placers(self) -> tuple[ComparedPlacer, ...]:
        """Placers, resolved once per process."""
        budget, seed = self.comparison.budget, self.comparison.seed
        resolved = ((named, named_placer(named.spec)) for named in self.comparison.aliased)
        return tuple(
            ComparedPlacer(named, placer, terms_of(placer, budget, seed))
            for named, placer in resolved
        )

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """Objectives without their conditions."""
        return tuple(map(named_objective, self.comparison.objectives))

    @cached_property
    def judges(self) -> tuple[Objective, ...]:
        """Objectives, subject to the conditions."""
        return self.comparison.judges

    def failed(self, item: Any, reason: str) -> list[Outcome]:
        """Outcomes of an item whose worker was lost; saved results are not."""
        blanks = [attempt.record for attempt in self._attempts(self.reader(item))]
        return [
            Outcome(blank, Origin.FILE)
            if self._is_saved(blank)
            else Outcome(replace(blank, error=reason), Origin.FAILED)
            for blank in blanks
        ]

    def rerun(self, item: Any, i: int) -> Outcome:
        """Compute outcome i of an item, whether or not its result was saved."""
        return Runner(self.comparison, self.reader, None, self._proofs)._outcome(
            self._attempt(item, i)
        )

    def completed(self, item: Any, i: int, record: Record) -> Record:
        """Add missing measures to the saved record of outcome i."""
        wanted = {other.name for other in self._others(record.objective)}
        if record.value is None or wanted <= record.measures.keys():
            return record
        return self._measured(record, self._attempt(item, i))

    def _others(self, judge: str) -> list[Objective]:
        """Objectives other than that of this name."""
        pairs = zip(self.judges, self.objectives, strict=True)
        return [objective for other, objective in pairs if other.name != judge]

    def _attempt(self, item: Any, i: int) -> PlacementAttempt:
        return list(self._attempts(self.reader(item)))[i]

    def _attempts(self, problem: Problem) -> Iterator[PlacementAttempt]:
        at_rates = [(rate, at, problem_hash(at)) for rate, at in self.comparison.at_rates(problem)]
        graph = problem.graph.name
        for judge in self.judges:
            for rate, at, digest in at_rates:
                for (alias, spec), placer, terms in self.placers:
                    row = (digest, graph, rate, spec, terms)
                    record = Record(*row, None, None, 0.0, (), objective=judge.name, alias=alias)
                    request = self.comparison.request(placer, judge)
                    yield PlacementAttempt(record, at, judge, request)

    def _outcome(self, attempt: PlacementAttempt) -> Outcome:
        blank, problem = attempt.record, attempt.problem
        if self._is_saved(blank):
            return Outcome(blank, Origin.FILE)
        proof = None if self._proofs is None else self._proofs.find(blank.key)
        if proof is not None and is_answer(proof, problem):
            record = replace(proof, graph=blank.graph, rate=blank.rate, alias=blank.alias)
            return Outcome(self._measured(record, attempt), Origin.CACHE)
        try:
            return Outcome(self._measured(self._placed(attempt), attempt), Origin.NEW)
        except MissingPackageError as error:  # it may be installed before the next run
            return Outcome(replace(blank, error=str(error)), Origin.FAILED)
        except StreamplaceError as error:  # a refusal is a result
            return Outcome(replace(blank, error=str(error)), Origin.NEW)
        except Exception as error:
            LOG.info("%s on %s: %s", blank.placer, blank.graph, traceback.format_exc())
            reason = f"{blank.placer}: {error_line(error)}"
            return Outcome(replace(blank, error=reason), Origin.FAILED)

    def _is_saved(self, blank: Record) -> bool:
        if self._saved is None:
            return False
        number = np.uint64(key_number(*blank.key))
        at = int(np.searchsorted(self._saved, number))
        return at < len(self._saved) and self._saved[at] == number

    def _measured(self, record: Record, attempt: PlacementAttempt) -> Record:
        """Add all measures of its placement to a record."""
        if record.value is None:
            return record
        problem = attempt.problem
        measures = dict(attempt.judge.measures(problem, record.value))
        for other in self._others(record.objective):
            if other.name not in record.measures and other.refuses(problem) is None:
                measures[other.name] = other.value(problem, record.placement(problem))
        return replace(record, measures={**record.measures, **measures})

    def _placed(self, attempt: PlacementAttempt) -> Record:
        blank, problem, judge, request = attempt
        _warm_up(blank.placer, request.algorithm, problem, judge)
        result = request.place(problem)
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


def error_line(error: Exception) -> str:
    """Text of an unexpected error, on one line."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return " ".join(f"{type(error).__name__}: {error}".split())


def _thinned(trace: Sequence[Improvement]) -> tuple[tuple[int, float], ...]:
    """Thin a trace out to the last value between powers of two of evaluations."""
    last = {step.evaluations.bit_length(): (step.evaluations, step.value) for step in trace}
    return tuple(last[power] for power in sorted(last))


_warm: set[str] = set()


def _warm_up(name: str, placer: Placer, problem: Problem, judge: Objective) -> None:
    """Make a placer load its libraries and kernels once per process, before it is timed.

    Refusals with this small budget are ignored.
    """
    if name not in _warm:
        _warm.add(name)
        with suppress(StreamplaceError):
            replace(placer, budget=Budget(seconds=0.05, evaluations=1)).attempt(problem, judge)
