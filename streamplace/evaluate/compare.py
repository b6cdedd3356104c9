"""Comparing placers over a data set: on all cores, resumable, each result computed once."""

import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from streamplace.errors import StreamplaceError
from streamplace.evaluate.optima import is_prover, known_optima, remember
from streamplace.evaluate.records import Record, RecordFile, problem_hash
from streamplace.io.files import is_file
from streamplace.io.weights import shipped, stamped
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import Budget, Placer, named_placer

LOG = logging.getLogger(__name__)

FEW_GRAPHS = 16
"""Fewer graphs than this are not worth starting processes for."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Who is compared on what.

    Attributes
    ----------
    placers
        Placers by name, options after colons (``metis:k=3``).
    rates
        Total source rates; empty for every graph's own, in one table.
    """

    placers: tuple[str, ...]
    cluster: Cluster
    rates: tuple[float, ...] = ()
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    constraints: Constraints = field(default_factory=Constraints)

    def terms(self, placer: str) -> str:
        """Budget, seed and weights as a text, part of what makes a result a repetition."""
        seconds = "no time limit" if self.budget.seconds is None else f"{self.budget.seconds:g} s"
        text = f"{seconds}, {self.budget.evaluations or 'any'} evaluations, seed {self.seed}"
        weights = _weights_of(named_placer(placer))
        return text if weights is None else f"{text}, weights {_digest(*stamped(weights))}"

    def problems(self, graph: StreamGraph) -> Iterator[tuple[float | None, Problem]]:
        """Problem of a graph at every rate, or at its own, whose rate is told as None."""
        for rate in self.rates or (None,):
            scaled = graph if rate is None else graph.at_rate(rate)
            yield rate, Problem(scaled, self.cluster, self.constraints)


def compare(
    contest: Contest, graphs: Sequence[StreamGraph], file: RecordFile, *, jobs: int | None = None
) -> Iterator[list[Record]]:
    """Records of every graph in turn; those in ``file`` are reused, new ones added to it.

    Parameters
    ----------
    jobs
        Processes; all cores by default. Results do not depend on it.
    """
    for name in contest.placers:
        named_placer(name)
    file.mend()
    done = {record.key: record for record in file}
    optima = known_optima() if any(map(is_prover, contest.placers)) else {}
    LOG.info("%d results and %d proven optima are known already", len(done), len(optima))
    referee = _Referee(contest, done, optima)
    for found in _mapped(referee, graphs, jobs or len(os.sched_getaffinity(0))):
        new = [record for record in found if record.key not in done]
        if new:
            file.append(new)
            remember(new)
        yield found


@dataclass(frozen=True, slots=True)
class _Referee:
    """Lets every placer loose on one graph, except where the result is known."""

    contest: Contest
    done: dict[tuple[str, str, str], Record]
    optima: dict[str, Record]

    def __call__(self, graph: StreamGraph) -> list[Record]:
        """Records of all placers at all rates."""
        found = []
        for rate, problem in self.contest.problems(graph):
            digest = problem_hash(problem)
            for name in self.contest.placers:
                terms = self.contest.terms(name)
                known = self.done.get((digest, name, terms))
                if known is None and is_prover(name) and digest in self.optima:
                    known = self.optima[digest]
                if known is not None:
                    told = replace(known, graph=graph.name, rate=rate, placer=name, budget=terms)
                    found.append(told)
                else:
                    facts = (digest, graph.name, rate, name, terms)
                    found.append(self._record(facts, name, problem))
        return found

    def _record(
        self, facts: tuple[str, str, float | None, str, str], name: str, problem: Problem
    ) -> Record:
        try:
            _warm_up(name, problem)
            result = named_placer(name).place(
                problem,
                OBJECTIVES["throughput"],
                seed=self.contest.seed,
                budget=self.contest.budget,
            )
        except StreamplaceError as error:
            return Record(*facts, None, None, 0.0, (), str(error))
        devices = tuple(result.placement.index.tolist())
        return Record(*facts, result.value, result.bound, 1000 * result.seconds, devices)


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


def _warm_up(name: str, problem: Problem) -> None:
    """Let a placer load its libraries and kernels once per process, outside the clock."""
    if name not in _warm:
        _warm.add(name)
        brief = replace(named_placer(name), budget=Budget(seconds=0.05, evaluations=1))
        brief.place(problem, OBJECTIVES["throughput"])


def _mapped(referee: _Referee, graphs: Sequence[StreamGraph], jobs: int) -> Iterator[list[Record]]:
    if jobs == 1 or len(graphs) < FEW_GRAPHS:
        yield from map(referee, graphs)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, _begin, (referee,)) as pool:
        yield from pool.imap(_play, graphs, chunksize=max(1, min(16, len(graphs) // (4 * jobs))))


_referee: _Referee


def _begin(referee: _Referee) -> None:
    """Set up a worker process; Ctrl-C is the parent's business."""
    global _referee
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _referee = referee


def _play(graph: StreamGraph) -> list[Record]:
    return _referee(graph)
