"""Comparison of placers over a data set: on all cores, resumable, each result computed once."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from streamsim import first_use

from streamplace.errors import SettingError
from streamplace.evaluate.comparison_run import ComparisonRun
from streamplace.evaluate.optima import is_prover, known_answers, remember
from streamplace.evaluate.parallel import parallel_map
from streamplace.evaluate.record_file import claim_records, read_records
from streamplace.evaluate.records import Record
from streamplace.evaluate.runner import Origin, Runner, same_problem
from streamplace.io.datasets import DataSet
from streamplace.io.files import spot
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem

LOG = logging.getLogger(__name__)
OnFailure = Callable[[str, str], None]
"""Called with the name of a graph that failed, and the reason."""
OnSaved = Callable[[Record], None]
"""Called with every record that the file has before the comparison begins."""


def compare(
    comparison: ComparisonRun,
    problems: Iterable[Problem],
    file: Path | None = None,
    *,
    jobs: int | None = None,
    on: str | None = None,
    on_failure: OnFailure | None = None,
    on_saved: OnSaved | None = None,
) -> Iterator[list[Record]]:
    """Yield the records of every problem; those in ``file`` are reused, new ones are added to it.

    Problems are read and new records written one after the other, so neither fill the memory. The
    workers parse the problems of a `DataSet`. Records of a problem are in order of objectives,
    rates and placers, and do not depend on ``jobs`` and ``on`` (see `parallel_map`).

    ``on_failure`` is called for every graph that failed, because a placer raised an error or the
    worker was killed; by default, it is logged. The other graphs are still compared, and failed
    ones are tried again next time. ``on_saved`` is called with every record in ``file``, which is
    read only once.
    """
    reader = problems.reader if isinstance(problems, DataSet) else same_problem
    runner = Runner(comparison, reader)
    terms = runner.terms  # unknown placers are refused before the file is made
    failed = on_failure or partial(LOG.warning, "graph %s failed: %s")
    with nullcontext(_forget) if file is None else claim_records(file) as save:
        aliases: set[str | None] = {None}
        if file is not None:
            for record in read_records(file):
                _check_alias(record, comparison, file)
                aliases.add(record.alias)
                if record.key[1:] in terms:
                    runner.saved[record.key] = record
                if on_saved is not None:
                    on_saved(record)
        LOG.info("%d results are saved already", len(runner.saved))
        if any(is_prover(placer.spec) for placer in comparison.aliased):
            runner.proofs.update(known_answers())
        items = problems.lines() if isinstance(problems, DataSet) else problems
        first_use.prepare()
        for outcomes in parallel_map(runner, items, jobs, on, lost=runner.failed):
            for record, origin in outcomes:
                if origin is Origin.FAILED:
                    failed(record.graph, record.error or "")
            save(
                record
                for record, origin in outcomes
                if origin in (Origin.PROOF, Origin.NEW)
                or (origin is Origin.SAVED and record.alias not in aliases)
            )
            remember(record for record, origin in outcomes if origin is Origin.NEW)
            yield [record for record, _ in outcomes]


def _forget(records: Iterable[Record]) -> None:
    """Save nothing, as there is no file."""


def _check_alias(record: Record, comparison: ComparisonRun, path: Path) -> None:
    """Raise SettingError if the alias of a saved record names another placer in a comparison."""
    placer = comparison.aliases.get(record.alias or "", record.placer)
    if record.placer != placer:
        raise SettingError(
            f"{spot(path)}: the alias {quoted(record.alias)} stands for {quoted(record.placer)} in "
            f"these results, not for {quoted(placer)}; choose another alias or another folder"
        )
