"""Comparison of placers over a data set: on all cores, resumable, each result computed once."""

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from streamplace.errors import MissingPackageError, OptionError, StreamplaceError
from streamplace.evaluate.code_digest import code_digest
from streamplace.evaluate.parallel import parallel_map
from streamplace.evaluate.records import (
    Key,
    Record,
    claim_records,
    problem_hash,
    read_records,
    with_result,
)
from streamplace.io.datasets import DataSet
from streamplace.io.files import is_file
from streamplace.io.weights import read_tensors, stamped
from streamplace.learn.model_weights import shipped
from streamplace.model.problem import Problem
from streamplace.model.units import exact_digits
from streamplace.objectives.conditions import composed_objective
from streamplace.objectives.registry import DEFAULT, Objective, named_objective
from streamplace.placers.named import AliasedPlacer, aliased_placers, named_placer
from streamplace.placers.registry import PLACERS, USUAL_BUDGET, Budget, Placer

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ComparisonRun:
    """A comparison: every placer places every problem at every rate for every objective."""

    # By name, options after colons (``metis:k=3``), aliases before the name (``three=metis:k=3``).
    placers: tuple[str, ...]
    # Total source rates; empty for every graph's original rate, in one table.
    rates: tuple[float, ...] = ()
    seed: int = 0
    budget: Budget = USUAL_BUDGET
    objectives: tuple[str, ...] = (DEFAULT,)  # by name; every placement is valued by all of them
    require: tuple[str, ...] = ()  # conditions that every placement must meet

    def __post_init__(self) -> None:
        names = dict.fromkeys(named_objective(name).name for name in self.objectives)
        object.__setattr__(self, "objectives", tuple(names))

    @property
    def aliased(self) -> tuple[AliasedPlacer, ...]:
        """Placers with their aliases."""
        return aliased_placers(self.placers)

    @property
    def aliases(self) -> dict[str, str]:
        """Alias → placer, for placers that have one."""
        return {placer.alias: placer.spec for placer in self.aliased if placer.alias}

    @property
    def judges(self) -> tuple[Objective, ...]:
        """Objectives, subject to the conditions."""
        return tuple(composed_objective(name, self.require) for name in self.objectives)


def terms_of(placer: Placer, budget: Budget, seed: int, code: str) -> str:
    """Budget, seed, code and weights as a text; results are reused only if it is equal.

    ``code`` describes the code of the objective, by `code_of`.
    """
    seconds = "no time limit" if budget.seconds is None else f"{exact_digits(budget.seconds)} s"
    text = f"{seconds}, {budget.evaluations or 'any'} evaluations, seed {seed}"
    words = [value.split(":")[0] for value in placer.options.values() if isinstance(value, str)]
    others = [PLACERS[word] for word in words if word in PLACERS]  # placers that it starts from
    text += f", placer code {code_digest(placer, others)}, {code}"
    weights = [_digest(*stamped(path)) for path in weights_of(placer)]
    return f"{text}, weights {' '.join(weights)}" if weights else text


def code_of(judge: Objective) -> str:
    """Text for the code of an objective."""
    return f"objective code {code_digest(judge)}"


def weights_of(placer: Placer) -> list[Path]:
    """Weights files of a learned placer; empty for any other placer."""
    if "weights" not in placer.defaults():
        return []
    if path := placer.options.get("weights"):
        return [Path(path)]
    names = ("pilot", "pilot-makespan") if placer.name == "pilot" else (placer.name,)
    return [shipped(name) for name in names]


@lru_cache(maxsize=64)
def _digest(path: Path, stamp: tuple[int, int]) -> str:
    """Short digest of a file's content; a missing file is reported when the placer reads it."""
    return sha256(path.read_bytes()).hexdigest()[:12] if is_file(path) else "missing"


def check_placer(placer: Placer, judges: Sequence[Objective]) -> None:
    """Raise an error if a placer supports none of the objectives, or its weights are missing."""
    if not any(map(placer.judges, judges)):
        placer.check_objective(judges[0])
    for path in weights_of(placer):
        read_tensors(path)


class Outcome(NamedTuple):
    """A record; after a failure it is not saved, and the placer tries again next time."""

    record: Record
    has_failed: bool = False


