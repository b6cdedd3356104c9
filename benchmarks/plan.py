"""Plans of the applications in datasets/applications: cost against bound, and against rules.

Run ``python benchmarks/plan.py [--seconds 5] [--cores 3.7 11 37]``. Every application is planned at
rates that fill so many cores of 2500 MIPS, for three price lists. Compared are

- ours: `streamplace.plan`, for as many seconds of CPU as asked,
- first fit: parallelisms as DS2 sets them, packed by dot product onto the cheapest machines of one
  type,
- autoscaler: the documented rule of Flink's autoscaler, re-implemented: with a utilization of 0.7,
  a restart of 5 and a catch-up of 30 minutes it provides 1 / 0.7 + 5 / 30 = 1.595 times the rate;
  packed by first fit onto machines of one type,

each as a ratio to the proven bound.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from streamplace import Offer, StreamGraph, plan, read_graph
from streamplace.model.operators import Operator
from streamplace.placers import stopwatch
from streamplace.placers.registry import Budget
from streamplace.planning.counts import Prices
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.search import first_fit_machines

FOLDER = Path(__file__).parents[1] / "datasets" / "applications"
AUTOSCALER = 1 / 0.7 + 5 / 30
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
    operators = []
    for operator in graph.operators:
        groups = SPLITS if operator.rate else KEY_GROUPS * (operator.name in hashed)
        facts = {name: getattr(operator, name) for name in Operator.__dataclass_fields__}
        operators.append(Operator(**{**facts, "max_parallelism": groups, "parallelism": 1}))
    return StreamGraph.of(graph.name, operators, graph.streams)


def cost(graph: StreamGraph, catalogue: Catalogue) -> float:
    """Cost of first fit."""
    packed = first_fit_machines(demand_of(graph), catalogue)
    if packed is None:
        return float("nan")
    prices = Prices.of(catalogue)
    return float(prices.cost(packed.counts(len(catalogue.offers))) * prices.unit)


def main() -> None:
    """Print a line for each plan, and a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--cores", type=float, nargs="+", default=[3.7, 11, 37])
    parser.add_argument("--applications", nargs="*", default=None)
    arguments = parser.parse_args()
    stopwatch.clock = time.process_time
    names = arguments.applications or sorted(path.stem for path in FOLDER.glob("*.json"))
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in LISTS}
    for name in names:
        graph = keyed(read_graph(FOLDER / f"{name}.json"))
        load = float((graph.input_rate * graph.operators.ipt).sum()) / (MIPS * 1e6)
        for cores in arguments.cores:
            asked = graph.at_rate(graph.source_rate * cores / load)
            for kind, offers in LISTS.items():
                rows[kind].append(measured(asked, Catalogue.of(offers, OVERHEAD), kind, arguments))
    print(
        "price list      ours ≤ 1.02   cheapest   ours p50 p90   first fit p50 (none)   "
        "autoscaler p50 (none)   resources p50   s p90"
    )
    for kind, values in rows.items():
        ours, fit, rule, fluid, seconds, cheapest = np.array(values).T
        print(
            f"{kind:14s} {np.mean(ours <= 1.02):10.0%} {np.mean(cheapest):10.0%} "
            f"{np.median(ours):10.3f} {np.quantile(ours, 0.9):.3f} "
            f"{np.nanmedian(fit):10.3f} ({np.isnan(fit).sum()}) "
            f"{np.nanmedian(rule):14.3f} ({np.isnan(rule).sum()}) "
            f"{np.median(fluid):14.3f} {np.quantile(seconds, 0.9):8.1f}"
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
        cost(graph, catalogue) / bound,
        cost(graph.at_rate(graph.source_rate * AUTOSCALER), catalogue) / bound,
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
