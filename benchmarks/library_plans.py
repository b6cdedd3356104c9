"""Plans for the library's entries: the planner, first fit and the rule of Flink's autoscaler.

Every piece of an operator is a subtask, so a plan for the graph is one for the instance, which the
checker values. Each plan is made in this process, which has compiled all kernels before.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from library_documents import BITS_PART
from library_proofs import check, value_of
from library_runs import SECONDS, LibraryRun
from plan import AUTOSCALER

from streamplace import Offer, Operator, Stream, StreamGraph, plan
from streamplace.errors import StreamplaceError
from streamplace.library.documents import BITS
from streamplace.library.folder import Library, LibraryEntry
from streamplace.placers.registry import Budget
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.search import first_fit_machines

MIPS = 2500.0
Machines = list[list]
Planner = Callable[[StreamGraph, Catalogue], Machines]


def graph_and_offers(document: dict) -> tuple[StreamGraph, Catalogue]:
    """Graph and offers of an instance, whose kinds differ in price and limits alone."""
    rows, kinds, second = document["operators"], document["kinds"], document["second"]
    targets = {v for _, v, _ in document["streams"]}
    operators = [
        Operator(
            f"v{v}",
            ipt=row["pieces"] * next(x for x in row["work"] if x is not None) / second * MIPS * 1e6,
            memory=row["memory"] * row["pieces"],
            rate=0.0 if v in targets else 1.0,
            parallelism=row["pieces"],
            max_parallelism=row["pieces"],
        )
        for v, row in enumerate(rows)
    ]
    streams = [
        Stream(
            f"v{u}",
            f"v{v}",
            payload=bits * rows[u]["pieces"] * rows[v]["pieces"] / BITS_PART / BITS,
            partitioning="hash",
        )
        for u, v, bits in document["streams"]
    ]
    offers = [
        Offer(
            f"k{k}",
            kind["price"],
            mips=MIPS,
            cores=kind["cpu"] // second,
            memory=kind.get("memory", float("inf")),
            slots=kind.get("slots", float("inf")),
            egress=kind.get("out", float("inf")) / BITS_PART,
            ingress=kind.get("in", float("inf")) / BITS_PART,
            at_most=kind["at_most"],
        )
        for k, kind in enumerate(kinds)
    ]
    graph = StreamGraph.of(document["name"], operators, streams, fires="all")
    return graph, Catalogue.of(offers)


def planned(graph: StreamGraph, catalogue: Catalogue) -> Machines:
    """Plan of streamplace."""
    result = plan(graph, offers=catalogue, keep_parallelism=True, budget=Budget(SECONDS))
    contents: dict[str, Counter] = {name: Counter() for name in result.cluster.devices.name}
    for operator, places in result.subtasks().items():
        for machine, count in places.items():
            contents[machine][int(operator[1:])] += count
    return [
        [int(name.partition("-")[0][1:]), [[v, a] for v, a in sorted(on.items())]]
        for name, on in contents.items()
    ]


def first_fit(graph: StreamGraph, catalogue: Catalogue) -> Machines:
    """First fit decreasing by dot product, on the cheapest machines of one type."""
    packed = first_fit_machines(demand_of(graph, fixed=True), catalogue)
    if packed is None:
        return []
    return [
        [kind, [[v, a] for v, a in enumerate(row) if a]]
        for kind, row in zip(packed.kinds.tolist(), packed.rows.tolist(), strict=True)
    ]


def autoscaler(graph: StreamGraph, catalogue: Catalogue) -> Machines:
    """First fit for the rate that Flink's autoscaler provides."""
    return first_fit(graph.at_rate(graph.source_rate * AUTOSCALER), catalogue)


METHODS: dict[str, Planner] = {
    "plan": planned,
    "first fit": first_fit,
    "autoscaler's rule": autoscaler,
}


def planner_run(library: Library, entry: LibraryEntry, method: str) -> LibraryRun:
    """Make a plan, and have the checker value it."""
    document = json.loads(library.instance_file(entry.instance).read_bytes())
    question = graph_and_offers({**document, "name": entry.instance})
    machines, value, begin = [], None, time.process_time()
    with suppress(StreamplaceError):  # no plan within the budget
        machines = METHODS[method](*question)
    seconds = round(time.process_time() - begin, 3)
    with suppress(check.RefusedError):
        value = float(value_of(document, {"machines": machines}))
    return LibraryRun(entry.instance, "plan", method, value, seconds)
