"""Answers of the exact placer, kept between runs: what was asked once need not be asked again.

An answer is that of one problem on the same terms, proven or not. What the cache holds thus saves
time and changes no result: a proof that took more than the terms allow is none of its business.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from streamplace.evaluate.known import Known
from streamplace.evaluate.records import Record, RecordFile

PROVER = "exact"


def is_prover(placer: str) -> bool:
    """Whether a placer, given with or without options, is the one whose answers are kept."""
    return placer.split(":")[0] == PROVER


def cache_path() -> Path:
    """File of the answers in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "streamplace" / "optima-2.jsonl"


def known_answers() -> Known:
    """What the exact placer answered before, by problem and terms."""
    return Known.of(RecordFile(cache_path()))


def remember(records: Iterable[Record]) -> None:
    """Add what the exact placer answered to the cache, proven or not."""
    answers = [record for record in records if is_prover(record.placer) and record.error is None]
    if answers:
        cache_path().parent.mkdir(parents=True, exist_ok=True)
        RecordFile(cache_path()).append(answers)
