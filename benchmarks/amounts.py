"""Amounts of CPU per slot sharing group, against numbers of slots, on equal TaskManagers.

    python benchmarks/amounts.py

Protocol: operators of one subtask each and of unequal work, each in a slot sharing group of its
own, run on `DEVICES` TaskManagers of equal quotas. With *amounts* the groups ask for CPU in
proportion to that work, and Flink spreads it as it spreads slots with SLOTS. *Parallel* operators
have as many subtasks as there are TaskManagers, in one group, with SLOTS as well. Each job runs
`REPEATS` times in each way, in random order on a cluster of each mode. Needs what
``against_flink.py`` does.
"""

import tempfile
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from flink_jars import build_jar
from flink_jobs import SOURCES, FlinkJob
from limiting import SETTINGS, limit, measured_devices, release, wait_compiled
from studies import markdown

from streamplace.engines.flink.decide.slot_assignment import MODE_SETTING
from streamplace.engines.flink.local.dist import find_flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.measure.steadiness import steady_profile

DEVICES, CORES, BANDWIDTH_BPS, REPEATS = tuple("abcd"), 0.18, 200e6, 3
RATE, PATIENCE, START_SECONDS = 200_000.0, 30.0, 100.0
SLOTS = 8
"""Of all TaskManagers: one for each operator."""
ROUNDS = (80_000, 10_000, 10_000, 40_000, 20_000, 60_000, 20_000)
"""Work of the operators behind the source."""
ASKED = len(DEVICES) / 2
"""Cores of all groups; a TaskManager says that it has one."""
WAYS = {"NONE": ("NONE",), "SLOTS": ("SLOTS", "amounts", "parallel"), "TASKS": ("TASKS",)}


def job(shape: str, way: str) -> FlinkJob:
    """A pipeline, or operators that all read the source."""
    rows: list[dict[str, Any]] = [{"name": "source", "payload": 64}]
    rows += [{"name": f"w{i}", "rounds": n, "payload": 64} for i, n in enumerate(ROUNDS)]
    if way != "parallel":
        for row in rows:
            share = max(row.get("rounds", 0), 1_000) / sum(ROUNDS)
            row["cores"] = round(ASKED * share, 4) if way == "amounts" else 0
    names = [row["name"] for row in rows]
    before = names if shape == "pipeline" else ["source"] * len(ROUNDS)
    streams = [{"from": a, "to": b} for a, b in zip(before, names[1:], strict=False)]
    return FlinkJob("GraphJob", RATE, tuple(rows), tuple(streams))


def main() -> None:
    """Measure, and print the table."""
    rng, found = np.random.default_rng(0), dict[tuple[str, str], list[float]]()
    with tempfile.TemporaryDirectory() as name:
        flink, jar = find_flink(None), Path(name) / "jobs.jar"
        build_jar(flink, sorted(file for f in SOURCES for file in f.glob("*.java")), jar)
        for mode, ways in WAYS.items():
            settings = {
                **SETTINGS,
                MODE_SETTING: mode,
                "taskmanager.numberOfTaskSlots": SLOTS // len(DEVICES),
                "taskmanager.cpu.cores": 1.0,
            }
            with measured_devices(
                flink, DEVICES, cores=CORES, bandwidth_bps=BANDWIDTH_BPS, settings=settings
            ) as cluster:
                runs = [*product(("pipeline", "fan"), ways)] * REPEATS
                for shape, way in rng.permutation(runs).tolist():
                    rate = carried(cluster, jar, job(shape, way), way)
                    found.setdefault((shape, way), []).append(rate)
                    print(f"{shape}, {way}: {rate:,.1f} tuples/s", flush=True)
    rows = [
        {"job": shape, "way": way, "tuples/s": ", ".join(f"{rate:,.0f}" for rate in rates)}
        for (shape, way), rates in sorted(found.items())
    ]
    print(markdown(rows))


def carried(cluster: LocalCluster, jar: Path, made: FlinkJob, way: str) -> float:
    """Rate of a job under the quotas."""
    release(cluster)
    rest, is_parallel = cluster.rest, way == "parallel"
    subtasks = {str(row["name"]): len(DEVICES) for row in made.operators} if is_parallel else {}
    arguments = made.arguments(parallelism=subtasks)
    request = {"entryClass": made.entry, "programArgsList": arguments}
    running = str(rest.post(f"/jars/{quote(rest.upload(jar), safe='')}/run", request)["jobid"])
    try:
        rest.wait_running(running, START_SECONDS)
        wait_compiled(cluster)
        limit(cluster, dict.fromkeys(DEVICES, CORES))
        return steady_profile(rest, running, 3.0, PATIENCE).flow.rate
    finally:
        release(cluster)
        rest.cancel(running)


if __name__ == "__main__":
    main()
