"""Results of placers on problems, and what tells problems apart."""

from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from typing import Annotated, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from streamplace.evaluate.verdict import proven
from streamplace.io.schema import STRICT, Finite
from streamplace.model.cluster import MOST_DEVICES
from streamplace.model.placement import Discipline, Placement
from streamplace.model.problem import Problem

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """What one placer did on one problem.

    Attributes
    ----------
    problem
        Content hash of the problem.
    budget
        The budget and seed it was given, as a text; another budget is another record.
    rate
        Total rate of the sources; None for the graph's own.
    value
        What it reaches by the objective, None where the placer could not place.
    devices
        Device row of every operator.
    objective
        What was asked for, conditions included; files of older versions know throughput alone.
    priority
        Of every operator, where the placer answered an order too.
    queue
        What priorities mean, as that of a placement.
    measures
        Further numbers by name: those of the objective, and values by other objectives.
    steps
        After how many evaluations what value was reached, where the placer told.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    problem: str
    graph: str
    rate: Finite | None
    placer: str
    budget: str
    value: Finite | None
    bound: Finite | None
    milliseconds: Finite
    devices: tuple[Annotated[int, Field(ge=0, lt=MOST_DEVICES)], ...]
    error: str | None = None
    objective: str = "throughput"
    priority: tuple[Finite, ...] | None = None
    measures: dict[str, Finite] = field(default_factory=dict)
    steps: tuple[tuple[Annotated[int, Field(ge=1)], Finite], ...] = ()
    queue: Discipline = "priority"

    def placement(self, problem: Problem) -> Placement:
        """Return what was answered."""
        return problem.placement(self.devices, self.priority, self.queue)

    @property
    def key(self) -> Key:
        """What makes a record a repetition of another."""
        return (self.problem, self.objective, self.placer, self.budget)

    @property
    def devices_used(self) -> int:
        """Number of different devices."""
        return len(set(self.devices))

    @property
    def proven(self) -> bool:
        """Whether the value is proven to be the best possible."""
        return self.value is not None and proven(self.value, self.bound)


JOINING = ("group", "n_groups", "joins", "port_start", "port", "intake")
"""Columns that say nothing new where no operator joins."""


def problem_hash(problem: Problem) -> str:
    """Content hash of a problem: equal for problems that every placement values alike.

    >>> from streamplace import Cluster, Operator, StreamGraph
    >>> graph = StreamGraph.of("g", [Operator("a", ipt=1e5, rate=1e4)])
    >>> problem_hash(Problem(graph, Cluster.uniform(2))) == problem_hash(
    ...     Problem(StreamGraph("other", graph.operators, graph.streams), Cluster.uniform(2)))
    True
    """
    digest = sha256()
    columns = problem.instance._asdict()
    if not problem.instance.joins.any():
        columns = {name: column for name, column in columns.items() if name not in JOINING}
    arrays = [np.asarray(column) for column in columns.values()]
    if problem.rules is not None:
        arrays += [problem.rules.unit, problem.rules.allowed, problem.rules.apart]
        arrays += [
            limit for limit in (problem.rules.memory, problem.rules.room) if limit is not None
        ]
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def numbered(*texts: str) -> int:
    """Texts as one number of eight bytes; that two of a million agree is as good as impossible."""
    return int.from_bytes(blake2b("\0".join(texts).encode(), digest_size=8).digest(), "big")
