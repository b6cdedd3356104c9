"""Planted instances: what partitioners and a search of one second reach.

    python benchmarks/planted.py [--operators 10000] [--devices 16]

The best throughput of all is 0.8. A line per dial: METIS, the partitioners of `large` that are
installed, and streamplace's `auto` at one second, as shares of 0.8.
"""

import argparse
from functools import partial

from large import THROUGHPUT, by_placer, installed
from library_planted import PlantedShape, planted_throughput

from streamplace.library.documents import library_problem

OPTIMUM = 0.8
DIALS = [(0.05, 0), (0.2, 0), (0.5, 0), (0.05, 3), (0.2, 3), (0.5, 3)]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operators", type=int, default=10_000)
    parser.add_argument("--devices", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    placers = {
        "METIS": by_placer("metis", 1.0),
        **{name: partial(place, is_thorough=True) for name, place in installed().items()},
        "auto": by_placer("auto", 1.0),
    }
    print("| mixing | large |", " | ".join(placers), "|")
    print("|---:" * (2 + len(placers)) + "|")
    for mixing, large in DIALS:
        shape = PlantedShape(options.operators, options.devices, mixing, large)
        problem = library_problem(planted_throughput(shape, options.seed).document)
        shares = [
            THROUGHPUT.value(problem, place(problem).placement) / OPTIMUM
            for place in placers.values()
        ]
        cells = " | ".join(f"{share:.3f}" for share in shares)
        print(f"| {mixing:g} | {large} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
