"""Comparison of placers over a data set: on all cores, resumable, each result computed once."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from streamsim import first_use

from streamplace.errors import SettingError
from streamplace.evaluate.comparison_run import ComparisonRun
from streamplace.evaluate.optima import is_prover, known_answers, remember
from streamplace.evaluate.parallel import parallel_map
from streamplace.evaluate.record_file import RecordFile, RecordIndex
from streamplace.evaluate.records import Record
from streamplace.evaluate.runner import Origin, Outcome, Runner, same_problem
from streamplace.io.datasets import DataSet
from streamplace.io.files import spot
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem
from streamplace.placers.named import AliasedPlacer

LOG = logging.getLogger(__name__)
OnFailure = Callable[[str, str], None]
"""Called with the name of a graph that failed, and the reason."""
OnSaved = Callable[[Record], None]
"""Called with every record that the file has before the comparison begins."""


class SavedAliases:
    """Aliases in a file of results, compared with those of a comparison."""

    def __init__(self, placers: Iterable[AliasedPlacer], path: Path) -> None:
        self._specs = {alias: spec for alias, spec in placers if alias is not None}
        self._path = path
        self._saved: set[str] = set()

    def check(self, record: Record) -> None:
        """Raise SettingError if a saved record has an alias that now names another placer."""
        if record.alias is None or record.alias not in self._specs:
            return
        if record.placer != self._specs[record.alias]:
            raise SettingError(
                f"{spot(self._path)}: the alias {quoted(record.alias)} stands for "
                f"{quoted(record.placer)} in these results, not for "
                f"{quoted(self._specs[record.alias])}; choose another alias or another folder"
            )
        self._saved.add(record.alias)

    def is_new(self, record: Record) -> bool:
        """Whether a record has an alias that is in no saved record."""
        return record.alias is not None and record.alias not in self._saved


def compare(
    comparison: ComparisonRun,
    problems: Iterable[Problem],
    file: RecordFile | None = None,
    *,
    jobs: int | None = None,
    on: str | None = None,
    on_failure: OnFailure | None = None,
    on_saved: OnSaved | None = None,
) -> Iterator[list[Record]]:
    """Yield the records of every problem; those in ``file`` are reused, new ones are added to it.

    Problems are read and records written one after the other, so neither fill the memory. The
    workers parse the problems of a `DataSet`. Records of a problem are in order of objectives,
    rates and placers, and do not depend on ``jobs`` and ``on`` (see `parallel_map`).

    ``on_failure`` is called for every graph that failed, because a placer raised an error or the
    worker was killed; by default, it is logged. The other graphs are still compared, and failed
    ones are tried again next time. ``on_saved`` is called with every record in ``file``, which is
    read only once.
    """
    reader = problems.reader if isinstance(problems, DataSet) else same_problem
    specs = [placer.named.spec for placer in Runner(comparison, reader).placers]
    with _written(file) as save:
        saved, aliases = None, None
        if file is not None:
            aliases = SavedAliases(comparison.aliased, file.path)
            saved = RecordIndex.of(file, _both(aliases.check, on_saved))
        LOG.info("%d results are saved already", len(saved or ()))
        proofs = known_answers() if any(map(is_prover, specs)) else None
        runner = Runner(comparison, reader, None if saved is None else saved.numbers, proofs)
        collector = _Collector(
            runner, saved, aliases, on_failure or partial(LOG.warning, "graph %s failed: %s")
        )
        items = problems.lines() if isinstance(problems, DataSet) else problems
        noted = collector.note(items)
        first_use.prepare()
        for outcomes in parallel_map(runner, noted, jobs, on, lost=runner.failed):
            complete = collector.complete(outcomes)
            save([outcome.record for outcome in complete if collector.to_save(outcome)])
            remember([o.record for o in complete if o.origin is Origin.NEW])
            yield [outcome.record for outcome in complete]


def _both(first: OnSaved, second: OnSaved | None) -> OnSaved:
    """Call one function with every saved record, and then the other one, if any."""

    def call(record: Record) -> None:
        first(record)
        if second is not None:
            second(record)

    return call


@contextmanager
def _written(file: RecordFile | None) -> Iterator[Callable[[list[Record]], None]]:
    """Lock a file, if any, and yield a function that appends records to it."""
    if file is None:
        yield lambda records: None
        return
    with file.claim() as add:
        yield add


@dataclass(frozen=True, slots=True)
class _Collector:
    """Joins the outcomes of workers with the saved records that they refer to."""

    runner: Runner
    saved: RecordIndex | None
    aliases: SavedAliases | None
    on_failure: OnFailure
    under_way: deque[Any] = field(default_factory=deque)

    def note(self, items: Iterable[Any]) -> Iterator[Any]:
        """Pass items on, and remember each until its outcomes arrive."""
        for item in items:
            self.under_way.append(item)
            yield item

    def complete(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Outcomes of the next item, with their saved records."""
        item = self.under_way.popleft()
        complete = [self._looked_up(outcome, item, i) for i, outcome in enumerate(outcomes)]
        for record, origin in complete:
            if origin is Origin.FAILED:
                self.on_failure(record.graph, record.error or "")
        return complete

    def to_save(self, outcome: Outcome) -> bool:
        """Whether the file lacks the result, or the alias of its placer."""
        if outcome.origin is Origin.FILE:
            return self.aliases is not None and self.aliases.is_new(outcome.record)
        return outcome.origin is not Origin.FAILED

    def _looked_up(self, outcome: Outcome, item: Any, i: int) -> Outcome:
        """Complete an outcome from the file with its saved record."""
        blank = outcome.record
        if outcome.origin is not Origin.FILE:
            return outcome
        saved = None if self.saved is None else self.saved.find(blank.key)
        if saved is None:  # the file was replaced meanwhile
            return self.runner.rerun(item, i)
        record = replace(saved, graph=blank.graph, rate=blank.rate, alias=blank.alias)
        return Outcome(self.runner.completed(item, i, record), Origin.FILE)
