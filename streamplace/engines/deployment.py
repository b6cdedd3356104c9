"""Deployment: a placement with all that an engine needs to know to carry it out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from streamplace.model.expansion import Expansion
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Deployment:
    """A legal placement of a problem's operators, whole or subtask by subtask.

    Attributes
    ----------
    problem
        The application with its cluster and constraints; operators may have several subtasks.
    placement
        Device of every operator, or of every subtask where they are placed one by one.
    expansion
        The subtasks of the application's operators.
    placed
        The problem whose operators the placement places: ``problem`` or that of its subtasks.

    Examples
    --------
    >>> from streamplace.model import Cluster, Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of(
    ...     "pipe",
    ...     [Operator("src", rate=900), Operator("join", parallelism=3)],
    ...     [Stream("src", "join")],
    ... )
    >>> problem = Problem(graph, Cluster.uniform(2))
    >>> Deployment.of(problem, {"src": "d0", "join": "d1"}).counts
    {'src': {'d0': 1}, 'join': {'d1': 3}}
    >>> spread = {"src": "d0", "join#0": "d0", "join#1": "d1", "join#2": "d1"}
    >>> Deployment.of(problem, spread).counts
    {'src': {'d0': 1}, 'join': {'d0': 1, 'd1': 2}}
    """

    problem: Problem
    placement: Placement
    expansion: Expansion = field(repr=False)
    placed: Problem = field(repr=False)

    def __init__(self, problem: Problem, placement: Placement) -> None:
        put = partial(object.__setattr__, self)
        expansion = problem.graph.expand()
        whole = placement.operators == problem.graph.operators.name
        placed = problem if whole else expansion.problem(problem)
        placed.check(placement)
        put("problem", problem)
        put("placement", placement)
        put("expansion", expansion)
        put("placed", placed)

    @classmethod
    def of(cls, problem: Problem, assignment: Mapping[str, str]) -> "Deployment":
        """Deployment from names: operator → device, or subtask → device."""
        operators = problem.graph.operators
        subtasks = problem.graph.expand().graph.operators
        split = any(name in subtasks and name not in operators for name in assignment)
        names = subtasks.name if split else operators.name
        return cls(problem, Placement.of(names, problem.cluster.devices.name, assignment))

    @property
    def is_split(self) -> bool:
        """Whether subtasks are placed one by one."""
        return self.placed is not self.problem

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Operator → device → number of its subtasks there; devices without any are left out."""
        placement = self.placement
        if not self.is_split:
            placement = self.expansion.unfold(placement)
        return self.expansion.fold_names(placement)

    def pes(self) -> dict[str, list[str]]:
        """Device → the operators (or subtasks) of its processing element, in device order."""
        return self.placement.pes()
