"""Given subtasks on given workers: the most loaded worker is to be loaded least, as CAPSys asks.

Run ``python benchmarks/spread.py [--workers 4 16] [--names q1 q2 …]``. The subtasks of CAPSys's
profiles are placed on four workers of eight slots, and as many copies of them as fit on 16 workers
of 64 slots. A worker has one core of 2500 MIPS for every slot, of which a subtask may use several,
and a network card of 10 Gbit/s. Its load is the largest share of any of these that is in use.
Loads and bounds are those of the search of `streamplace.plan` with ``keep_parallelism``, by
bisection of the rate.
"""

import argparse
import time
from pathlib import Path

from plan import DATASETS, MIPS, OVERHEAD, load

from streamplace import Offer, StreamGraph, read_graph
from streamplace.model.operators import Operator
from streamplace.planning.bounds import proven_bound
from streamplace.planning.demand import Demand, demand_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.packing import (
    CPU,
    EGRESS,
    INGRESS,
    PackedMachines,
    largest_use,
    packing_of,
)
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.search import PlanSearch

SLOTS = {4: 8, 16: 64}
"""Slots of each worker, by the number of workers."""
PROBES, STEPS, NODES = 8, 400_000, 1024
EQUAL = 1e-6
"""Loads that differ by this share are equal."""


def copied(graph: StreamGraph, copies: int) -> StreamGraph:
    """Return the graph with so many times the subtasks and the rate, divided evenly."""
    operators = []
    for operator in graph.operators:
        facts = {name: getattr(operator, name) for name in Operator.__dataclass_fields__}
        more = {"parallelism": copies * operator.parallelism, "rate": copies * operator.rate}
        operators.append(Operator(**{**facts, **more, "max_parallelism": 0}))
    return StreamGraph.of(graph.name, operators, graph.streams)


def worker(workers: int) -> Catalogue:
    """So many workers, no fewer and no more."""
    slots, width = SLOTS[workers], 1e10
    offer = Offer(
        "worker",
        1.0,
        mips=slots * MIPS,
        slots=slots,
        egress=width,
        ingress=width,
        at_least=workers,
        at_most=workers,
    )
    return Catalogue.of([offer], OVERHEAD)


def asked(graph: StreamGraph, catalogue: Catalogue, times: float) -> PlanProblem:
    """The problem of a plan for a multiple of the rate, with the subtasks of the graph."""
    faster = graph.at_rate(times * graph.source_rate)
    return PlanProblem.of(faster, catalogue, PlannerSettings(keep_parallelism=True))


def least_load(graph: StreamGraph, catalogue: Catalogue, fluid: float) -> PackedMachines:
    """Return the placement whose most loaded worker has the least load that was found."""
    carried, most, workers = 0.0, (1 + EQUAL) / fluid, catalogue.offers[0].at_most
    demand = asked(graph, catalogue, 1.0).demand
    best: PackedMachines | None = None
    for _ in range(PROBES):
        probe = (carried + most) / 2
        packed = PlanSearch(asked(graph, catalogue, probe)).pack((workers,), STEPS)
        if packed is None:
            most = probe
            continue
        best, carried = packed, 1 / load_of(demand, catalogue, packed)
    assert best is not None
    return best


def load_of(demand: Demand, catalogue: Catalogue, packed: PackedMachines) -> float:
    """Load of the most loaded worker."""
    packing = packing_of(demand, catalogue, packed.parallelism)
    return float(largest_use(packing, packed)[:, [CPU, EGRESS, INGRESS]].max())


def load_bound(graph: StreamGraph, catalogue: Catalogue, reached: float, fluid: float) -> float:
    """Return a load that no placement is below, by bisection of the rates with a bound."""
    low, excluded = 1 / reached, (1 + EQUAL) / fluid
    probe = low * (1 + EQUAL)
    for _ in range(PROBES):
        demand = asked(graph, catalogue, probe).demand
        if proven_bound(demand, catalogue, most_nodes=NODES) is None:
            excluded = probe
        else:
            low = probe
        if excluded <= (1 + EQUAL) / reached:
            break
        probe = (low + excluded) / 2
    return 1 / excluded


def compared(path: Path, workers: int) -> None:
    """Print the load that is found, and its bound."""
    graph, slots = read_graph(path), SLOTS[workers]
    graph = copied(graph, workers * slots // int(graph.operators.parallelism.sum()))
    demand, catalogue = demand_of(graph, fixed=True), worker(workers)
    fluid = load(graph) / (workers * slots)
    begin = time.process_time()
    packed = least_load(graph, catalogue, fluid)
    ours = load_of(demand, catalogue, packed)
    searched = time.process_time() - begin
    bound = load_bound(graph, catalogue, ours, fluid)
    proven = time.process_time() - begin - searched
    print(
        f"{graph.name:10s} {packed.parallelism.sum():5d} subtasks, {workers} x {slots}: load "
        f"{ours:.4f} in {searched:.2f} s, bound {bound:.4f} in {proven:.2f} s, {ours / bound:.4f}",
        flush=True,
    )


def main() -> None:
    """Print a line for each query and number of workers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", choices=list(SLOTS), default=list(SLOTS))
    parser.add_argument("--names", nargs="*", default=None)
    arguments = parser.parse_args()
    for workers in arguments.workers:
        for path in sorted((DATASETS / "capsys").glob("*.json")):
            if not arguments.names or path.stem in arguments.names:
                compared(path, workers)


if __name__ == "__main__":
    main()
