"""Configuration program: whether machines can be filled by whole contents, by column generation.

A column is the contents of one machine of a type. The master program fills so many machines of each
type with columns, in fractions, so that every operator is held once; pricing looks for a column
that helps, and its bound is a cut where there is none (Gilmore and Gomory 1961; the bound is
Farley's 1990, for numbers of machines).
"""

from collections.abc import Callable, Sequence

from streamplace.planning.cuts import Cut
from streamplace.planning.master import solve_master
from streamplace.planning.pricing import price
from streamplace.planning.relaxation import Relaxation, exact

ROUNDS = 60
NODES = 64
"""Boxes that pricing looks at for each type of machine."""
ENOUGH = 1e-6


class Columns:
    """Contents of machines that were worth something, by type."""

    def __init__(self, relaxation: Relaxation) -> None:
        self._relaxation = relaxation
        self._columns: list[tuple[int, list[float]]] = []

    def cut(self, counts: Sequence[int], stop: Callable[[], bool]) -> Cut | None:
        """Return a cut that excludes these numbers of machines; None where there is none."""
        for _ in range(ROUNDS):
            missing, worth, rent = solve_master(
                [1.0] * self._relaxation.demand.n_operators,
                self._columns,
                [0.0] * self._relaxation.n_types,
                1.0,
                counts,
            )
            if missing <= ENOUGH or stop():
                return None
            priced = [
                price(self._relaxation, t, worth, NODES, stop)
                for t in range(self._relaxation.n_types)
            ]
            cut = Cut(tuple(p.bound for p in priced), exact(worth), "contents")
            if not cut.holds(tuple(counts)):
                return cut
            helpful = [
                (t, contents.tolist())
                for t, p in enumerate(priced)
                for contents in p.contents
                if counts[t] and float(contents @ worth) > rent[t] + ENOUGH
            ]
            if not helpful:
                return None
            self._columns += helpful
        return None
