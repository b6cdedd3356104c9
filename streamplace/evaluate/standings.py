"""Standings: the table of the paper, and how far everybody is from the best possible."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan

import numpy as np

from streamplace.evaluate.records import PROVEN, Record

TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Standing:
    """One placer at one rate.

    Attributes
    ----------
    better_than, equal_to, worse_than
        Share of the graphs on which it beats, equals or loses to the reference placer.
    share_of_optimum
        Mean of value / optimum over the graphs whose optimum is known, None where there is none.
    proven
        Number of those graphs.
    reached
        Share of those graphs on which it finds the optimum.
    devices_used
        Number of graphs by devices used.
    failed
        Graphs that it could not place; they count in nothing else.
    """

    mean: float
    q1: float
    median: float
    min: float
    better_than: dict[str, float]
    equal_to: dict[str, float]
    worse_than: dict[str, float]
    share_of_optimum: float | None
    reached: float | None
    proven: int
    devices_used: dict[int, int]
    ms_per_graph: float
    graphs: int
    failed: int


Table = dict[float | None, dict[str, Standing]]
"""Standings by rate and placer; None is the graphs' own rates."""


def heading(rate: float | None) -> str:
    """What stands above the results of a rate."""
    return "own rates" if rate is None else f"{rate:g} tuples/s"


def standings(records: Iterable[Record], reference: str, known: Mapping[str, float]) -> Table:
    """Standing of every placer at every rate, against a reference placer and the known optima."""
    tables: defaultdict[float | None, defaultdict[str, list[Record]]]
    tables = defaultdict(lambda: defaultdict(list))
    for record in records:
        tables[record.rate][record.placer].append(record)
    return {rate: _standings(table, reference, known) for rate, table in tables.items()}


def optima(records: Iterable[Record]) -> dict[str, float]:
    """Proven optima by problem hash: where the best value meets the lowest bound."""
    best: defaultdict[str, float] = defaultdict(lambda: -np.inf)
    bound: defaultdict[str, float] = defaultdict(lambda: np.inf)
    for record in records:
        if record.value is not None:
            best[record.problem] = max(best[record.problem], record.value)
        if record.bound is not None:
            bound[record.problem] = min(bound[record.problem], record.bound)
    return {key: value for key, value in best.items() if value >= bound[key] - PROVEN}


def _standings(
    table: dict[str, list[Record]], reference: str, known: Mapping[str, float]
) -> dict[str, Standing]:
    rivals = {record.problem: record.value for record in table.get(reference, ())}
    return {
        name: _standing(records, {reference: rivals} if rivals else {}, known)
        for name, records in table.items()
    }


def _standing(
    records: list[Record],
    rivals: dict[str, dict[str, float | None]],
    known: Mapping[str, float],
) -> Standing:
    placed = [record for record in records if record.value is not None]
    values = np.array([record.value for record in placed] or [nan], np.float64)
    shares = values[[r.problem in known for r in placed]] if placed else np.empty(0)
    shares = shares / [known[r.problem] for r in placed if r.problem in known]
    signs = {name: _signs(placed, theirs) for name, theirs in rivals.items()}
    q1, median = np.quantile(values, (0.25, 0.5))
    return Standing(
        mean=float(values.mean()),
        q1=float(q1),
        median=float(median),
        min=float(values.min()),
        better_than={name: sign[1] for name, sign in signs.items()},
        equal_to={name: sign[0] for name, sign in signs.items()},
        worse_than={name: sign[-1] for name, sign in signs.items()},
        share_of_optimum=float(shares.mean()) if len(shares) else None,
        reached=float((shares >= 1 - PROVEN).mean()) if len(shares) else None,
        proven=len(shares),
        devices_used=dict(sorted(Counter(record.devices_used for record in placed).items())),
        ms_per_graph=float(np.mean([record.milliseconds for record in placed] or [nan])),
        graphs=len(records),
        failed=len(records) - len(placed),
    )


def _signs(records: list[Record], rival: dict[str, float | None]) -> dict[int, float]:
    """Share of graphs on which the value is above (1), at (0) and below (-1) the rival's."""
    deltas = [
        record.value - theirs
        for record in records
        if record.value is not None and (theirs := rival.get(record.problem)) is not None
    ]
    signs = [0 if abs(delta) <= TIE else 1 if delta > 0 else -1 for delta in deltas]
    return {sign: signs.count(sign) / max(1, len(signs)) for sign in (-1, 0, 1)}
