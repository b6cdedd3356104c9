"""Ledger of this user: predicted and measured rates of moved jobs, in the store.

It is for display only: predictions use the runs in the package (`streamplace.io.ledger`).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from streamplace.errors import FormatError
from streamplace.flink.store import Store, Table, utc_now
from streamplace.io.ledger import RUNS, LedgerEntry
from streamplace.io.placements import Prediction

RATES = Table("rates", RUNS)


def user_runs() -> tuple[LedgerEntry, ...]:
    """Runs of this user, in order."""
    return tuple(Store.usual().rows(RATES).values())


def append_entries(entries: Iterable[LedgerEntry]) -> None:
    """Append runs of this user, with the present time."""
    now = utc_now()
    with Store.usual().transaction() as rows:
        for entry in entries:
            rows.add(RATES, entry.job, replace(entry, when=entry.when or now))


def note_in_ledger(
    by: str, predicted: Prediction, rate: float, is_limited: bool, tell: Callable[[str], None]
) -> None:
    """Append the predicted and the measured rate of a moved job to the ledger."""
    low, value, high = predicted.carries
    if not (0 < rate < math.inf and 0 < value < math.inf):
        return
    entry = LedgerEntry(
        predicted.graph,
        value,
        rate,
        is_limited,
        low,
        high,
        predicted.confidence or None,
        by,
        drift=predicted.drift or None,
        kept=predicted.kept or None,
        spread=predicted.spread or None,
    )
    try:
        append_entries([entry])
    except FormatError as error:  # the job runs, so its move has not failed
        tell(f"warning: {error}")
