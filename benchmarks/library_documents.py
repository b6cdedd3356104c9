"""Problems and plans as instances of the library."""

from typing import Any

import networkx as nx
import numpy as np

from streamplace.errors import ProblemError
from streamplace.library.documents import BITS, SECOND
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.planning.demand import ALL_TO_ALL, demand_of
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.packing import allowed

BITS_PART = 10**6
"""Plans count millionths of bits, as pairs of pieces exchange few bits."""


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


def plan_document(graph: StreamGraph, catalogue: Catalogue) -> dict[str, Any]:
    """Convert a graph at its rate, with offers, to an instance of the library.

    Every operator has one piece per key group. Its subtasks own whole key groups, so machines hold
    whole pieces.

    Raises
    ------
    ProblemError
        When instances of the library cannot express the graph or the offers.
    """
    demand, offers = demand_of(graph), catalogue.offers
    if not all(len(groups) == 1 and 0 not in groups for groups in demand.group_counts):
        raise ProblemError("plans of the library need max_parallelism for every operator")
    if (demand.joined != ALL_TO_ALL).any():
        raise ProblemError("plans of the library need streams that are hashed")
    if catalogue.overhead or catalogue.overhead_per_byte or any(offer.at_least for offer in offers):
        raise ProblemError("plans of the library cannot express overhead and at_least")
    if demand.constant.any():
        raise ProblemError("plans of the library cannot express constant loads of operators")
    if graph.operators.max_rate.any() or (graph.operators.cores > 1).any():
        raise ProblemError("plans of the library cannot express a max_rate of operators, or cores")
    if demand.messages is not None:
        raise ProblemError("plans of the library cannot express messages between subtasks")
    prices, runs = Prices.of(catalogue), allowed(demand, catalogue)
    pieces = [min(groups) for groups in demand.group_counts]
    number = {v: i for i, v in enumerate(graph.order.tolist())}
    operators = []
    for v in graph.order.tolist():
        work = [
            round(float(demand.instructions[v]) / pieces[v] / offer.core_speed * SECOND)
            for offer in offers
        ]
        operators.append(
            {
                "pieces": pieces[v],
                "memory": int(np.ceil(demand.memory[v] / pieces[v])),
                "work": [x if runs[t, v] and x <= SECOND else None for t, x in enumerate(work)],
            }
        )
    for row, v in zip(operators, graph.order.tolist(), strict=True):
        if not any(x is not None for x in row["work"]):
            raise ProblemError(
                f"a piece of operator {quoted(demand.name[v])} is too much for every core; raise "
                "max_parallelism"
            )
    ends = zip(demand.source.tolist(), demand.target.tolist(), demand.bits.tolist(), strict=True)
    return {
        "name": graph.name,
        "objective": "plan",
        "second": SECOND,
        "kinds": [
            _machine_kind(offer, price) for offer, price in zip(offers, prices.numbers, strict=True)
        ],
        "devices": [],
        "links": [],
        "operators": operators,
        "streams": sorted(
            [number[u], number[v], round(bits * BITS_PART / pieces[u] / pieces[v])]
            for u, v, bits in ends
        ),
    }


def _machine_kind(offer: Any, price: int) -> dict[str, int]:
    limits = {
        "memory": offer.memory,
        "slots": offer.slots,
        "out": offer.egress * BITS_PART,
        "in": offer.ingress * BITS_PART,
    }
    return {
        "price": price,
        "at_most": offer.at_most,
        "cpu": offer.cores * SECOND,
        **{name: int(x) for name, x in limits.items() if np.isfinite(x)},
    }
