"""Rows measured while memory is fast: others are measured once more, and the better one counts.

Other virtual machines of a computer share its caches and its memory. Every row has the time of an
access to memory before and after its measurement (``memory_ns``), which tells how much they do.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from limiting import memory_ns
from planned_runs import key_of

QUIET_NS = 13.0
"""Longest access to memory of a quiet row; half of all rows of the first whole series took less."""
WAIT_SECONDS, LOOK_SECONDS = 120.0, 2.0
ATTEMPTS = 2
"""How often the same is measured until a row is quiet."""
Row = Mapping[str, Any]


def is_quiet(row: Row) -> bool:
    """Whether memory was fast while a row was measured; rows that do not say so count as quiet.

    >>> is_quiet({"memory_ns": [9.0, 12.0]}), is_quiet({"memory_ns": [12.0, 30.0]})
    (True, False)
    """
    return "memory_ns" not in row or float(np.mean(row["memory_ns"])) <= QUIET_NS


def wait_quiet() -> float:
    """Wait until memory is fast, but not for ever; returns the time of an access in ns."""
    end = time.monotonic() + WAIT_SECONDS
    while (now := memory_ns()) > QUIET_NS and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
    return now


def settled(rows: Iterable[Row]) -> set[tuple[Any, ...]]:
    """Keys of what needs no further measurement: quiet, or measured as often as may be."""
    attempts = Counter[tuple[Any, ...]]()
    for row in rows:
        attempts[key_of(row)] += ATTEMPTS if is_quiet(row) else 1
    return {key for key, count in attempts.items() if count >= ATTEMPTS}


def counting(rows: Iterable[Row]) -> list[Row]:
    """The row that counts of every key: the first quiet one, or else the last."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        known = best.get(key_of(row))
        if known is None or not is_quiet(known):
            best[key_of(row)] = row
    return [*best.values()]


def quiet_share(rows: Iterable[Row]) -> str:
    """How many of the measurements that count are quiet, as a sentence."""
    timed = [row for row in counting(rows) if "memory_ns" in row]
    quiet = sum(map(is_quiet, timed))
    return (
        f"Of {len(timed)} measurements, {quiet} were made while an access to memory took at most "
        f"{QUIET_NS:g} ns."
    )
