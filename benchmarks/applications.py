"""Costs of the applications in datasets/applications, measured on a real Flink.

Run ``python benchmarks/applications.py [NAME ...]``. One after the other runs alone on a local
cluster, as `datasets/applications/jobs` has them; each is profiled as by ``streamplace flink
profile``, and what was measured goes into the application's file. Its topology, the kinds of its
operators and its windows stay, and selectivities that the measurement confirms.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flink_jars import build_jar

from streamplace.flink.local.session import Flink, find_flink, local_cluster
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import profile
from streamplace.flink.rest.client import Rest
from streamplace.io.graphs import graph_from_dict, graph_to_dict, write_graph

FOLDER = Path(__file__).parents[1] / "datasets" / "applications"
JOBS = FOLDER / "jobs"
SETTINGS = {"pipeline.operator-chaining.enabled": False}  # every operator is measured by itself
MIPS = 2500.0
GLANCE_RATE, CORES = 10_000.0, 0.5
"""Tuples/s of a first glance; then so many that a job uses this part of a core."""
WARM_UP_SECONDS = 20.0
RARE = 20.0
"""Tuples/s below which most of what an operator costs is being woken up."""
ALIKE = 0.05
"""Selectivities that the file knows stay where what was measured differs by less."""
FULL, MOST = 0.9, 3.0
"""At the rate in the file the heaviest operator fills this part of a device, all this many."""


def profiled_graph(
    rest: Rest, jar: str, entry: str, rate: float, seconds: float
) -> tuple[dict[str, Any], list[str]]:
    """Graph of a job that runs alone, after a while, and what could not be measured."""
    job = rest.run_jar(jar, entry, [f"{rate:.0f}"])
    try:
        rest.wait_running(job)
        time.sleep(WARM_UP_SECONDS)
        profiled = profile(rest, job, seconds)
        graph = graph_to_dict(measured_graph(profiled, MIPS))
        return graph, [doubt for doubt in profiled.doubts if not doubt.startswith("rate of ")]
    finally:
        rest.cancel(job)


def load(document: dict[str, Any]) -> list[float]:
    """Cores of 2500 MIPS that the tuples of every operator take."""
    graph = graph_from_dict(document)
    return [float(x) for x in graph.operators.ipt * graph.input_rate / (MIPS * 1e6)]


def always(document: dict[str, Any]) -> list[float]:
    """Cores of 2500 MIPS that every operator uses at any rate."""
    return [row.get("constant", 0) / MIPS for row in document["operators"]]


def highest_multiple(document: dict[str, Any], alone: float, together: float) -> float:
    """Multiple of the rates at which an operator takes as many cores, or all do together."""
    cores, constant = load(document), always(document)
    times = [(alone - k) / c for c, k in zip(cores, constant, strict=True) if c]
    times.append((together - sum(constant)) / sum(cores))
    if min(times) <= 0:
        raise SystemExit(f"{document['name']}: constant loads leave nothing for tuples")
    return min(times)


def ends(stream: dict[str, Any]) -> tuple[str, str]:
    """Operators that a stream joins."""
    return stream["from"], stream["to"]


def rounded(number: float, digits: int) -> float:
    """Return a number with so many digits that count.

    >>> rounded(1234.5, 2)
    1200.0
    """
    return float(f"{number:.{digits - 1}e}")


def merged(
    application: dict[str, Any], measured: dict[str, Any], doubts: list[str]
) -> dict[str, Any]:
    """Put what was measured into what is known of an application."""
    costs = {row["name"]: row for row in measured["operators"]}
    flows, streams = (sorted(of["streams"], key=ends) for of in (measured, application))
    if set(costs) != {row["name"] for row in application["operators"]} or (
        [ends(row) for row in flows] != [ends(row) for row in streams]
    ):
        raise SystemExit(
            f"{application['name']}: the job's operators and streams are not the file's"
        )
    windows = {row["name"] for row in application["operators"] if "window" in row}
    for row in application["operators"]:
        row["ipt"] = rounded(costs[row["name"]]["ipt"], 3)
        row["payload"] = rounded(costs[row["name"]].get("payload", 0), 3)
        row.pop("constant", None)
        if "constant" in costs[row["name"]]:
            row["constant"] = rounded(costs[row["name"]]["constant"], 3)
    for row, flow in zip(streams, flows, strict=True):
        carried, stated = flow.get("selectivity", 1.0), row.get("selectivity", 1.0)
        if row["from"] not in windows and abs(carried - stated) > ALIKE * stated:
            row["selectivity"] = rounded(carried, 2)
        row.pop("payload", None)
        if "payload" in flow:
            row["payload"] = rounded(flow["payload"], 3)
    source = next(row for row in application["operators"] if "rate" in row)
    source["rate"] = 1000.0
    source["rate"] = rounded(1000 * highest_multiple(application, FULL, MOST), 2)
    application["attributes"].pop("unmeasured", None)
    if doubts := [*doubts, *rarities(measured)]:
        application["attributes"]["unmeasured"] = "; ".join(doubts)
    return application


def rarities(measured: dict[str, Any]) -> list[str]:
    """Doubts about operators that took in too few tuples for their cost per tuple to mean much."""
    graph = graph_from_dict(measured)
    return [
        f"ipt of {name}: of few tuples"
        for name, rate in zip(graph.operators.name, graph.input_rate, strict=True)
        if rate < RARE
    ]


def measure(flink: Flink, names: Sequence[str], seconds: float) -> None:
    """Run, profile and write applications."""
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(flink, ["dev-0"], settings=SETTINGS) as cluster,
    ):
        rest, built = cluster.rest, Path(folder) / "applications.jar"
        build_jar(flink, sorted(JOBS.glob("*.java")), built)
        jar = rest.upload(built)
        for name in names:
            path = FOLDER / f"{name}.json"
            application = json.loads(path.read_text("utf-8"))
            entry = Path(application["attributes"]["job"]).stem
            glance, _ = profiled_graph(rest, jar, entry, GLANCE_RATE, 5)
            rate = GLANCE_RATE * highest_multiple(glance, CORES, CORES)
            measured, doubts = profiled_graph(rest, jar, entry, rate, seconds)
            application = merged(application, measured, doubts)
            write_graph(graph_from_dict(application), path)
            unmeasured = application["attributes"].get("unmeasured", "everything was measured")
            cores = sum(load(measured)) + sum(always(measured))
            print(f"{name}: {cores:.2f} cores at {rate:.0f} tuples/s; {unmeasured}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the applications on a real Flink.")
    parser.add_argument("names", nargs="*", help="such as word-count; all, where none is named")
    parser.add_argument("--seconds", type=float, default=20, help="measured of each")
    options = parser.parse_args()
    every = sorted(path.stem for path in FOLDER.glob("*.json"))
    measure(find_flink(), options.names or every, options.seconds)
