"""Relocation: the current placement of a graph, and the costs of moving its operators.

An operator that moves sends its state over the link from its old device and starts on the new
one; operators move one after the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from streamplace.errors import PlacementError, SettingError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.mixins import call_of
from streamplace.model.placement import Placement
from streamplace.model.problem import Moving, Problem
from streamplace.model.units import MAX_VALUE

GONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Relocation:
    """The current placement of a graph, and the number of passes in which a move must pay off.

    Attributes
    ----------
    before
        Device of every operator, by name. Operators without an entry are new and move for free;
        operators whose device is no longer in the cluster only start.
    passes
        Number of passes until the next move: passes per second times the seconds until then.
    startup
        Seconds that an operator takes to start if the problem does not state it; 0 by default.
    most_moves
        Most operators that may move, if the objective is not measured in seconds.

    Examples
    --------
    >>> from streamplace.model import Cluster, Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", memory=1e6), Operator("b")],
    ...                        [Stream("a", "b")], fires="all")
    >>> problem = Problem(graph, Cluster.uniform(2, bandwidth="8 Mbps"))
    >>> Relocation({"a": "d0", "b": "d0"}, startup=0.5).seconds(problem).tolist()
    [[0.0, 1.5], [0.0, 0.5]]
    """

    before: Mapping[str, str]
    passes: float = inf
    startup: float | None = None
    most_moves: int | None = None

    __repr__ = call_of

    def __post_init__(self) -> None:
        if not self.passes > 0:
            raise SettingError(f"passes is {self.passes}; it must be above 0")
        if self.startup is not None and not 0 <= self.startup <= MAX_VALUE:
            raise SettingError(
                f"startup is {self.startup} s; it must be between 0 and {MAX_VALUE:g}"
            )

    def seconds(self, problem: Problem) -> Floats:
        """Seconds to move every operator to every device [N, D]; 0 for its current device."""
        matrix = self.migration(problem) + self.moving(problem).startup
        matrix[[name not in self.before for name in problem.graph.operators.name]] = 0.0
        rows = self.rows(problem)
        at_home = np.flatnonzero(rows != GONE)
        matrix[at_home, rows[at_home]] = 0.0
        return matrix

    def migration(self, problem: Problem) -> Floats:
        """Seconds of state transfer to every device, part of `seconds`, [N, D]."""
        cluster, state, rows = problem.cluster, self.moving(problem).state, self.rows(problem)
        sent = state[:, None] * 8 / cluster.bandwidth_bps[rows] + cluster.latency_s[rows]
        return np.asarray(np.where((rows[:, None] != GONE) & (state[:, None] > 0), sent, 0.0))

    def counts(self, problem: Problem, placements: Ints) -> Floats:
        """Number of operators of the current placement that placements [B, N] move, [B]."""
        named = [name in self.before for name in problem.graph.operators.name]
        elsewhere = np.atleast_2d(placements) != self.rows(problem)
        return np.asarray((elsewhere & named).sum(axis=1), np.float64)

    def moving(self, problem: Problem) -> Moving:
        """Costs of moving: those of the problem, else memory and start-up time."""
        if problem.moving is not None:
            return problem.moving
        shape = (problem.n_operators, problem.n_devices)
        return Moving(problem.graph.operators.memory, np.full(shape, self.startup or 0.0))

    def rows(self, problem: Problem) -> Ints:
        """Device row of every operator; -1 if it is new or its device is no longer there."""
        rows_by_name = {name: d for d, name in enumerate(problem.cluster.devices.name)}
        homes = (self.before.get(name, "") for name in problem.graph.operators.name)
        return np.fromiter((rows_by_name.get(home, GONE) for home in homes), np.int32)

    def stay(self, problem: Problem) -> Placement:
        """Placement that moves only the operators that must move, in the previous order.

        They go where starting and running take least, regardless of other operators. If devices
        cannot hold the previous order, it becomes the priority among ready operators.
        """
        rows, one_pass = self.rows(problem), problem.one_pass
        seconds = self.seconds(problem) / self.passes
        seconds += one_pass.work[:, one_pass.devices["type"]]
        place = problem.repaired(np.where(rows == GONE, seconds.argmin(axis=1), rows))
        order = self.before.priorities() if isinstance(self.before, Placement) else None
        if not isinstance(self.before, Placement) or order is None:
            return problem.placement(place)
        names = problem.graph.operators.name
        ranks = [order.get(name, 0.0) for name in names]
        stay = problem.placement(place, ranks, self.before.queue)
        try:
            problem.check(stay)
        except PlacementError:
            return problem.placement(place, ranks)
        return stay

    def fault(self, problem: Problem) -> str | None:
        """Reason why the relocation does not fit a problem, in one sentence; None if it fits."""
        if problem.moving is not None and self.startup is not None:
            return "it already states how long operators take to start; drop the start-up time"
        if not any(name in self.before for name in problem.graph.operators.name):
            return (
                "none of its operators is in the current placement; give the placement of this "
                "graph"
            )
        return None
