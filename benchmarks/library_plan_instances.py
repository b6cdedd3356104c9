"""Plans as instances of the library."""

from typing import Any

import numpy as np

from streamplace.errors import ProblemError
from streamplace.library.documents import SECOND
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.planning.demand import ALL_TO_ALL, demand_of
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.packing import allowed

BITS_PART = 10**6
"""Plans count millionths of bits, as pairs of pieces exchange few bits."""


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
    if not all(len(groups) == 1 and 0 not in groups for groups in demand.dealing):
        raise ProblemError("plans of the library need max_parallelism for every operator")
    if (demand.joined != ALL_TO_ALL).any():
        raise ProblemError("plans of the library need streams that are hashed")
    if catalogue.overhead or catalogue.overhead_per_byte or any(offer.at_least for offer in offers):
        raise ProblemError("plans of the library cannot express overhead and at_least")
    if demand.constant.any():
        raise ProblemError("plans of the library cannot express constant loads of operators")
    if graph.operators.max_rate.any():
        raise ProblemError("plans of the library cannot express a max_rate of operators")
    if demand.messages is not None:
        raise ProblemError("plans of the library cannot express messages between subtasks")
    prices, runs = Prices.of(catalogue), allowed(demand, catalogue)
    pieces = [min(groups) for groups in demand.dealing]
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
        "kinds": [_kind(offer, price) for offer, price in zip(offers, prices.numbers, strict=True)],
        "devices": [],
        "links": [],
        "operators": operators,
        "streams": sorted(
            [number[u], number[v], round(bits * BITS_PART / pieces[u] / pieces[v])]
            for u, v, bits in ends
        ),
    }


def _kind(offer: Any, price: int) -> dict[str, int]:
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
