"""Instances and solutions of the library as documents of the checker, and as problems."""

from typing import Annotated, Any, Literal

import networkx as nx
import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from streamplace.errors import FormatError, ProblemError
from streamplace.io.fields import ListOf, TableOf
from streamplace.io.files import located
from streamplace.io.parsing import parse_as
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.devices import Device
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
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
    """Fields of an instance that become a problem; the checker reads others of plans."""

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
    """Raise FormatError where lists of an instance do not fit together."""
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


def instance_document(problem: Problem, objective: Objective) -> dict[str, Any]:
    """Convert a problem to an instance of the library, in whole numbers.

    Operators are numbered in topological order, as in `library_problem`. All sources run at the
    same share of their rates. Windows are represented by their output at full rate.

    Raises
    ------
    ProblemError
        When instances of the library cannot express the problem.
    """
    _check(problem, objective)
    instance, kinds = problem.instance, problem.interchangeable
    first = np.unique(kinds, return_index=True)[1]
    if objective.kind == "pass":
        one_pass = problem.one_pass
        work = one_pass.work[:, instance.device_type[first]]
        size, per_byte = one_pass.streams["size"], one_pass.links["seconds_per_byte"]
    else:
        work = (instance.input_rate[:, None] * instance.seconds)[:, instance.device_type[first]]
        size, per_byte = instance.traffic, None
    order = instance.order
    number = np.empty(problem.n_operators, np.int64)
    number[order] = np.arange(problem.n_operators)
    allowed = _allowed(problem)[:, first]
    memory = np.ceil(problem.graph.operators.memory)
    operators = [
        {
            "pieces": 1,
            "memory": int(memory[v]),
            "work": [
                round(float(x) * SECOND) if may else None
                for x, may in zip(work[v], allowed[v], strict=True)
            ],
        }
        for v in order.tolist()
    ]
    ends = zip(number[instance.source].tolist(), number[instance.target].tolist(), strict=True)
    streams = sorted(
        [u, v, round(BITS * bits)] for (u, v), bits in zip(ends, size.tolist(), strict=True)
    )
    document = {
        "name": problem.graph.name,
        "objective": objective.name,
        "second": SECOND,
        "kinds": [_kind(problem, d, per_byte is not None) for d in first.tolist()],
        "devices": kinds.tolist(),
        "links": _links(problem, kinds, per_byte),
        "operators": operators,
        "streams": streams,
    }
    return _connected(document)


def library_problem(document: dict[str, Any]) -> Problem:
    """Convert a throughput or makespan instance to a problem for placers.

    Operator ``v3`` and device ``d1`` have these numbers in the document. The graph is a task graph
    at one set of tuples per second, with the costs of the document.

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
    """Convert a placement of a library problem to a solution for the checker."""
    document: dict[str, Any] = {"place": placement.index.tolist()}
    if objective.kind == "pass":
        document["order"] = starting_order(problem, placement)
    return document


def starting_order(problem: Problem, placement: Placement) -> list[int]:
    """Operators in the order in which a pass under a placement starts them."""
    from streamsim.passes import schedule

    from streamplace.objectives.makespan.options import PassOptions

    rules, priorities = PassOptions().rules_of(placement)
    times = schedule(problem.one_pass, placement.index, rules, priorities=priorities)
    index = np.arange(problem.n_operators)
    return [int(v) for v in np.lexsort((index, times.finish, times.start))]


def _check(problem: Problem, objective: Objective) -> None:
    """Raise ProblemError for features that instances of the library cannot express."""
    instance, constraints = problem.instance, problem.constraints
    cores = instance.cores
    refused = {
        "groups of operators that are together or apart": constraints.colocate
        or constraints.exlocate,
        "costs of remote tuples": instance.overhead or instance.overhead_per_byte or instance.gap,
        "streams that share an input": any(problem.graph.streams.input),
        "devices with several cores": objective.kind == "pass" and (cores > 1).any(),
        "operators with fewer subtasks than a device has cores": objective.kind != "pass"
        and instance.parallelism.min() < cores.max(),
        "constant loads of operators": objective.kind != "pass" and len(instance.constant),
        "operators with a max_rate": objective.kind != "pass" and len(instance.max_rate),
    }
    for what, present in refused.items():
        if present:
            raise ProblemError(f"instances of the library cannot express {what}")


def _allowed(problem: Problem) -> Bools:
    rules = problem.rules
    if rules is None:
        return np.ones((problem.n_operators, problem.n_devices), np.bool_)
    return np.asarray(rules.allowed[rules.unit])


def _kind(problem: Problem, d: int, in_links: bool) -> dict[str, int]:
    """Limits of a device; if a pass is timed, links have those of network cards."""
    instance, memory = problem.instance, float(problem.cluster.devices.memory[d])
    limits = {"cpu": int(instance.cores[d]) * SECOND}
    if np.isfinite(memory):
        limits["memory"] = int(memory)
    for name, per_byte in (("out", instance.egress[d]), ("in", instance.ingress[d])):
        if per_byte > 0 and not in_links:
            limits[name] = round(BITS / float(per_byte))
    return limits


def _links(problem: Problem, kinds: Ints, per_byte: Floats | None) -> list[list[list[int]]]:
    """Units of time per bit, and latency, between devices of each pair of kinds."""
    instance = problem.instance
    slowest = instance.seconds_per_byte if per_byte is None else per_byte
    per_bit: Floats = slowest / BITS * SECOND
    latency: Floats = instance.latency * SECOND
    devices = [np.flatnonzero(kinds == k).tolist() for k in range(int(kinds.max()) + 1)]
    return [
        [[round(float(per_bit[a[0], b[-1]])), round(float(latency[a[0], b[-1]]))] for b in devices]
        for a in devices
    ]


def _connected(document: dict[str, Any]) -> dict[str, Any]:
    """Join the parts of an instance, so that all sources run at the same share of their rates.

    Parts of a graph without streams between them are joined by an operator without work.
    """
    operators = range(len(document["operators"]))
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(operators)
    graph.add_edges_from((u, v) for u, v, _ in document["streams"])
    if nx.is_connected(graph):
        return document
    targets = {v for _, v, _ in document["streams"]}
    sources = [v for v in operators if v not in targets]
    free = {"pieces": 1, "memory": 0, "work": [0] * len(document["kinds"])}
    streams = [[u + 1, v + 1, bits] for u, v, bits in document["streams"]]
    return document | {
        "operators": [free, *document["operators"]],
        "streams": [*([0, v + 1, 0] for v in sources), *streams],
    }


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