class _Attempt(NamedTuple):
    """One placer on one problem at one rate for one objective."""

    record: Record  # without a value yet
    problem: Problem
    judge: Objective
    others: Mapping[str, Objective]  # further objectives that evaluate its placement
    placer: Placer

    def failed(self, reason: str) -> Outcome:
        return Outcome(replace(self.record, error=reason), has_failed=True)


def same_problem(problem: Problem) -> Problem:
    """Return the problem: a reader for parsed problems, which can be pickled."""
    return problem


class Runner:
    """Outcomes of all placers at all rates for all objectives on one problem."""

    def __init__(self, comparison: ComparisonRun, reader: Callable[[Any], Problem]) -> None:
        self.comparison, self.reader = comparison, reader
        self.saved: dict[Key, Record] = {}  # results that are not computed again, by key

    def __getstate__(self) -> dict[str, Any]:
        """Attributes without placers and objectives, which each process resolves by name."""
        names = ("comparison", "reader", "saved")
        return {name: getattr(self, name) for name in names}

    def __call__(self, item: Any) -> list[Outcome]:
        """Outcomes in the order of objectives, rates and placers."""
        return [self._saved(attempt) or self._tried(attempt) for attempt in self._attempts(item)]

    def failed(self, item: Any, reason: str) -> list[Outcome]:
        """Outcomes of an item whose worker was killed: saved results, and failures."""
        return [self._saved(attempt) or attempt.failed(reason) for attempt in self._attempts(item)]

    @property
    def terms(self) -> set[tuple[str, str, str]]:
        """Objective, placer and terms of all results, as in their keys."""
        return {
            (judge.name, named.spec, terms)
            for judge, _ in self._objectives
            for named, _, terms in self._placers[judge.name]
        }

    @cached_property
    def codes(self) -> dict[str, str]:
        """Code of each objective."""
        return {judge.name: code_of(judge) for judge, _ in self._objectives}

    @cached_property
    def _placers(self) -> dict[str, list[tuple[AliasedPlacer, Placer, str]]]:
        """Names, placers and terms of each objective."""
        budget, seed = self.comparison.budget, self.comparison.seed
        placers = [(named, named_placer(named.spec)) for named in self.comparison.aliased]
        return {
            judge.name: [
                (named, placer, terms_of(placer, budget, seed, self.codes[judge.name]))
                for named, placer in placers
            ]
            for judge, _ in self._objectives
        }

    @cached_property
    def _objectives(self) -> list[tuple[Objective, dict[str, Objective]]]:
        """Objectives with their conditions, and the others without."""
        plain = [named_objective(name) for name in self.comparison.objectives]
        return [
            (judge, {other.name: other for other in plain if other is not target})
            for judge, target in zip(self.comparison.judges, plain, strict=True)
        ]

    def _attempts(self, item: Any) -> Iterator[_Attempt]:
        problem = self.reader(item)
        rates: Sequence[float | None] = self.comparison.rates or (None,)
        problems = list(map(problem.at_rate, rates))
        digests = list(map(problem_hash, problems))
        graph, attributes = problem.graph.name, dict(problem.graph.attributes)
        for judge, others in self._objectives:
            for rate, at_rate, digest in zip(rates, problems, digests, strict=True):
                for (alias, spec), placer, terms in self._placers[judge.name]:
                    record = Record(
                        problem=digest, graph=graph, rate=rate, placer=spec, budget=terms,
                        value=None, bound=None, milliseconds=0.0, devices=(),
                        objective=judge.name, alias=alias, attributes=attributes,
                    )  # fmt: skip
                    yield _Attempt(record, at_rate, judge, others, placer)

    def _saved(self, attempt: _Attempt) -> Outcome | None:
        """Saved outcome of an attempt, evaluated again by the other objectives."""
        saved = self.saved.get(attempt.record.key)
        if saved is None:
            return None
        names = ("graph", "rate", "alias", "attributes")  # equal problems may differ in these
        facts = {name: getattr(attempt.record, name) for name in names}
        return Outcome(_measured(replace(saved, measures={}, **facts), attempt))

    def _tried(self, attempt: _Attempt) -> Outcome:
        blank = attempt.record
        try:
            return Outcome(_measured(self._placed(attempt), attempt))
        except OptionError:
            raise
        except MissingPackageError as error:  # it may be installed before the next run
            return attempt.failed(str(error))
        except StreamplaceError as error:  # a refusal is a result
            return Outcome(replace(blank, error=str(error)))
        except Exception as error:
            LOG.info("%s on %s: %s", blank.placer, blank.graph, traceback.format_exc())
            return attempt.failed(f"{blank.placer}: {error_line(error)}")

    def _placed(self, attempt: _Attempt) -> Record:
        blank, problem, judge, _, placer = attempt
        _warm_up(blank.placer, placer, problem, judge)
        budget, seed = self.comparison.budget, self.comparison.seed
        return with_result(blank, placer.place(problem, judge, seed=seed, budget=budget))


