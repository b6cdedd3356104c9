"""What one graph of a sweep costs the process that distributes the graphs.

Run ``python benchmarks/scaling.py -o scaling.json``. It hands out lines of the branched benchmark
to workers of a local Ray that do nothing, and writes down what they answer; ``--graphs`` of them.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from streamplace.cores import available_cores
from streamplace.evaluate.parallel import parallel_map
from streamplace.families.branched import Branched
from streamplace.families.dataset import write_dataset
from streamplace.io.datasets import DataSet
from streamplace.io.lines import Line

SMALL = Branched(branches=3, depth=4, devices=3, copies=400)
GRAPH_S = (0.01, 0.1, 1.0)
"""Seconds of work per graph for which the driver's limit is told."""


class Idle:
    """Answers like a placement, without placing: what is left is what a graph costs besides."""

    def __call__(self, line: Line) -> bytes:
        """Return as many bytes as a placement has."""
        return b"x" * 500


def driver_seconds(data: DataSet, graphs: int) -> float:
    """CPU seconds per graph of the process that distributes them."""
    import ray

    source = list(data.lines())
    ray.init("local", num_cpus=available_cores(), include_dashboard=False, log_to_driver=False)
    try:
        list(parallel_map(Idle(), source, on="ray"))
        endless = (source[i % len(source)] for i in range(graphs))
        begin = time.process_time()
        with tempfile.TemporaryFile() as out:
            for answer in parallel_map(Idle(), endless, on="ray"):
                out.write(answer)
        return (time.process_time() - begin) / graphs
    finally:
        ray.shutdown()


def main(output: Path, graphs: int) -> None:
    """Measure, print and write down."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.jsonl"
        write_dataset("branched", SMALL, 0, path)
        each = driver_seconds(DataSet(path), graphs)
    saturated = {str(work): round(work / each) for work in GRAPH_S}
    found = {"graphs": graphs, "driver_s_per_graph": each, "cores_at_saturation": saturated}
    text = json.dumps(found, indent=1)
    output.write_text(text + "\n", "utf-8")
    print(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="file")
    parser.add_argument("--graphs", type=int, default=100_000, help="that the driver hands out")
    given = parser.parse_args()
    main(given.output, given.graphs)
