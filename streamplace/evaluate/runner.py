"""Runner of a comparison: every placer places one problem, unless the result is known."""

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import cached_property
from math import isfinite
from types import MappingProxyType
from typing import Any, NamedTuple

from streamplace.errors import MissingPackageError, StreamplaceError
from streamplace.evaluate.comparison_run import ComparisonRun, terms_of
from streamplace.evaluate.optima import is_answer
from streamplace.evaluate.records import Key, Record, problem_hash
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective, named_objective
from streamplace.placers.named import AliasedPlacer, named_placer
from streamplace.placers.registry import Budget, Placer
from streamplace.placers.request import PlacementRequest
from streamplace.placers.result import Improvement

LOG = logging.getLogger(__name__)


class Origin(Enum):
    """Origin of a record; a FAILED one is not a result, and is tried again next time."""

    SAVED, PROOF, NEW, FAILED = range(4)


class Outcome(NamedTuple):
    """A record and its origin."""

    record: Record
    origin: Origin


class _Attempt(NamedTuple):
    """One placer on one problem at one rate for one objective; its record has no value yet."""

    record: Record
    problem: Problem
    judge: Objective
    request: PlacementRequest


def same_problem(problem: Problem) -> Problem:
    """Return a problem that needs no parsing."""
    return problem


class Runner:
    """Outcomes of all placers at all rates for all objectives.

    Attributes
    ----------
    saved
        Results that are not computed again, by key.
    proofs
        Answers of the exact placer from the user's cache, by key.
    """

    def __init__(
        self,
        comparison: ComparisonRun,
        reader: Callable[[Any], Problem],
        saved: Mapping[Key, Record] = MappingProxyType({}),
        proofs: Mapping[Key, Record] = MappingProxyType({}),
    ) -> None:
        self.comparison, self.reader = comparison, reader
        self.saved, self.proofs = dict(saved), dict(proofs)

    def __reduce__(self) -> tuple[Any, ...]:
        return Runner, (self.comparison, self.reader, self.saved, self.proofs)

    def __call__(self, item: Any) -> list[Outcome]:
        """Outcomes in the order of objectives, rates and placers."""
        return [self._outcome(attempt) for attempt in self._attempts(self.reader(item))]

    @property
    def terms(self) -> set[tuple[str, str, str]]:
        """Objective, placer and terms of all results, as in their keys."""
        return {
            (judge.name, named.spec, terms)
            for judge, _ in self._objectives
            for named, _, terms in self._placers
        }

    def failed(self, item: Any, reason: str) -> list[Outcome]:
        """Outcomes of an item whose worker was lost; saved results are not."""
        return [
            self._saved(attempt) or Outcome(replace(attempt.record, error=reason), Origin.FAILED)
            for attempt in self._attempts(self.reader(item))
        ]

    @cached_property
    def _placers(self) -> list[tuple[AliasedPlacer, Placer, str]]:
        """Names, placers and terms, resolved once."""
        budget, seed = self.comparison.budget, self.comparison.seed
        placers = [(named, named_placer(named.spec)) for named in self.comparison.aliased]
        return [(named, placer, terms_of(placer, budget, seed)) for named, placer in placers]

    @cached_property
    def _objectives(self) -> list[tuple[Objective, Objective]]:
        """Objectives with their conditions and without, resolved once."""
        plain = map(named_objective, self.comparison.objectives)
        return list(zip(self.comparison.judges, plain, strict=True))

    def _attempts(self, problem: Problem) -> Iterator[_Attempt]:
        at_rates = [(rate, at, problem_hash(at)) for rate, at in self.comparison.at_rates(problem)]
        graph = problem.graph.name
        for judge, _ in self._objectives:
            for rate, at, digest in at_rates:
                for (alias, spec), placer, terms in self._placers:
                    row = (digest, graph, rate, spec, terms)
                    record = Record(*row, None, None, 0.0, (), objective=judge.name, alias=alias)
                    yield _Attempt(record, at, judge, self.comparison.request(placer, judge))

    def _outcome(self, attempt: _Attempt) -> Outcome:
        blank = attempt.record
        if (saved := self._saved(attempt)) is not None:
            return saved
        proof = self.proofs.get(blank.key)
        if proof is not None and is_answer(proof, attempt.problem):
            return Outcome(self._measured(_renamed(proof, blank), attempt), Origin.PROOF)
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

    def _saved(self, attempt: _Attempt) -> Outcome | None:
        """Saved outcome of an attempt, with the measures that it lacks."""
        saved = self.saved.get(attempt.record.key)
        if saved is None:
            return None
        record = _renamed(saved, attempt.record)
        if not self._others(record.objective).keys() <= record.measures.keys():
            record = self._measured(record, attempt)
        return Outcome(record, Origin.SAVED)

    def _others(self, judge: str) -> dict[str, Objective]:
        """Objectives other than that of this name."""
        return {plain.name: plain for other, plain in self._objectives if other.name != judge}

    def _measured(self, record: Record, attempt: _Attempt) -> Record:
        """Add all measures of its placement to a record."""
        if record.value is None:
            return record
        problem = attempt.problem
        measures = dict(attempt.judge.measures(problem, record.value))
        for name, other in self._others(record.objective).items():
            if name not in record.measures and other.refuses(problem) is None:
                measures[name] = other.value(problem, record.placement(problem))
        finite = {name: value for name, value in measures.items() if isfinite(value)}
        return replace(record, measures={**record.measures, **finite})

    def _placed(self, attempt: _Attempt) -> Record:
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


def _renamed(record: Record, blank: Record) -> Record:
    """A record of an equal problem, with the names of this one."""
    return replace(record, graph=blank.graph, rate=blank.rate, alias=blank.alias)


def error_line(error: Exception) -> str:
    """Text of an unexpected error, on one line."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return " ".join(f"{type(error).__name__}: {error}".split())


def _thinned(trace: Sequence[Improvement]) -> tuple[tuple[int, float], ...]:
    """Thin a trace out to the last value between powers of two of evaluations."""
    last = {
        step.evaluations.bit_length(): (step.evaluations, step.value)
        for step in trace
        if isfinite(step.value)
    }
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
