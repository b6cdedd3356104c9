"""Deployment: a placement with all facts that an engine needs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from streamplace.engines.names import resources
from streamplace.model.expansion import Expansion, expand
from streamplace.model.message_text import shown
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import named_problem


@dataclass(frozen=True, slots=True)
class Element:
    """A processing element (PE): all operators on one device."""

    number: int
    device: str
    operators: tuple[str, ...]
    tags: tuple[str, ...]  # tags that its operators require of the device


@dataclass(frozen=True, slots=True)
class DeployedFlow:
    """Traffic of a stream at the sources' full rate, in tuples/s and bytes/s."""

    source: str
    target: str
    tuples: float
    traffic: float
    is_remote: bool


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """A legal placement of a problem's operators, or of their subtasks.

    Examples
    --------
    >>> from streamplace.model import Cluster, Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of(
    ...     "pipe",
    ...     [Operator("src", rate=900), Operator("join", parallelism=3)],
    ...     [Stream("src", "join")],
    ... )
    >>> problem = Problem(graph, Cluster.uniform(2))
    >>> Deployment.of(problem, {"src": "d0", "join": "d1"}).is_split
    False
    >>> spread = {"src": "d0", "join#0": "d0", "join#1": "d1", "join#2": "d1"}
    >>> Deployment.of(problem, spread).is_split
    True
    """

    problem: Problem  # with its cluster and constraints; operators may have several subtasks
    placement: Placement  # of every operator, or of every subtask if they are placed one by one
    expansion: Expansion = field(init=False, repr=False)  # subtasks of the operators
    unit_problem: Problem = field(init=False, repr=False)  # `problem`, or that of its subtasks

    def __post_init__(self) -> None:
        problem, expansion = self.problem, expand(self.problem.graph)
        is_whole = self.placement.operators == problem.graph.operators.name
        unit_problem = problem if is_whole else expansion.problem(problem)
        unit_problem.check(self.placement)
        object.__setattr__(self, "expansion", expansion)
        object.__setattr__(self, "unit_problem", unit_problem)

    @classmethod
    def of(cls, problem: Problem, assignment: Mapping[str, str]) -> "Deployment":
        """Deployment from names: operator → device, or subtask → device.

        The order of a `Placement` is kept.
        """
        names = named_problem(problem, assignment).graph.operators.name
        return cls(problem, Placement.of(names, problem.cluster.devices.name, assignment))

    @property
    def is_split(self) -> bool:
        """Whether subtasks are placed one by one."""
        return self.unit_problem is not self.problem

    @property
    def title(self) -> str:
        """Summary of the graph and the cluster in one line."""
        what = "subtasks" if self.is_split else "operators"
        elements, devices = len(self.elements), self.problem.n_devices
        return (
            f"{shown(self.problem.graph.name)}: {len(self.placement)} {what} "
            f"in {elements} PE{'s' if elements > 1 else ''} "
            f"on {devices} device{'s' if devices > 1 else ''}"
        )

    @property
    def elements(self) -> tuple[Element, ...]:
        """The processing elements, in device order."""
        operators = self.unit_problem.graph.operators
        requires = dict(zip(operators.name, operators.requires, strict=True))
        return tuple(
            Element(
                number,
                device,
                tuple(names),
                tuple(sorted(set().union(*(requires[name] for name in names)))),
            )
            for number, (device, names) in enumerate(self.placement.pes().items())
        )

    @property
    def resources(self) -> dict[str, str]:
        """Device → the resource that only it offers; raise ProblemError for equal names."""
        return resources(self.problem.cluster.devices.name)

    @property
    def flows(self) -> list[DeployedFlow]:
        """The streams, in the graph's order."""
        arrays, placement = self.unit_problem.instance, self.placement
        names, device = placement.operators, placement.index
        rows = zip(
            *(
                column[np.argsort(arrays.stream_index)].tolist()
                for column in (arrays.source, arrays.target, arrays.tuples, arrays.traffic)
            ),
            strict=True,
        )
        return [
            DeployedFlow(names[u], names[v], tuples, traffic, bool(device[u] != device[v]))
            for u, v, tuples, traffic in rows
        ]

    @property
    def colocated(self) -> tuple[tuple[str, ...], ...]:
        """Groups that must share a device, in operator order."""
        return self._groups(self.unit_problem.constraints.colocate)

    @property
    def exlocated(self) -> tuple[tuple[str, ...], ...]:
        """Groups of operators that must be on different devices, in operator order."""
        return self._groups(self.unit_problem.constraints.exlocate)

    def memberships(self) -> dict[str, tuple[str, str]]:
        """Name → numbers of the colocated and of the exlocated groups that contain it, as texts.

        Numbers are positions in `colocated` and `exlocated`, separated by semicolons.
        """
        rows: dict[str, tuple[list[str], list[str]]] = {name: ([], []) for name in self.placement}
        for side, groups in enumerate((self.colocated, self.exlocated)):
            for number, group in enumerate(groups):
                for name in group:
                    rows[name][side].append(str(number))
        return {name: (";".join(a), ";".join(b)) for name, (a, b) in rows.items()}

    def _groups(self, groups: Iterable[frozenset[str]]) -> tuple[tuple[str, ...], ...]:
        index = self.unit_problem.graph.operators.index
        return tuple(sorted({tuple(sorted(g, key=index)) for g in groups if len(g) > 1}))
