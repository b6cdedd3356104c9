"""Planted instances: what partitioners and a search of one second reach.

    python benchmarks/planted.py [--operators 10000] [--devices 16]

The best throughput of all is 0.8. A line per dial: METIS (pymetis), Mt-KaHyPar where it is
installed, and streamplace's `auto` at one second, as shares of 0.8.
"""

import argparse
from functools import cache

import numpy as np
from library_planted import PlantedShape, planted_throughput

from streamplace import Budget, place
from streamplace.library.documents import library_problem
from streamplace.objectives.registry import OBJECTIVES

DIALS = [(0.05, 0), (0.2, 0), (0.5, 0), (0.05, 3), (0.2, 3), (0.5, 3)]


def metis(document: dict, parts: int) -> np.ndarray:
    """Partition by METIS: operators weighted by work, streams by bits."""
    import pymetis

    neighbours: list[dict[int, int]] = [{} for _ in document["operators"]]
    for u, v, bits in document["streams"]:
        neighbours[u][v] = neighbours[v][u] = neighbours[u].get(v, 0) + bits // 1000 + 1
    starts = np.r_[0, np.cumsum([len(line) for line in neighbours])]
    work = np.array([row["work"][0] for row in document["operators"]])
    return np.array(
        pymetis.part_graph(
            parts,
            pymetis.CSRAdjacency(starts.tolist(), [u for line in neighbours for u in line]),
            eweights=[w for line in neighbours for w in line.values()],
            vweights=np.maximum(1, work // (work.sum() // 10**8)).tolist(),
        )[1]
    )


@cache
def _kahypar() -> object:
    import mtkahypar

    return mtkahypar.initialize(1)


def kahypar(document: dict, parts: int) -> np.ndarray:
    """Partition by Mt-KaHyPar with an imbalance of 1 %."""
    import mtkahypar

    engine = _kahypar()
    context = engine.context_from_preset(mtkahypar.PresetType.QUALITY)
    context.set_partitioning_parameters(parts, 0.01, mtkahypar.Objective.CUT)
    mtkahypar.set_seed(0)
    context.logging = False
    work = np.array([row["work"][0] for row in document["operators"]])
    pairs: dict[tuple[int, int], int] = {}
    for u, v, bits in document["streams"]:
        pairs[u, v] = pairs.get((u, v), 0) + bits // 1000 + 1
    graph = engine.create_graph(
        context,
        len(work),
        len(pairs),
        list(pairs),
        np.maximum(1, work // (work.sum() // 10**8)).tolist(),
        list(pairs.values()),
    )
    return np.array(graph.partition(context).get_partition())


def reached(shape: PlantedShape, seed: int) -> list[str]:
    """Shares of the planted optimum."""
    planted = planted_throughput(shape, seed)
    problem, judge = library_problem(planted.document), OBJECTIVES["throughput"]

    def value(place_: object) -> float:
        return float(judge.evaluate(problem, np.array([place_], np.int32))[0]) / 0.8

    texts = [f"{value(planted.solution['place']):.3f}"]
    for partition in (metis, kahypar):
        try:
            texts.append(f"{value(partition(planted.document, shape.devices)):.3f}")
        except ImportError:
            texts.append("-")
    result = place(problem, placer="auto", objective="throughput", budget=Budget(1.0), seed=seed)
    return [*texts, f"{result.value / 0.8:.3f}"]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operators", type=int, default=10_000)
    parser.add_argument("--devices", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("mixing large  planted  METIS  Mt-KaHyPar  auto")
    for mixing, large in DIALS:
        shape = PlantedShape(options.operators, options.devices, mixing, large)
        texts = reached(shape, options.seed)
        print(f"{mixing:6g} {large:5d}  {'  '.join(f'{text:>7s}' for text in texts)}", flush=True)


if __name__ == "__main__":
    main()
