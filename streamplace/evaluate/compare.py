"""Comparing placers over a data set: on all cores, resumable, each result computed once."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from streamplace.errors import SettingError, StreamplaceError
from streamplace.evaluate.known import Known
from streamplace.evaluate.optima import is_answer, is_prover, known_answers, remember
from streamplace.evaluate.records import Key, Record, RecordFile, problem_hash
from streamplace.evaluate.workers import available_cores, mapped
from streamplace.io.files import is_file
from streamplace.io.weights import shipped, stamped
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import Condition, demanded, subject_to
from streamplace.objectives.registry import Objective, named_objective
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget, Improvement, Placer

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Contest:
    """Who is compared on what.

    Attributes
    ----------
    placers
        Placers by name, options after colons (``metis:k=3``).
    rates
        Total source rates; empty for every graph's own, in one table.
    objective, require
        What is best, and what has to hold besides, by name.
    beside
        Other objectives by which every answer is valued.
    """

    placers: tuple[str, ...]
    rates: tuple[float, ...] = ()
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    objective: str = "throughput"
    require: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def judge(self) -> Objective:
        """The objective, subject to the conditions."""
        return _judge(self.objective, self.require)

    def terms(self, placer: str) -> str:
        """Budget, seed and weights as a text, part of what makes a result a repetition."""
        seconds = "no time limit" if self.budget.seconds is None else f"{self.budget.seconds:g} s"
        text = f"{seconds}, {self.budget.evaluations or 'any'} evaluations, seed {self.seed}"
        weights = _weights_of(named_placer(placer))
        return text if weights is None else f"{text}, weights {_digest(*stamped(weights))}"

    def at_rates(self, problem: Problem) -> Iterator[tuple[float | None, Problem]]:
        """Yield a problem at every rate, or as it is, whose rate is told as None."""
        for rate in self.rates or (None,):
            yield rate, problem if rate is None else problem.at_rate(rate)


def compare(
    contest: Contest,
    problems: Iterable[Problem],
    file: RecordFile | None = None,
    *,
    jobs: int | None = None,
    on: str | None = None,
) -> Iterator[list[Record]]:
    """Records of every problem in turn; those in ``file`` are reused, new ones added to it.

    Problems are read and records written as they come, so neither fill the memory.

    Parameters
    ----------
    jobs
        Processes; all cores by default. Results do not depend on it.
    on
        Compute on Ray instead: ``ray`` for one on this machine, ``auto`` or an address for a
        cluster that runs. Results do not depend on it either.
    """
    for name in contest.placers:
        named_placer(name)
    with _keeping(file) as keep:
        known = _known(contest, file)
        LOG.info("%d results are known already", sum(map(len, known.values())))
        for played in _spread(_Referee(contest, known), problems, jobs, on):
            keep([record for record, origin in played if origin is not Origin.FILE])
            remember([record for record, origin in played if origin is Origin.NEW])
            yield [record for record, _ in played]


def _spread(
    referee: "_Referee", problems: Iterable[Problem], jobs: int | None, on: str | None
) -> Iterator[list[tuple[Record, "Origin"]]]:
    """Records of every problem in turn, computed here or on Ray."""
    if on is None:
        return mapped(referee, problems, jobs or available_cores())
    if jobs is not None:
        raise SettingError("jobs are processes of this machine; leave them out where Ray computes")
    from streamplace.evaluate.on_ray import mapped_on_ray

    return mapped_on_ray(referee, problems, on)


@contextmanager
def _keeping(file: RecordFile | None) -> Iterator[Callable[[list[Record]], None]]:
    """Yield what keeps records in a file, if there is one; nobody else may write it meanwhile."""
    if file is None:
        yield lambda records: None
        return
    with file.claimed() as keep:
        yield keep


class Origin(Enum):
    """Where a record comes from."""

    FILE, CACHE, NEW = range(3)


def _known(contest: Contest, file: RecordFile | None) -> dict[Origin, Known]:
    """Results that need not be computed again."""
    known = {} if file is None else {Origin.FILE: Known.of(file)}
    if any(map(is_prover, contest.placers)):
        known[Origin.CACHE] = known_answers()
    return known


@dataclass(frozen=True, slots=True)
class _Referee:
    """Lets every placer loose on one problem, except where the result is known."""

    contest: Contest
    known: dict[Origin, Known]

    def __call__(self, asked: Problem) -> list[tuple[Record, Origin]]:
        """Records of all placers at all rates."""
        found, graph = [], asked.graph.name
        for rate, problem in self.contest.at_rates(asked):
            digest = problem_hash(problem)
            for name in self.contest.placers:
                key = (digest, self.contest.judge.name, name, self.contest.terms(name))
                record, origin = self._found(key, problem)
                if record is None:
                    facts = (digest, graph, rate, *key[2:])
                    record = self._record(facts, name, problem)
                told = replace(record, graph=graph, rate=rate)
                found.append((self._measured(told, problem), origin))
        return found

    def _found(self, key: Key, problem: Problem) -> tuple[Record | None, Origin]:
        """Record of a key that is known, and where from."""
        for origin, known in self.known.items():
            record = known.find(key)
            if record is not None and (origin is Origin.FILE or is_answer(record, problem)):
                return record, origin
        return None, Origin.NEW

    def _measured(self, record: Record, problem: Problem) -> Record:
        """Return a record with all that is to be measured of its placement."""
        judge = self.contest.judge
        if record.value is None:
            return record
        measures = dict(judge.measures(problem, record.value))
        for name in self.contest.beside:
            other = named_objective(name)
            if name not in record.measures and other.refuses(problem) is None:
                placement = problem.placement(record.devices, record.priority)
                measures[name] = other.value(problem, placement)
        return replace(record, measures={**record.measures, **measures})

    def _record(
        self, facts: tuple[str, str, float | None, str, str], name: str, problem: Problem
    ) -> Record:
        judge = self.contest.judge
        try:
            _warm_up(name, problem, judge)
            result = named_placer(name).place(
                problem, judge, seed=self.contest.seed, budget=self.contest.budget
            )
            demanded(problem, judge, result.placement)
        except StreamplaceError as error:
            return Record(*facts, None, None, 0.0, (), str(error), judge.name)
        devices = tuple(result.placement.index.tolist())
        milliseconds = 1000 * result.seconds
        order = result.placement.priority
        return Record(
            *facts,
            result.value,
            result.bound,
            milliseconds,
            devices,
            objective=judge.name,
            priority=None if order is None else tuple(order.tolist()),
            steps=_thinned(result.trace),
        )


def _thinned(trace: Sequence[Improvement]) -> tuple[tuple[int, float], ...]:
    """Values by evaluations, the last of those between two powers of two."""
    last = {step.evaluations.bit_length(): (step.evaluations, step.value) for step in trace}
    return tuple(last[power] for power in sorted(last))


@lru_cache(maxsize=8)
def _judge(objective: str, require: tuple[str, ...]) -> Objective:
    return subject_to(named_objective(objective), [Condition.of(text) for text in require])


def _weights_of(placer: Placer) -> Path | None:
    """Weights that a learned placer works with, None for any other."""
    if "weights" not in placer.defaults():
        return None
    named = placer.options.get("weights")
    return Path(named) if named else shipped(placer.name)


@lru_cache(maxsize=64)
def _digest(path: Path, stamp: tuple[int, int]) -> str:
    """Digest of a file's content, short; a file that is not there is told when placing."""
    return sha256(path.read_bytes()).hexdigest()[:12] if is_file(path) else "missing"


_warm: set[str] = set()


def _warm_up(name: str, problem: Problem, judge: Objective) -> None:
    """Let a placer load its libraries and kernels once per process, outside the clock."""
    if name not in _warm:
        _warm.add(name)
        brief = replace(named_placer(name), budget=Budget(seconds=0.05, evaluations=1))
        brief.place(problem, judge)
