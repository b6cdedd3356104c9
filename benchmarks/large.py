"""Large graphs: auto against METIS with target weights, Mt-KaHyPar and KaHIP.

Run ``python benchmarks/large.py`` (all shapes, clusters and characters of 10,000 and 100,000
operators, in 15 minutes of CPU; ``--operators 1000000 --seconds 60 --shapes layered`` for a larger
one). Prints relative throughputs, CPU seconds, and ``auto`` as a share of the bound and as a
multiple of the best of the others. Mt-KaHyPar and KaHIP take part where the packages mtkahypar and
kahip are installed; their seconds count the partitioning alone. The clock of budgets counts CPU
seconds here, so that other work on the machine does not matter; with ``--load 11`` it runs eleven
times as fast, as it does for a process that gets an eleventh of a core. Any placer may take part:
``--placers auto exact --operators 24`` shows how loose the simple bound is on network-bound graphs.
"""

import argparse
import time

from large_peers import Partitioner, Placed, installed
from large_problems import CHARACTERS, CLUSTERS, LAYERED, SHAPES, problem_of

from streamplace.model import Problem
from streamplace.model.level import finest_level, least_peak
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]


def by_placer(name: str, seconds: float) -> Partitioner:
    """Return what places by one of our placers, and its CPU seconds."""

    def place(problem: Problem) -> Placed:
        start = time.process_time()
        result = PLACERS[name].place(problem, THROUGHPUT, budget=Budget(seconds))
        bound = 1.0 if result.bound is None else result.bound
        return Placed(result.placement, time.process_time() - start, bound)

    return place


def row(problem: Problem, placers: dict[str, Partitioner]) -> str:
    """Bound, every placer's throughput and seconds, and how auto compares."""
    placed = {name: place(problem) for name, place in placers.items()}
    values = {name: THROUGHPUT.value(problem, each.placement) for name, each in placed.items()}
    simple = 1 / max(least_peak(problem, finest_level(problem)), 1.0)
    bound = min(simple, *(each.bound for each in placed.values()))
    cells = [f"{values[name]:.3f} ({each.seconds:.1f} s)" for name, each in placed.items()]
    cells.insert(0, f"{bound:.3f}")
    if "auto" in values:
        cells.append(f"{values['auto'] / bound:.3f}")
        others = [value for name, value in values.items() if name != "auto"]
        cells.append(f"{values['auto'] / max(others):.2f}" if others else "")
    return " | ".join(cells)


def main() -> None:
    """Print one row per problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--shapes", nargs="*", default=[*SHAPES, LAYERED])
    parser.add_argument("--clusters", nargs="*", default=list(CLUSTERS))
    parser.add_argument("--characters", nargs="*", default=list(CHARACTERS))
    parser.add_argument("--placers", nargs="*", default=["metis", *installed(), "auto"])
    given = parser.parse_args()
    others = installed()
    placers = {name: others.get(name) or by_placer(name, given.seconds) for name in given.placers}
    by_placer("auto", 0.5)(problem_of("hubs", "uneven", "mixed", 2000))  # compile
    stopwatch.clock = lambda: given.load * time.process_time()
    more = ("of bound", "of others") if "auto" in placers else ()
    print("| operators | shape | devices | character | bound |", " | ".join((*placers, *more)), "|")
    print("|---" * (5 + len(placers) + len(more)) + "|")
    for n in given.operators:
        for shape in given.shapes:
            for devices in given.clusters:
                for character in given.characters:
                    problem = problem_of(shape, devices, character, n)
                    cells = f"{n:,} | {shape} | {devices} | {character}"
                    print(f"| {cells} | {row(problem, placers)} |", flush=True)


if __name__ == "__main__":
    main()
