"""Answers of the exact placer, kept between runs: what was asked once need not be asked again.

An answer is that of one problem on the same terms, proven or not. What the cache holds thus saves
time and changes no result: a proof that took more than the terms allow is none of its business.
"""

import logging
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from streamplace.errors import FormatError, StreamplaceError
from streamplace.evaluate.record_file import RecordFile
from streamplace.evaluate.record_index import RecordIndex
from streamplace.evaluate.records import Record
from streamplace.io.caches import user_cache
from streamplace.io.files import make_folder, spot
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective, named_objective

LOG = logging.getLogger(__name__)
PROVER = "exact"
ROUNDING = 1e-9


def is_prover(placer: str) -> bool:
    """Whether a placer, given with or without options, is the one whose answers are kept."""
    return placer.split(":")[0] == PROVER


def cache_path() -> Path:
    """File of the answers in the user's cache folder; another version may find better ones."""
    return user_cache() / f"optima-{version('streamplace')}.jsonl"


def known_answers() -> RecordIndex:
    """What the exact placer answered before, by problem and terms.

    Lines that are no answers are removed from the file, and a file that cannot be used is told of.
    """
    file = RecordFile(cache_path())
    try:
        return RecordIndex.of(file)
    except FormatError:
        pass
    try:
        file.drop_damaged()
        return RecordIndex.of(file)
    except FormatError:
        _tell(file.path)
        return RecordIndex.empty(file)


def remember(records: Iterable[Record]) -> None:
    """Add what the exact placer answered to the cache, proven or not, if that can be written."""
    answers = [record for record in records if is_prover(record.placer) and record.error is None]
    if answers:
        try:
            make_folder(cache_path().parent)
            RecordFile(cache_path()).append(answers)
        except FormatError:
            _tell(cache_path())


def is_answer(record: Record, problem: Problem) -> bool:
    """Whether a placement of a record is one of the problem, and worth what the record says."""
    devices = np.array(record.devices, np.int32)
    if record.value is None or len(devices) != problem.n_operators:
        return False
    try:
        judge = named_objective(record.objective)
        placement = record.placement(problem)
        problem.check(placement)
    except StreamplaceError:
        return False
    if record.bound is not None and judge.better(record.value, record.bound + _slack(judge)):
        return False
    return abs(judge.value(problem, placement) - record.value) <= ROUNDING


def _slack(judge: Objective) -> float:
    """What a value may be better than its bound by."""
    return ROUNDING if judge.sense == "max" else -ROUNDING


@cache
def _tell(path: Path) -> None:
    """Say once that nothing is kept."""
    LOG.warning(
        "proven optima are not kept, since %s cannot be used; XDG_CACHE_HOME may name another "
        "folder of caches",
        spot(path),
    )
