"""Configuration linear program by column generation, which decides whether machines can hold a job.

A column is the contents of one machine of a type. The master program fills the machines of each
type with fractions of columns so that every operator is held once. Pricing looks for a column that
improves the master; where there is none, its bound is a cut (Gilmore and Gomory 1961; the bound is
that of Farley 1990, for numbers of machines).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from streamplace.planning.cuts import Cut
from streamplace.planning.master import solve_master
from streamplace.planning.pricing import price
from streamplace.planning.relaxation import Relaxation, exact

ROUNDS = 60
NODES = 64
"""Branch-and-bound nodes that pricing explores for each type of machine at first."""
MORE = 8_000
"""Nodes explored in total after which the limit of each type is not raised further."""
ENOUGH = 1e-6


class _Column(NamedTuple):
    kind: int
    contents: list[float]
    exact: bool


class Columns:
    """Columns found so far, by type of machine.

    Parameters
    ----------
    most_nodes
        Most branch-and-bound nodes that pricing explores for each type of machine.
    """

    def __init__(self, relaxation: Relaxation, most_nodes: int) -> None:
        self._relaxation, self._most_nodes = relaxation, most_nodes
        self._columns: list[_Column] = []
        self._nodes = 0

    def cut(self, counts: Sequence[int], stop: Callable[[], bool]) -> Cut | None:
        """Return a cut that excludes these numbers of machines; None where there is none.

        If the master is only feasible with columns that no real machine holds, those are dropped
        and pricing restarts with more nodes.
        """
        nodes = NODES
        while not stop():
            cut = self._cut(counts, nodes, stop)
            if cut is not None or nodes >= self._most_nodes or self._nodes > MORE:
                return cut
            columns = [column for column in self._columns if column.exact]
            if len(columns) == len(self._columns):
                return None
            self._columns, nodes = columns, 4 * nodes
        return None

    def _cut(self, counts: Sequence[int], nodes: int, stop: Callable[[], bool]) -> Cut | None:
        for _ in range(ROUNDS):
            missing, worth, rent = solve_master(
                [1.0] * self._relaxation.demand.n_operators,
                [(column.kind, column.contents) for column in self._columns],
                [0.0] * self._relaxation.n_types,
                1.0,
                counts,
            )
            if missing <= ENOUGH or stop():
                return None
            priced = [
                price(self._relaxation, t, worth, nodes, stop)
                for t in range(self._relaxation.n_types)
            ]
            self._nodes += sum(p.nodes for p in priced)
            cut = Cut(tuple(p.bound for p in priced), exact(worth), "contents")
            if not cut.holds(tuple(counts)):
                return cut
            helpful = [
                _Column(t, p.contents.tolist(), p.exact)
                for t, p in enumerate(priced)
                if counts[t] and float(p.contents @ worth) > rent[t] + ENOUGH
            ]
            if not helpful:
                return None
            self._columns += helpful
        return None
