"""Appendix A of the DREAM paper on a real Flink: which placement is better, and by how much.

A pipeline of a source, three work operators and a sink runs on five TaskManagers, each with a
quarter of a core and a network card of 40 Mbps. HIGH work fills a device, LOW hardly counts; BIG
tuples ask for 2.6 network cards, SMALL ones for a thousandth. P1 puts all operators on one device,
P2 each on one of its own. Needs Linux, root and a JDK, and takes about three minutes.
"""

import itertools
import json
import math
import signal
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limited import limited_cluster, why_unlimited
from streamsim import throughput

from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink, find_flink
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.sampling import sample
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest
from streamplace.evaluate.queues import run_queues

DEVICES = tuple(f"dev-{i}" for i in range(5))
CORES, BANDWIDTH = 0.25, 40e6
START_SECONDS = 300.0
"""A device that is throttled takes long to load a job."""
RATE = 100.0
BIG, SMALL = 128 * 1024, 64
HIGH, LOW = 1.0, 0.0005
"""Shares of a device that an operator's work fills at full rate."""
OPERATORS = ("src", "w1", "w2", "w3", "sink")
PLACEMENTS = {"P1": DEVICES[:1] * 5, "P2": DEVICES}
TRIAL = {"src": DEVICES[0], "w1": DEVICES[1], "sink": DEVICES[2]}
TRIAL_ROUNDS, TRIAL_RATE = 1_000_000, 50.0
HEAD = """\
| CPU | payload | placement | measured | steady state | engine |
|---|---|---|---:|---:|---:|
"""
MOST_WINDOWS, ALIKE = 12, 0.1


def settled_rate(rest: Rest, job: str, vertex: str, seconds: float) -> float:
    """Tuples/s that a vertex reads, once two windows of ``seconds`` in a row agree within 10 %.

    A job begins slowly: its classes are loaded and compiled, and its queues fill. After twelve
    windows the last one counts in any case.
    """
    before = rate = 0.0
    for _ in range(MOST_WINDOWS):
        before, rate = rate, sample(rest, job, [vertex], seconds)[vertex].records_in
        if abs(rate - before) < ALIKE * before:
            break
    return rate


@dataclass(frozen=True, slots=True)
class Cell:
    """One placement of one pipeline: tuples/s at the sink, measured and predicted twice."""

    cpu: str
    payload: str
    placement: str
    measured: float
    steady: float
    engine: float

    def row(self) -> str:
        """Return the cell as a row of the table."""
        numbers = (self.measured, self.steady, self.engine)
        words = (self.cpu, self.payload, self.placement, *(f"{x:.0f}" for x in numbers))
        return f"| {' | '.join(words)} |\n"


@dataclass(frozen=True, slots=True)
class Bench:
    """A cluster to measure on, and the seconds that are measured at a time."""

    rest: Rest
    flink: Flink
    jar: Path
    seconds: float

    def start(self, graph: StreamGraph, devices: dict[str, str]) -> tuple[str, float]:
        """Run a graph whose instructions are rounds of a random number generator.

        Returns the job and the tuples/s that arrive at its sink.
        """
        vectors = {name: [device] for name, device in devices.items()}
        arguments = [json.dumps(as_job(graph))]
        program = Program(self.jar, "GraphJob", arguments)
        job = apply(self.rest, self.flink, program, Layout(vectors), seconds=START_SECONDS)
        sink = self.rest.job(job)["vertices"][-1]["id"]
        return job, settled_rate(self.rest, job, sink, self.seconds)

    def sink_rate(self, graph: StreamGraph, devices: dict[str, str]) -> float:
        """Tuples/s that arrive at the sink."""
        job, rate = self.start(graph, devices)
        self.rest.cancel(job)
        return rate

    def rounds_per_second(self) -> float:
        """Rounds that a whole core makes in a second, measured by the CPU time of a trial."""
        trial = pipeline(tuple(TRIAL), TRIAL_ROUNDS, SMALL, TRIAL_RATE)
        job, _ = self.start(trial, TRIAL)
        seen = profile(self.rest, job, self.seconds)
        self.rest.cancel(job)
        work = next(task.id for task in seen.tasks if task.name == "w1")
        return TRIAL_ROUNDS * seen.activity[work].records_in / seen.cpu[work].cores


def pipeline(names: tuple[str, ...], rounds: float, payload: float, rate: float) -> StreamGraph:
    """A source, work operators and a sink in a row."""
    source, *work, sink = names
    operators = [
        Operator(source, 0, payload, rate),
        *(Operator(name, rounds, payload) for name in work),
        Operator(sink),
    ]
    return StreamGraph.of("pipeline", operators, [Stream(*p) for p in itertools.pairwise(names)])


def as_job(graph: StreamGraph) -> dict[str, Any]:
    """Return a graph in the words of GraphJob.java."""
    columns = graph.operators
    rows = zip(columns.name, columns.ipt, columns.payload, columns.rate, strict=True)
    names = itertools.pairwise(columns.name)
    return {
        "name": graph.name,
        "operators": [
            {"name": name, "rounds": int(ipt), "payload": int(payload), "rate": float(rate)}
            for name, ipt, payload, rate in rows
        ],
        "streams": [{"from": source, "to": target} for source, target in names],
    }


def cells(bench: Bench) -> Iterator[Cell]:
    """Measure and predict every placement of every pipeline."""
    speed = CORES * bench.rounds_per_second()
    devices = [Device(d, speed / 1e6, egress=BANDWIDTH, ingress=BANDWIDTH) for d in DEVICES]
    cluster = Cluster.of(devices, bandwidth=BANDWIDTH)
    for (cpu, share), (size, payload) in itertools.product(
        (("HIGH", HIGH), ("LOW", LOW)), (("BIG", BIG), ("SMALL", SMALL))
    ):
        graph = pipeline(OPERATORS, share * speed / RATE, payload, RATE)
        problem = Problem(graph, cluster)
        for name, chosen in PLACEMENTS.items():
            placement = problem.placement([DEVICES.index(device) for device in chosen])
            yield Cell(
                cpu,
                size,
                name,
                bench.sink_rate(graph, placement.as_dict()),
                RATE * float(throughput(problem.instance, [placement.index])[0]),
                RATE * (run_queues(problem, placement).relative_throughput or math.nan),
            )


def measured_cells(flink: Flink, seconds: float) -> Iterator[Cell]:
    """Start the cluster and go through the cells; nothing is left of it afterwards."""
    source = Path(__file__).parents[1] / "examples" / "flink" / "GraphJob.java"
    with (
        tempfile.TemporaryDirectory() as folder,
        limited_cluster(flink, DEVICES, cores=CORES, bandwidth_bps=BANDWIDTH) as cluster,
    ):
        jar = Path(folder) / "graph-job.jar"
        build_jar(flink, [source], jar)
        yield from cells(Bench(Rest(cluster.url), flink, jar, seconds))


def main() -> None:
    """Print the table row by row."""
    parser = ArgumentParser(description="Appendix A of the DREAM paper on a real Flink.")
    parser.add_argument(
        "--seconds", type=float, default=10, help="seconds that are measured at a time"
    )
    options = parser.parse_args()
    if reason := why_unlimited():
        sys.exit(reason)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(HEAD, end="", flush=True)
    with closing(measured_cells(find_flink(), options.seconds)) as found:
        for cell in found:
            print(cell.row(), end="", flush=True)


if __name__ == "__main__":
    main()
