r"""Graphs that the shipped ``dream`` was trained on: known topologies, costs drawn anew.

    python benchmarks/dream_graphs.py -o problems.jsonl.gz
    streamplace train dream --data problems.jsonl.gz --out runs/dream
    streamplace train dream --data problems.jsonl.gz --config benchmarks/dream-last.toml \
        --start runs/dream/best.safetensors --out runs/dream-2
    python benchmarks/dream_graphs.py --seed 1 --own 0.4 -o more.jsonl.gz
    streamplace train dream --data more.jsonl.gz --config benchmarks/dream-last.toml \
        --start runs/dream-2/best.safetensors --out runs/dream-last

Topologies are the forty of the family branched, and those of giph, enas-ptb and cav, 4 to 70
operators. CPU, traffic, their skew and the cluster of 2 to 64 devices are drawn for every graph.
One problem in twenty is for validation; `outside` judges by other families. With ``--own``, a share
of the problems is of branched with its own costs, on five devices.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from studies import Rows, dressed

from streamplace.families.branched import STANDARD, Branched, branched
from streamplace.families.registry import FAMILIES
from streamplace.io.problems import write_problems
from streamplace.model import Cluster, Device, Problem
from streamplace.papers.families.cav import Cav
from streamplace.papers.families.enas_ptb import EnasPtb
from streamplace.papers.families.giph import Giph

MIPS, BANDWIDTH = 2500.0, 1e9
VALIDATION_EVERY = 20
FIRST_SEED = 1_000_000
"""Of the graphs of branched with their own costs: far from those of data sets."""
SHARES = {"giph": 0.6, "branched": 0.3, "enas-ptb": 0.06, "cav": 0.04}
"""Of the problems: in proportion to how many topologies there are, somewhat evened out."""
MAX_DEVICES = 64


def topologies(seed: int) -> dict[str, list[tuple[int, Rows]]]:
    """Number of operators and streams [2, M] of every topology of a family."""
    parameters = {
        "giph": (Giph("multiple_networks", 60), Giph("grid", 400)),
        "enas-ptb": (EnasPtb(),),
        "cav": (Cav(),),
        "branched": tuple(Branched(*topology, copies=1) for topology in STANDARD),
    }
    found: dict[str, list[tuple[int, Rows]]] = {}
    for family, each in parameters.items():
        distinct = {}
        for one in each:
            for item in FAMILIES[family].generate(one, seed):
                problem = item if isinstance(item, Problem) else Problem(item, Cluster.uniform(2))
                rows = np.array([problem.instance.source, problem.instance.target], np.int64)
                distinct[problem.n_operators, rows.tobytes()] = problem.n_operators, rows
        found[family] = list(distinct.values())
    return found


def cluster_of(devices: int, rng: np.random.Generator, *, spread: float) -> Cluster:
    """Devices and links whose speeds are within a factor of the usual ones; 1: all equal."""
    if spread == 1:
        return Cluster.uniform(devices, mips=MIPS, bandwidth=BANDWIDTH)
    limit = np.log(spread)
    mips = MIPS * np.exp(rng.uniform(-limit, limit, devices))
    links = BANDWIDTH * np.exp(rng.uniform(-limit, limit, (devices, devices)))
    return Cluster.of([Device(f"d{d}", mips=m) for d, m in enumerate(mips)], bandwidth=links)


def between(least: float, most: float, rng: np.random.Generator) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(least), np.log(most))))


def problems(count: int, seed: int, own: float) -> Iterator[Problem]:
    """Problems of all families; a share of them is of branched with its own costs."""
    every = topologies(seed)
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        split = "train" if number % VALIDATION_EVERY else "validation"
        if own and rng.random() < own:
            shape = Branched(*STANDARD[rng.integers(len(STANDARD))], copies=1)
            graph = next(branched(shape, FIRST_SEED + number)).at_rate(between(8e3, 25e3, rng))
            named = replace(graph, name=f"own-{number}", attributes={"split": split})
            yield Problem(named, Cluster.uniform(5))
            continue
        family = str(rng.choice(list(SHARES), p=list(SHARES.values())))
        n, streams = every[family][rng.integers(len(every[family]))]
        devices = round(between(2, min(MAX_DEVICES, 2 * n), rng))
        graph = dressed(
            streams,
            n,
            rng,
            name=f"{family}-{number}",
            mips=MIPS * devices * between(0.3, 3, rng),
            links=n * between(0.03, 3, rng),
            skew=float(rng.choice([0, 0.5, 1, 1.5])),
            attributes={"split": split},
        )
        yield Problem(graph, cluster_of(devices, rng, spread=float(rng.choice([1, 1, 2, 3, 4]))))


def main() -> None:
    """Write the problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=4800)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--own", type=float, default=0.0, help="share of branched with its costs")
    given = parser.parse_args()
    print(write_problems(problems(given.count, given.seed, given.own), given.output))


if __name__ == "__main__":
    main()
