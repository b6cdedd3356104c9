"""Instances of the library as problems, and placements as solutions for the checker."""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from streamplace.errors import FormatError, ProblemError
from streamplace.io.fields import ListOf, TableOf
from streamplace.io.files import located
from streamplace.io.parsing import parse_as
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.devices import Device
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.operators import Operator
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.streams import Stream
from streamplace.model.units import Stated
from streamplace.objectives.registry import OBJECTIVES, Objective

ObjectiveName = Literal["throughput", "makespan", "plan"]
SECOND = 10**15
"""Units of time in a second."""
BITS = 8
"""Bits per byte."""

Natural = Annotated[int, Field(ge=0, lt=10**40, strict=True)]


class PiecesJson(TypedDict):
    """An operator of an instance, with its work on each kind of machine."""

    memory: Natural
    work: ListOf[Natural | None]


class InstanceJson(TypedDict):
    """Fields of an instance that become a problem; the checker reads further fields of plans."""

    name: str
    objective: ObjectiveName
    second: Annotated[Natural, Field(ge=1)]
    kinds: ListOf[TableOf[Natural]]
    devices: ListOf[Natural]
    links: ListOf[ListOf[tuple[Natural, Natural]]]
    operators: ListOf[PiecesJson]
    streams: ListOf[tuple[Natural, Natural, Natural]]


def instance_problem(content: bytes, where: str) -> Problem:
    """Problem of a file of an instance; errors begin with ``where``."""
    document = parse_as(InstanceJson, content, where, extra="ignore")
    with located(where):
        _check_sizes(document)
        return library_problem({**document})


def _check_sizes(document: InstanceJson) -> None:
    """Raise FormatError if the lists of an instance do not fit together."""
    n_kinds, n_operators = len(document["kinds"]), len(document["operators"])
    wrong = {
        "devices": any(kind >= n_kinds for kind in document["devices"]),
        "links": document["objective"] != "plan"
        and [len(line) for line in document["links"]] != [n_kinds] * n_kinds,
        "operators": any(len(row["work"]) != n_kinds for row in document["operators"]),
        "streams": not all(u < v < n_operators for u, v, _ in document["streams"]),
    }
    for field, is_wrong in wrong.items():
        if is_wrong:
            raise FormatError(
                f"{field} do not fit the {n_kinds} kinds and {n_operators} operators; "
                "make the instance again"
            )


def library_problem(document: dict[str, Any]) -> Problem:
    """Convert a throughput or makespan instance to a problem for placers.

    Operator 3 of the document is ``v3``, and device 1 is ``d1``. The graph is a task graph at one
    set of tuples per second, with the costs of the document.

    Raises
    ------
    ProblemError
        For plans, and for slots that limit a throughput.
    """
    if document["objective"] == "plan":
        raise ProblemError(f"instance {quoted(document['name'])} asks for a plan, not a placement")
    second, operators, kinds = document["second"], document["operators"], document["kinds"]
    capacity = _capacities(document)
    devices = np.array(document["devices"], np.int32)
    names = [f"d{d}" for d in range(len(devices))]
    rows = [_device(name, kinds[k]) for name, k in zip(names, devices.tolist(), strict=True)]
    per_bit, latency = (
        np.array([[pair[i] for pair in line] for line in document["links"]], np.float64) / second
        for i in range(2)
    )
    with np.errstate(divide="ignore"):
        bandwidth = np.where(per_bit > 0, 1 / per_bit, np.inf)
    cluster = Cluster.of(
        rows,
        bandwidth=bandwidth[np.ix_(devices, devices)],
        latency=latency[np.ix_(devices, devices)] * ~np.eye(len(devices), dtype=bool),
    )
    graph = _task_graph(document)
    work = np.array([[x or 0 for x in row["work"]] for row in operators], np.float64)
    allowed = {
        f"v{v}": [name for name, k in zip(names, devices.tolist(), strict=True) if may[k]]
        for v, may in enumerate([[x is not None for x in row["work"]] for row in operators])
        if not all(may)
    }
    return Problem(graph, cluster, Constraints(allowed=allowed), (work / capacity)[:, devices])


def _capacities(document: dict[str, Any]) -> Floats:
    """Units of work per second of each kind; in a pass, an operator takes its work on any kind."""
    second, kinds, n = document["second"], document["kinds"], len(document["operators"])
    if OBJECTIVES[document["objective"]].kind == "pass":
        return np.full(len(kinds), float(second))
    if any(kind.get("slots", n) < n for kind in kinds):
        raise ProblemError(
            f"instance {quoted(document['name'])} limits slots, which placers do not support"
        )
    return np.array([kind.get("cpu", np.inf) for kind in kinds], np.float64)


def solution_document(
    problem: Problem, placement: Placement, objective: Objective
) -> dict[str, Any]:
    """Convert a placement of a library problem to a solution for the checker.

    The solution of a pass lists the operators in the order of their starts.
    """
    document: dict[str, Any] = {"place": placement.index.tolist()}
    if objective.kind == "pass":
        from streamplace.objectives.makespan import PassOptions, pass_schedule

        times = pass_schedule(problem, placement, PassOptions())
        document["order"] = np.lexsort((times.finish, times.start)).tolist()
    return document


def _device(name: str, kind: dict[str, int]) -> Device:
    memory, egress, ingress = (float(kind.get(field, np.inf)) for field in ("memory", "out", "in"))
    return Device(name, memory=memory, egress=Stated(egress), ingress=Stated(ingress))


def _task_graph(document: dict[str, Any]) -> StreamGraph:
    operators = [
        Operator(f"v{v}", memory=float(row["memory"]))
        for v, row in enumerate(document["operators"])
    ]
    streams = [Stream(f"v{u}", f"v{v}", payload=bits / BITS) for u, v, bits in document["streams"]]
    return StreamGraph.of(document["name"], operators, streams, fires="all")
