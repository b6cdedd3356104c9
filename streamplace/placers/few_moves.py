"""Few moves: the best value that each number of moves from the present placement reaches.

All placements with few moves are tried, which proves the best of them. For more moves, the best
placements with one number of moves are extended by further moves, and a search that ignores the
present placement finds a placement whose moves are undone, the least useful first.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem, one_moved
from streamplace.model.relocation import GONE
from streamplace.objectives.conditions import BEYOND, subject_to
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import interruptible
from streamplace.placers.meter import Meter
from streamplace.placers.partition_graph import matched
from streamplace.placers.registry import PLACERS, Budget, Found
from streamplace.placers.result import MoveStep, proven

TRY, SEARCH = 0.5, 0.3
"""Share of the budget for trying all, and of the rest for a search without a present placement."""
MAX_TRIED = 1_000_000
"""Placements that are tried, so that a proof takes seconds."""
BATCH = 2048
BEAM = 24
"""Placements of each number of moves that are extended by further ones."""


def few_moves(problem: Problem, objective: Objective, seed: int, budget: Budget) -> Found:
    """Best placement within the allowed moves, and the values of other numbers of moves.

    With other conditions and no limit of moves, it has the fewest moves that meet them.
    """
    search = _FewMoves(problem, objective, Meter(budget, BATCH))
    with interruptible(search.answer):
        search.try_all()
        search.refine(seed)
    return search.answer()


class _FewMoves:
    """The best placement of every number of moves so far."""

    def __init__(self, problem: Problem, objective: Objective, meter: Meter) -> None:
        assert objective.relocation is not None
        self._problem, self._meter, relocation = problem, meter, objective.relocation
        self._limit = relocation.most_moves
        others = [c for c in objective.conditions if c.objective.name != "moves"]
        self._judge = subject_to(objective.plain, others)
        self._unit, self._first = problem.unit, problem.first_operator
        self._stay = relocation.stay(problem).index
        self._home = self._stay[self._first]
        rows = relocation.rows(problem)
        named = [name in relocation.before for name in problem.graph.operators.name]
        self._rows = np.where(named, rows, self._stay)  # new operators count if moved
        self._forced = int((self._rows == GONE).sum())
        self._best: dict[int, tuple[float, Ints]] = {}
        self._beam: dict[int, list[tuple[float, Ints]]] = {}
        self._tried = -1  # all placements with up to so many units on other devices were tried
        self._bound: float | None = objective.bound(problem)

    def try_all(self) -> None:
        """Try all placements with one unit elsewhere, with two, …, in a part of the budget."""
        units, devices = len(self._home), self._problem.n_devices
        spent, seconds = 0, self._meter.seconds or 0.0
        for n in range(units + 1):
            spent += comb(units, n) * (devices - 1) ** n
            evaluations = self._meter.evaluations
            if spent > MAX_TRIED or (evaluations is not None and n and spent > evaluations * TRY):
                return
            for places in self._placements(n):
                is_late = n and (self._meter.seconds or 0.0) < seconds * (1 - TRY)
                if is_late or not self._meter.chunk(len(places)):
                    return
                self._judged(places)
            self._tried = n
            if n == units:
                self._bound = max((value for value, _ in self._best.values()), key=self._key)

    def refine(self, seed: int) -> None:
        """Extend the best placements, and undo moves of what a search finds."""
        if self._tried == len(self._home):
            return
        part = self._meter.part(SEARCH)
        if part is not None:
            result = PLACERS["auto"].attempt(self._problem, self._judge, seed=seed, budget=part)
            self._meter.spend(part.evaluations or 0)
            self._bound = result.bound
            self._undo(self._relabelled(result.placement.index))
        most = self._limit if self._limit is not None else len(self._unit)
        for moves in range(self._forced, most):
            for _, place in self._beam.get(moves, []):
                if self._meter.over:
                    return
                self._judged(one_moved(self._problem, place))

    def answer(self) -> Found:
        """Best placement for the limit of moves or for the conditions, and all steps."""
        steps = tuple(self._steps())
        allowed = [s for s in steps if self._limit is None or s.moves <= self._limit]
        is_fewest = self._judge.conditions and self._limit is None
        chosen = (allowed[0] if is_fewest else allowed[-1]) if allowed else None
        moves = min(self._best) if chosen is None else chosen.moves
        value, place = self._best[moves]
        bound = value if chosen is not None and chosen.proven and not is_fewest else self._bound
        self._meter.note(value)
        found = self._problem.placement(place)
        return Found(found, None if is_fewest else bound, tuple(self._meter.trace), steps=steps)

    def _steps(self) -> Iterator[MoveStep]:
        """Numbers of moves that reach more than all smaller ones, and meet the conditions."""
        best = -np.inf
        for moves, (value, place) in sorted(self._best.items()):
            if self._key(value) <= best or abs(value) >= BEYOND:
                continue
            best = self._key(value)
            is_tried = moves - self._forced <= self._tried
            is_proven = is_tried or proven(value, self._bound)
            yield MoveStep(moves, value, is_proven, self._moved(place))

    def _moved(self, place: Ints) -> dict[str, str]:
        names, devices = self._problem.graph.operators.name, self._problem.cluster.devices.name
        changed = np.flatnonzero(place != self._rows).tolist()
        return {names[v]: devices[place[v]] for v in changed}

    def _key(self, value: float) -> float:
        return value if self._judge.sense == "max" else -value

    def _judged(self, places: Ints) -> Floats:
        """Evaluate placements of the units, and keep the best of every number of moves."""
        batch = places[:, self._unit]
        legal = self._problem.legal(batch)
        batch = batch[legal]
        values = np.full(len(places), -np.inf)
        if not len(batch):
            return values
        reached = self._judge.evaluate(self._problem, batch)
        self._meter.spend(len(batch))
        values[legal] = reached if self._judge.sense == "max" else -reached
        moves = (batch != self._rows).sum(axis=1)
        for n in np.unique(moves).tolist():
            rows = np.flatnonzero(moves == n)
            order = rows[np.argsort(-values[legal][rows], kind="stable")][:BEAM]
            kept = [(float(reached[i]), batch[i]) for i in order.tolist()]
            beam = sorted([*self._beam.get(n, []), *kept], key=lambda p: -self._key(p[0]))[:BEAM]
            self._beam[n] = beam
            self._best[n] = beam[0]
        return values

    def _placements(self, n: int) -> Iterator[Ints]:
        """All placements with exactly ``n`` units on other devices, in batches [B, U]."""
        others = self._problem.n_devices - 1
        steps = np.indices((others,) * n).reshape(n, -1).T + 1 if n else np.zeros((1, 0), np.int64)
        together = max(1, BATCH // max(1, len(steps)))
        chosen = combinations(range(len(self._home)), n)
        while group := [c for _, c in zip(range(together), chosen, strict=False)]:
            places = np.tile(self._home, (len(group) * len(steps), 1))
            for i, units in enumerate(group):
                rows = slice(i * len(steps), (i + 1) * len(steps))
                moved = (self._home[list(units)] + steps) % (others + 1)
                places[rows, list(units)] = moved
            if len(places):  # else there is no other device
                yield from np.array_split(places, -(-len(places) // BATCH))

    def _relabelled(self, place: Ints) -> Ints:
        """Exchange devices that are interchangeable such that fewer operators move."""
        if self._problem.rules is not None:
            return place
        alike = self._problem.cluster.interchangeable
        shared = np.zeros((len(alike), len(alike)))
        kept = self._rows != GONE
        np.add.at(shared, (place[kept], self._rows[kept]), 1)
        shared[alike[:, None] != alike] = -1
        return matched(shared)[place]

    def _undo(self, place: Ints) -> None:
        """Move units back one by one, each time the unit whose return costs least."""
        at = place[self._first]
        self._judged(at[None])
        while len(away := np.flatnonzero(at != self._home)) and not self._meter.over:
            back = np.tile(at, (len(away), 1))
            back[np.arange(len(away)), away] = self._home[away]
            at = back[int(np.argmax(self._judged(back)))]
