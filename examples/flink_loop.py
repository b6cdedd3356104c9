"""A Flink job from measuring to placing: what does a placement gain, and was it predicted.

`flink/LogJob.java` watches the log of a web shop and knows nothing of streamplace. It is started as
Flink places it, profiled, placed, started again where it was placed, and checked; so is a placement
that deals the operators out in turn, since Flink left to itself fills one machine first. The five
TaskManagers share this machine's cores, so no gain is to be expected here.
"""

import signal
import tempfile
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamplace import Cluster, Device, StreamGraph, expand, place, simulate
from streamplace.engines.flink.local.dist import Flink, find_flink
from streamplace.engines.flink.local.session import local_cluster
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.steady import settled_rate
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.pin.pinning import counts, vectors_of
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import read_plan, read_vertices

DEVICES = tuple(f"dev-{i}" for i in range(5))
MIPS = 1000.0
"""Speed of a whole core, a unit of account: the profile and the cluster must only agree."""
FAST = 10e9
RATE = 500.0
HEADROOM = 2.0
"""Placed for so many times the rate: Java itself needs a part of every device."""
JOB = "LogJob"
FLINK = "Flink's choice"
SETTINGS = {
    "taskmanager.numberOfTaskSlots": 4,
    "taskmanager.memory.segment-size": "4kb",  # short queues: what is measured at both ends agrees
    "pipeline.operator-chaining.enabled": False,  # every operator is measured by itself
}


def throughput(rest: Rest, job: str, seconds: float) -> float:
    """Lines/s that are searched for attacks."""
    _, tasks, _ = read_plan(rest, job)
    detect = next(task.id for task in tasks if task.name == "detect")
    return settled_rate(rest, job, detect, seconds)


def where(rest: Rest, job: str) -> dict[str, list[str]]:
    """Operator → the devices that Flink chose for its subtasks."""
    return {
        name: [device for device, n in vertex.devices.items() for _ in range(n)]
        for vertex in read_vertices(rest, job, rest.job(job))
        for name in vertex.operators
    }


def foretold(graph: StreamGraph, cluster: Cluster, vectors: Mapping[str, Sequence[str]]) -> float:
    """Lines/s that a placement sustains in the steady state."""
    expansion = expand(graph)
    assignment = {
        subtask: device
        for name, devices in vectors.items()
        for subtask, device in zip(expansion.subtasks(name), devices, strict=True)
    }
    return graph.source_rate * simulate(expansion.graph, assignment, cluster).relative_throughput


def shown(vectors: Mapping[str, Sequence[str]], operator: str) -> str:
    """Devices of an operator in words."""
    found = counts(sorted(vectors[operator]))
    return ", ".join(f"{device} × {n}" if n > 1 else device for device, n in found.items())


def loop(flink: Flink, rest: Rest, jar: Path, cluster: Cluster, seconds: float) -> None:
    """Measure, place, apply, verify; print what came of it."""
    job = rest.run_jar(rest.upload(jar), JOB, [str(RATE)])
    rest.wait_running(job)
    rates, chosen = {FLINK: throughput(rest, job, seconds)}, {FLINK: where(rest, job)}
    seen = profile(rest, job, seconds)
    rest.cancel(job)
    for doubt in seen.doubts:
        print(f"note: {doubt}")

    graph = measured_graph(seen, MIPS).at_rate(
        RATE
    )  # the source is held back: what it offers is known
    subtasks = expand(graph.at_rate(HEADROOM * RATE)).graph
    for title, placer in (("in turn", "round-robin"), ("streamplace", "auto")):
        placement = place(subtasks, cluster, placer=placer).placement
        chosen[title] = vectors_of(placement.as_dict(), graph.operators.parallel)
        program = Program(jar, JOB, [str(RATE)])
        job = apply(rest, flink, program, chosen[title])
        rates[title], found = throughput(rest, job, seconds), verify(rest, job, chosen[title])
        rest.cancel(job)
        wrong = [*found.problems, *(check.operator for check in found.checks if not check.fine)]
        print(f"verified: {wrong or 'every subtask runs where it was placed'}")

    print(f"\n| operator | {' | '.join(chosen)} |\n|---|{'---|' * len(chosen)}")
    for name in graph.operators.name:
        print(f"| {name} | {' | '.join(shown(vectors, name) for vectors in chosen.values())} |")
    print(f"\n| {RATE:.0f} lines/s offered | measured | steady state |\n|---|---:|---:|")
    for title, vectors in chosen.items():
        print(f"| {title} | {rates[title]:.0f} | {foretold(graph, cluster, vectors):.0f} |")


def run(flink: Flink, seconds: float) -> None:
    """Run the loop on a cluster of its own; nothing is left of it afterwards."""
    source = Path(__file__).parent / "flink" / f"{JOB}.java"
    cluster = Cluster.of([Device(name, MIPS) for name in DEVICES], bandwidth=FAST)
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(flink, DEVICES, settings=SETTINGS) as running,
    ):
        jar = Path(folder) / "log-job.jar"
        build_jar(flink, [source], jar)
        loop(flink, Rest(running.url), jar, cluster, seconds)


if __name__ == "__main__":
    parser = ArgumentParser(description="Measure, place, apply and verify a Flink job.")
    parser.add_argument("--seconds", type=float, default=10, help="seconds measured at a time")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run(find_flink(), parser.parse_args().seconds)
