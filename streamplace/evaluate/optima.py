"""The user's cache of answers of the exact placer, proven or not.

An answer is used only for the same problem with the same budget, seed and version. The cache
therefore saves time and changes no result: it has no proof that took more than the budget.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from streamplace.errors import FormatError, StreamplaceError
from streamplace.evaluate.record_file import append_records, read_records
from streamplace.evaluate.records import Key, Record
from streamplace.io.caches import user_cache
from streamplace.io.files import make_folder, spot
from streamplace.model.problem import Problem
from streamplace.objectives.registry import named_objective

LOG = logging.getLogger(__name__)
PROVER = "exact"
ROUNDING = 1e-9


def is_prover(placer: str) -> bool:
    """Whether the cache saves the answers of a placer, named with or without options."""
    return placer.split(":")[0] == PROVER


def cache_path() -> Path:
    """File of the answers in the user's cache folder, one per version of streamplace."""
    return user_cache() / f"optima-{version('streamplace')}.jsonl"


def known_answers() -> dict[Key, Record]:
    """Saved answers of the exact placer by key; a warning is logged if the file is unusable."""
    try:
        return {record.key: record for record in read_records(cache_path())}
    except FormatError:
        if cache_path().exists():
            _warn(cache_path())
        return {}


def remember(records: Iterable[Record]) -> None:
    """Add the answers of the exact placer to the cache, if it is writable."""
    answers = [
        replace(record, alias=None)
        for record in records
        if is_prover(record.placer) and record.error is None
    ]
    if answers:
        try:
            make_folder(cache_path().parent)
            append_records(cache_path(), answers)
        except FormatError:
            _warn(cache_path())


def is_answer(record: Record, problem: Problem) -> bool:
    """Whether a record has a legal placement of the problem with the recorded value."""
    devices = np.array(record.devices, np.int32)
    if record.value is None or len(devices) != problem.n_operators:
        return False
    try:
        judge = named_objective(record.objective)
        placement = record.placement(problem)
        problem.check(placement)
    except StreamplaceError:
        return False
    slack = ROUNDING if judge.sense == "max" else -ROUNDING
    if record.bound is not None and judge.better(record.value, record.bound + slack):
        return False
    return abs(judge.value(problem, placement) - record.value) <= ROUNDING


@cache
def _warn(path: Path) -> None:
    """Warn once that answers are not saved."""
    LOG.warning(
        "proven optima are not saved, because %s cannot be used; set XDG_CACHE_HOME to another "
        "folder for caches",
        spot(path),
    )
