"""What a sweep costs besides the work: tasks, driver, memory; and where more cores stop helping.

Run ``python benchmarks/scaling.py -o scaling.json``. Placements of the branched benchmark by
``anneal`` with a fixed number of evaluations on 1, 2, … cores of a local Ray; then what one graph
costs the driver, which hands out lines and writes down answers; the driver's memory over
``--graphs`` graphs (100000 for the page); and the table of ``--records`` records (1000000).
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamplace.cores import available_cores
from streamplace.evaluate.on_ray import map_on_ray
from streamplace.evaluate.placing import Placing
from streamplace.evaluate.records import Record
from streamplace.evaluate.results import ObjectiveResults
from streamplace.families.branched import Branched
from streamplace.families.dataset import write_dataset
from streamplace.io.datasets import DataSet
from streamplace.io.lines import Line
from streamplace.objectives.registry import DEFAULT, OBJECTIVES
from streamplace.placers.registry import Budget
from streamplace.placers.request import PlacementRequest

SMALL = Branched(branches=3, depth=4, devices=3)
GRAPH_S = (0.01, 0.1, 1.0)
"""Seconds of work per graph for which the driver's limit is told."""


def resident() -> float:
    """MiB of memory that this process has."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


class Idle:
    """Answers like a placement, without placing: what is left is what a graph costs besides."""

    def __call__(self, line: Line) -> bytes:
        """Return as many bytes as a placement has."""
        return b"x" * 500


def scaling(data: DataSet, evaluations: int) -> dict[int, float]:
    """Graphs per second by cores, each on a Ray of its own that was warmed up."""
    import ray

    placing = Placing(
        PlacementRequest(f"anneal:evaluations={evaluations}", budget=Budget(600.0)),
        reader=data.reader,
    )
    lines, found = list(data.lines()), {}
    for cores in range(1, available_cores() + 1):
        ray.init("local", num_cpus=cores, include_dashboard=False, log_to_driver=False)
        try:
            list(map_on_ray(placing, lines[: 4 * cores], "ray"))
            begin = time.perf_counter()
            list(map_on_ray(placing, lines, "ray"))
            found[cores] = len(lines) / (time.perf_counter() - begin)
        finally:
            ray.shutdown()
    return found


def driving(data: DataSet, graphs: int) -> dict[str, Any]:
    """Driver's CPU seconds per graph, and its memory after each tenth of the way."""
    import ray

    source = list(data.lines())
    ray.init("local", num_cpus=available_cores(), include_dashboard=False, log_to_driver=False)
    try:
        list(map_on_ray(Idle(), source, "ray"))
        endless: Iterator[Line] = (source[i % len(source)] for i in range(graphs))
        begin, memory = time.process_time(), []
        with tempfile.TemporaryFile() as out:
            for number, answer in enumerate(map_on_ray(Idle(), endless, "ray")):
                out.write(answer)
                if number % (graphs // 10) == 0:
                    memory.append(round(resident(), 1))
        spent = time.process_time() - begin
    finally:
        ray.shutdown()
    return {"graphs": graphs, "driver_s_per_graph": spent / graphs, "driver_mib": memory}


def tabulating(records: int) -> dict[str, float]:
    """Memory and seconds of a table of many records of two placers."""
    sample = Record("", "g", 1e4, "metis", "1 s", 0.5, None, 1.0, (0, 1, 2))
    before, begin = resident(), time.perf_counter()
    results = ObjectiveResults(OBJECTIVES[DEFAULT])
    for number in range(records // 2):
        value = (number * 7919 % 10007) / 10007
        results.add(
            [
                replace(sample, problem=str(number), value=value),
                replace(sample, problem=str(number), value=value, placer="exact", bound=value),
            ]
        )
    kept = resident() - before
    table = results.table
    assert table[1e4]["exact"].graphs == records // 2
    seconds = time.perf_counter() - begin
    return {"records": records, "kept_mib": kept, "peak_mib": peak(), "seconds": seconds}


def peak() -> float:
    """MiB that this process had at most."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main(output: Path, copies: int, evaluations: int, graphs: int, records: int) -> None:
    """Measure all, print it and write it down."""
    told: dict[str, Any] = {"table": tabulating(records)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.jsonl"
        write_dataset("branched", replace(SMALL, copies=copies), 0, path)
        data = DataSet(path)
        told["driver"] = driving(data, graphs)
        told["graphs_per_s"] = scaling(data, evaluations)
    each = told["driver"]["driver_s_per_graph"]
    told["cores_at_saturation"] = {str(work): round(work / each) for work in GRAPH_S}
    text = json.dumps(told, indent=1)
    output.write_text(text + "\n", "utf-8")
    print(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="file")
    parser.add_argument("--copies", type=int, default=400, help="graphs to place")
    parser.add_argument("--evaluations", type=int, default=30_000, help="of every placement")
    parser.add_argument("--graphs", type=int, default=100_000, help="that the driver hands out")
    parser.add_argument("--records", type=int, default=1_000_000, help="of the table")
    given = parser.parse_args()
    main(given.output, given.copies, given.evaluations, given.graphs, given.records)
