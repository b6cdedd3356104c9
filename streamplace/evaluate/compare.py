"""Comparing placers over a data set: on all cores, resumable, each result computed once."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from streamplace.evaluate.comparison import Comparison
from streamplace.evaluate.optima import is_prover, known_answers, remember
from streamplace.evaluate.parallel import parallel_map
from streamplace.evaluate.record_file import RecordFile
from streamplace.evaluate.record_index import RecordIndex
from streamplace.evaluate.records import Record
from streamplace.evaluate.runner import Answer, Origin, Runner, as_it_is
from streamplace.io.datasets import DataSet
from streamplace.model.problem import Problem
from streamplace.placers.named import named_placer

LOG = logging.getLogger(__name__)


OnFailure = Callable[[str, str], None]
"""Told the name of a graph that failed, and why."""


def compare(
    contest: Comparison,
    problems: Iterable[Problem],
    file: RecordFile | None = None,
    *,
    jobs: int | None = None,
    on: str | None = None,
    on_failure: OnFailure | None = None,
) -> Iterator[list[Record]]:
    """Records of every problem in turn; those in ``file`` are reused, new ones added to it.

    Problems are read and records written as they come, so neither fill the memory. A `DataSet` is
    parsed by those who work on it.

    Parameters
    ----------
    jobs
        Processes; all cores by default. Results do not depend on it.
    on
        Compute on Ray instead: ``ray`` for one on this machine, ``auto`` or an address for a
        cluster that runs. Results do not depend on it either.
    on_failure
        Told of every graph that failed: that a placer broke down on, or that killed its worker.
        By default it is logged. The others go on, and what failed is tried again next time.
    """
    for name in contest.placers:
        named_placer(name)
    with _keeping(file) as keep:
        table = _Table.laid(contest, problems, file, on_failure or _logged)
        LOG.info("%d results are known already", len(table.known or ()))
        lines = problems.lines() if isinstance(problems, DataSet) else problems
        for played in parallel_map(table.referee, table.noted(lines), jobs, on, lost=table.lost):
            answers = table.told(played)
            keep([a.record for a in answers if a.origin in (Origin.CACHE, Origin.NEW)])
            remember([a.record for a in answers if a.origin is Origin.NEW])
            yield [answer.record for answer in answers]


@contextmanager
def _keeping(file: RecordFile | None) -> Iterator[Callable[[list[Record]], None]]:
    """Yield what keeps records in a file, if there is one; nobody else may write it meanwhile."""
    if file is None:
        yield lambda records: None
        return
    with file.claimed() as keep:
        yield keep


@dataclass(frozen=True, slots=True)
class _Table:
    """Where answers come together: with what is known, and what is being worked on."""

    referee: Runner
    known: RecordIndex | None
    on_failure: OnFailure
    under_way: deque[Any] = field(default_factory=deque)

    @classmethod
    def laid(
        cls,
        contest: Comparison,
        problems: Iterable[Problem],
        file: RecordFile | None,
        on_failure: OnFailure,
    ) -> "_Table":
        known = None if file is None else RecordIndex.of(file)
        proven = known_answers() if any(map(is_prover, contest.placers)) else None
        reader = problems.reader if isinstance(problems, DataSet) else as_it_is
        hashes = None if known is None else known.hashes
        return cls(Runner(contest, reader, hashes, proven), known, on_failure)

    def noted(self, items: Iterable[Any]) -> Iterator[Any]:
        """Items, which are remembered until their answers come."""
        for item in items:
            self.under_way.append(item)
            yield item

    def told(self, answers: list[Answer]) -> list[Answer]:
        """Answers of the next item, with the records of those that are known."""
        item = self.under_way.popleft()
        found = []
        for i, answer in enumerate(answers):
            if answer.origin is Origin.FILE:
                answer = self._found(answer, item, i)
            if answer.origin is Origin.FAILED:
                self.on_failure(answer.record.graph, answer.record.error or "")
            found.append(answer)
        return found

    def lost(self, item: Any, why: str) -> list[Answer]:
        """Answers of an item that kills whoever works on it."""
        return self.referee.failed(self.referee.reader(item), why)

    def _found(self, answer: Answer, item: Any, i: int) -> Answer:
        """Return a known answer with its record, measured if need be."""
        asked = answer.record
        known = None if self.known is None else self.known.find(asked.key)
        if known is None:  # the file was replaced meanwhile
            return replace(self.referee, kept=None)(item)[i]
        record = replace(known, graph=asked.graph, rate=asked.rate)
        missing = set(self.referee.contest.beside) - record.measures.keys()
        if missing and record.value is not None:
            record = self.referee.measured_at(self.referee.reader(item), i, record)
        return Answer(record, Origin.FILE)


def _logged(graph: str, why: str) -> None:
    LOG.warning("graph %s failed: %s", graph, why)
