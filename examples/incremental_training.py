"""Go on training with graphs of your own: from the weights that come with streamplace.

The shipped models have seen other graphs. Here one learns from fifty layered DAGs with fan-in and
fan-out, and is judged on fifty others that it never sees.
"""

import tempfile
from pathlib import Path

import numpy as np

from streamplace import Cluster, Problem, StreamGraph, train
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer

CONFIG = """
[training]
learning_rate = 1e-3
final_learning_rate = 5e-5
batch = 10
"""


def graphs() -> list[StreamGraph]:
    """A hundred layered DAGs of 12 to 24 operators."""
    return [
        next(iter(random_dag(RandomDag(operators=12 + seed % 13, devices=3.5, network=9.0), seed)))
        for seed in range(100)
    ]


def mean_value(placer: str, judged: list[StreamGraph]) -> float:
    """Mean relative throughput on five devices."""
    cluster, objective = Cluster.uniform(5), OBJECTIVES["throughput"]
    chosen = named_placer(placer)
    return float(
        np.mean([chosen.place(Problem(graph, cluster), objective).value for graph in judged])
    )


def main(folder: Path) -> None:
    """Train, and compare before and after."""
    config = folder / "incremental.toml"
    config.write_text(CONFIG)
    learned, judged = graphs()[:50], graphs()[50:]
    result = train("dream", learned, folder / "run", config=config, epochs=40, start="shipped")
    for title, placer in (
        ("METIS", "metis"),
        ("METIS, best number of devices", "metis-oracle"),
        ("dream as shipped, greedy", "dream"),
        ("dream after training, greedy", f"dream:weights={result.weights}"),
        ("pilot as shipped, greedy", "pilot:samples=0:refine=none"),
        ("search, 50 ms", "anneal:budget=50ms"),
    ):
        print(f"{title:30} {mean_value(placer, judged):.3f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