def _measured(record: Record, attempt: _Attempt) -> Record:
    """Add all measures of its placement to a record."""
    if record.value is None:
        return record
    problem = attempt.problem
    measures = dict(attempt.judge.measures(problem, record.value))
    for name, other in attempt.others.items():
        if other.refuses(problem) is None:
            measures[name] = other.value(problem, record.placement(problem))
    finite = {name: value for name, value in measures.items() if isfinite(value)}
    return replace(record, measures=finite)


def error_line(error: Exception) -> str:
    """Text of an unexpected error, on one line."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return " ".join(f"{type(error).__name__}: {error}".split())


_warm: set[str] = set()


def _warm_up(name: str, placer: Placer, problem: Problem, judge: Objective) -> None:
    """Make a placer load its libraries and kernels once per process, before it is timed.

    Refusals with this small budget are ignored.
    """
    if name not in _warm:
        _warm.add(name)
        with suppress(StreamplaceError):
            replace(placer, budget=Budget(seconds=0.05, evaluations=1)).attempt(problem, judge)


def records_of(
    comparison: ComparisonRun,
    problems: Iterable[Problem],
    file: Path | None = None,
    *,
    jobs: int | None = None,
    on: str | None = None,
    on_failure: Callable[[str, str], None] | None = None,
    on_saved: Callable[[Record], None] | None = None,
    on_reused: Callable[[int], None] | None = None,
) -> Iterator[list[Record]]:
    """Yield the records of every problem; records in ``file`` are reused, new ones added to it.

    Problems are read and new records written one after the other, so neither fill the memory. The
    workers parse the problems of a `DataSet`. Records of a problem are in order of objectives,
    rates and placers, and do not depend on ``jobs`` and ``on`` (see `parallel_map`).

    ``on_failure`` is called with every graph on which a placer raised an error or the worker was
    killed, and the reason; by default, it is logged. The other graphs are still compared, and
    failed ones are tried again next time. ``on_saved`` is called with every record in ``file`` of
    these objectives, unless their code has changed; the file is read only once. ``on_reused`` is
    called with the number of reused records of each problem.
    """
    reader = problems.reader if isinstance(problems, DataSet) else same_problem
    runner = Runner(comparison, reader)
    terms = runner.terms  # unknown placers are refused before the file is made
    failed = on_failure or partial(LOG.warning, "graph %s failed: %s")
    claimed: AbstractContextManager[Callable[[Iterable[Record]], None] | None] = (
        nullcontext() if file is None else claim_records(file)
    )
    with claimed as save:
        for record in () if file is None else read_records(file):
            if record.key[1:] in terms:
                runner.saved[record.key] = record
            code = runner.codes.get(record.objective)
            if on_saved is not None and code is not None and code in record.budget:
                on_saved(record)
        items = problems.lines() if isinstance(problems, DataSet) else problems
        for outcomes in parallel_map(runner, items, jobs, on, lost=runner.failed):
            for outcome in outcomes:
                if outcome.has_failed:
                    failed(outcome.record.graph, outcome.record.error or "")
            if save is not None:
                records = [outcome.record for outcome in outcomes if not outcome.has_failed]
                new = [record for record in records if record.key not in runner.saved]
                save(new)
                if on_reused is not None:
                    on_reused(len(records) - len(new))
            yield [outcome.record for outcome in outcomes]
