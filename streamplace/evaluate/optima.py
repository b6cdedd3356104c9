"""Proven optima, kept between runs: a problem that was solved once need not be solved again."""

import os
from collections.abc import Iterable
from pathlib import Path

from streamplace.evaluate.records import Record, RecordFile

PROVER = "exact"


def is_prover(placer: str) -> bool:
    """Whether a placer, given with or without options, is the one whose proofs are kept."""
    return placer.split(":")[0] == PROVER


def cache_path() -> Path:
    """File of the proven optima in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "streamplace" / "optima-1.jsonl"


def known_optima() -> dict[str, Record]:
    """Proven results of the exact placer, by problem hash."""
    file = RecordFile(cache_path())
    file.mend()
    return {record.problem: record for record in file}


def remember(records: Iterable[Record]) -> None:
    """Add the proven results among these to the cache."""
    proven = [record for record in records if is_prover(record.placer) and record.proven]
    if proven:
        cache_path().parent.mkdir(parents=True, exist_ok=True)
        RecordFile(cache_path()).append(proven)
