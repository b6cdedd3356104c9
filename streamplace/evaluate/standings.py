"""Standings: the table of the paper, and how far everybody is from the best possible."""

from dataclasses import dataclass
from math import nan

import numpy as np

from streamplace.evaluate.records import PROVEN
from streamplace.evaluate.tally import Optima, Results, Tally, looked_up

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


def standings(tally: Tally, reference: str, known: Optima) -> Table:
    """Standing of every placer at every rate, against a reference placer and the known optima."""
    return {
        rate: {
            name: _standing(results, _rivals(table, reference), known)
            for name, results in table.items()
        }
        for rate, table in tally.table().items()
    }


def _rivals(table: dict[str, Results], reference: str) -> dict[str, Results]:
    return {reference: table[reference]} if reference in table else {}


def _standing(results: Results, rivals: dict[str, Results], known: Optima) -> Standing:
    placed = ~np.isnan(results.value)
    values = results.value[placed] if placed.any() else np.array([nan])
    optimum = known.at(results.problem)
    judged = placed & ~np.isnan(optimum)
    shares = results.value[judged] / optimum[judged]
    signs = {name: _signs(results, rival) for name, rival in rivals.items()}
    q1, median = np.quantile(values, (0.25, 0.5))
    used, graphs = np.unique(results.devices_used[placed], return_counts=True)
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
        devices_used=dict(zip(used.tolist(), graphs.tolist(), strict=True)),
        ms_per_graph=float(results.milliseconds[placed].mean()) if placed.any() else nan,
        graphs=len(placed),
        failed=len(placed) - int(placed.sum()),
    )


def _signs(results: Results, rival: Results) -> dict[int, float]:
    """Share of graphs on which the value is above (1), at (0) and below (-1) the rival's."""
    problem, last = np.unique(rival.problem[::-1], return_index=True)
    theirs = looked_up(results.problem, problem, rival.value[::-1][last])
    deltas = results.value - theirs
    deltas = deltas[~np.isnan(deltas)]
    signs = np.where(np.abs(deltas) <= TIE, 0, np.sign(deltas))
    return {sign: float((signs == sign).sum()) / max(1, len(signs)) for sign in (-1, 0, 1)}
