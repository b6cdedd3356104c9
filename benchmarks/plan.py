"""Plans of applications and of CAPSys's queries: cost against bound, and against rules.

Run ``python benchmarks/plan.py [--seconds 10] [--cores 3.7 11 37] [--graphs applications capsys]``.
Every graph is planned at rates that fill so many cores of 2500 MIPS, for three price lists.
Compared are

- ours: `streamplace.plan`, for as many seconds of CPU as asked,
- first fit: parallelisms as DS2 sets them, packed by dot product onto the cheapest machines of one
  type,
- autoscaler: the documented rule of Flink's autoscaler, re-implemented: with a utilization of 0.7,
  a restart of 5 and a catch-up of 30 minutes it provides 1 / 0.7 + 5 / 30 = 1.595 times the rate;
  packed by first fit onto machines of one type,
- fluid: the divisible relaxation of the resources, a bound,

each as a ratio to the proven bound.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from streamplace import Offer, StreamGraph, plan, read_graph
from streamplace.placers import stopwatch
from streamplace.placers.registry import Budget
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.search import first_fit_machines

DATASETS = Path(__file__).parents[1] / "datasets"
AUTOSCALER = 1 / 0.7 + 5 / 30
"""Times the rate that Flink's autoscaler provides by default: utilization, restart, catch-up."""
KEY_GROUPS, SPLITS = 128, 64
MIPS = 2500.0
GIGABIT = 1e9


def machine(name: str, price: float, cores: int, mips: float = MIPS, gigabits: float = 10) -> Offer:
    """Type of machine whose network card sends and receives as much."""
    width = gigabits * GIGABIT
    return Offer(name, price, mips=mips, cores=cores, egress=width, ingress=width)


LISTS = {
    "one type": [machine("m4", 0.2, 4)],
    "four types": [machine(f"m{c}", p, c) for c, p in ((2, 0.1), (4, 0.19), (8, 0.37), (16, 0.7))],
    "twelve types": [
        *(machine(f"m{c}", p, c) for c, p in ((1, 0.06), (2, 0.11), (4, 0.2), (8, 0.36))),
        *(machine(f"f{c}", p, c, 3500) for c, p in ((2, 0.17), (4, 0.29), (8, 0.53), (16, 1.01))),
        *(machine(f"n{c}", p, c, 2500, 25) for c, p in ((2, 0.14), (4, 0.25), (8, 0.45))),
        machine("s4", 0.13, 4, 1500),
    ],
}
OVERHEAD = "100 ns"


def keyed(graph: StreamGraph) -> StreamGraph:
    """Return the graph with key groups behind hashed streams, and splits of sources."""
    hashed = {s.target for s in graph.streams if s.partitioning == "hash"}
    operators = [
        replace(
            operator,
            parallelism=1,
            max_parallelism=SPLITS if operator.rate else KEY_GROUPS * (operator.name in hashed),
        )
        for operator in graph.operators
    ]
    return StreamGraph.of(graph.name, operators, graph.streams)


def first_fit(graph: StreamGraph, catalogue: Catalogue) -> float:
    """Cost of first fit."""
    packed = first_fit_machines(demand_of(graph), catalogue)
    if packed is None:
        return float("nan")
    return Prices.of(catalogue).per_hour(packed.counts(len(catalogue.offers)))


def main() -> None:
    """Print a line for each plan of all graphs, rates and price lists, and a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--cores", type=float, nargs="+", default=[3.7, 11, 37])
    parser.add_argument("--graphs", nargs="+", default=["applications", "capsys"])
    parser.add_argument("--names", nargs="*", default=None)
    parser.add_argument("--lists", nargs="+", default=list(LISTS))
    arguments = parser.parse_args()
    stopwatch.clock = time.process_time
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in arguments.lists}
    for folder in arguments.graphs:
        for path in sorted((DATASETS / folder).glob("*.json")):
            if arguments.names and path.stem not in arguments.names:
                continue
            graph = keyed(read_graph(path))
            for cores in arguments.cores:
                asked = filling(graph, cores)
                for kind in arguments.lists:
                    catalogue = Catalogue.of(LISTS[kind], OVERHEAD)
                    rows[kind].append(measured(asked, catalogue, kind, arguments))
    print_table(rows)


def load(graph: StreamGraph) -> float:
    """Cores of 2500 MIPS that a graph fills."""
    per_tuple = float((graph.input_rate * graph.charged_ipt).sum()) / (MIPS * 1e6)
    return per_tuple + always(graph)


def always(graph: StreamGraph) -> float:
    """Cores of 2500 MIPS that a graph uses at any rate."""
    return float(graph.operators.constant.sum()) / MIPS


def filling(graph: StreamGraph, cores: float) -> StreamGraph:
    """Return the graph at the rate at which it fills so many cores of 2500 MIPS."""
    at_any_rate = always(graph)
    if at_any_rate >= cores:
        raise SystemExit(f"{graph.name} uses {at_any_rate:.2f} cores at any rate; ask for more")
    times = (cores - at_any_rate) / (load(graph) - at_any_rate)
    return graph.at_rate(graph.source_rate * times)


def print_table(rows: dict[str, list[tuple[float, ...]]]) -> None:
    """Print a line for each price list."""
    print(
        "price list       plans  <=1.02  cheapest    p90  worst  "
        "first fit  autoscaler  fluid  s p90"
    )
    for kind, values in rows.items():
        ours, fit, rule, fluid, seconds, cheapest = np.array(values).T
        print(
            f"{kind:15s} {len(values):6d} {np.mean(ours <= 1.02):7.0%} {np.mean(cheapest):9.0%} "
            f"{np.quantile(ours, 0.9):6.3f} {ours.max():6.3f} {np.nanmedian(fit):10.3f} "
            f"{np.nanmedian(rule):11.3f} {np.median(fluid):6.3f} {np.quantile(seconds, 0.9):6.1f}"
        )


def measured(
    graph: StreamGraph, catalogue: Catalogue, kind: str, arguments: argparse.Namespace
) -> tuple[float, ...]:
    """Ratios to the bound, seconds of CPU, and whether the plan is proven to be the cheapest."""
    begin = time.process_time()
    result = plan(graph, offers=catalogue, budget=Budget(arguments.seconds))
    seconds = time.process_time() - begin
    bound = float(result.bound)
    ratios = (
        result.cost / bound,
        first_fit(graph, catalogue) / bound,
        first_fit(graph.at_rate(graph.source_rate * AUTOSCALER), catalogue) / bound,
        float(result.bounds["resources"]) / bound,
    )
    print(
        f"{graph.name:20s} {graph.source_rate:10.0f}/s {kind:13s} cost {result.cost:8.3f} "
        f"bound {bound:8.3f} ratios {' '.join(f'{ratio:.3f}' for ratio in ratios)} "
        f"{seconds:5.1f} s",
        flush=True,
    )
    return (*ratios, seconds, float(result.is_cheapest))


if __name__ == "__main__":
    main()
