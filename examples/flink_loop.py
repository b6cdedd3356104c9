"""A Flink job from measuring to placing: what does a placement gain, and was it predicted.

`flink/LogJob.java` watches the log of a web shop and knows nothing of streamplace. It is started as
Flink places it, measured, placed, started again where it was placed, and checked; so is a placement
that deals the subtasks out in turn, since Flink left to itself fills one machine first. The five
TaskManagers share this machine's cores, so no gain is to be expected here.
"""

import signal
import subprocess
import tempfile
from argparse import ArgumentParser
from pathlib import Path

from streamplace import expand, place
from streamplace.flink import FlinkEngine, Program, Rest
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import Flink, find_flink, local_cluster
from streamplace.flink.measure.cluster import capacity
from streamplace.flink.rest.plan import layout_of

DEVICES = tuple(f"dev-{i}" for i in range(5))
RATE = 500.0
HEADROOM = 2.0
"""Placed for so many times the rate that was measured."""
JOB = "LogJob"
SETTINGS = {
    "taskmanager.numberOfTaskSlots": 4,
    "taskmanager.memory.segment-size": "4kb",  # short queues: what is measured at both ends agrees
    "pipeline.operator-chaining.enabled": False,  # every operator is measured by itself
}


def shown(layout: Layout, operator: str) -> str:
    """Devices of an operator in words."""
    found = layout.counts(operator).items()
    return ", ".join(f"{device} × {n}" if n > 1 else device for device, n in sorted(found))


def loop(engine: FlinkEngine, jar: Path, seconds: float) -> None:
    """Measure, place, apply, verify; print what came of it."""
    rest, program = engine.rest, Program(jar, JOB, [str(RATE)])
    job = rest.run_jar(rest.upload(jar), JOB, program.arguments)
    rest.wait_running(job)
    measured = engine.measure(job, seconds)
    layouts = {"Flink's choice": layout_of(rest, job, rest.job(job))}
    rates = {"Flink's choice": measured.graph.source_rate}
    rest.cancel(job)
    for note in measured.notes:
        print(f"note: {note}")

    graph, cluster = measured.graph, measured.cluster
    subtasks = expand(graph.at_rate(HEADROOM * graph.source_rate)).graph
    for title, placer in (("in turn", "round-robin"), ("streamplace", "auto")):
        layout = Layout.of(place(subtasks, cluster, placer=placer).placement)
        job = engine.apply(program, layout)
        layouts[title], rates[title] = layout, engine.measure(job, seconds).graph.source_rate
        found = engine.verify(job, layout)
        rest.cancel(job)
        wrong = [*found.problems, *(check.operator for check in found.checks if not check.fine)]
        print(f"verified: {wrong or 'every subtask runs where it was placed'}")

    print(f"\n| operator | {' | '.join(layouts)} |\n|---|{'---|' * len(layouts)}")
    for name in graph.operators.name:
        print(f"| {name} | {' | '.join(shown(layout, name) for layout in layouts.values())} |")
    print(f"\n| {RATE:.0f} lines/s offered | measured | predicted at most |\n|---|---:|---:|")
    for title, layout in layouts.items():
        predicted = graph.source_rate * capacity(graph, cluster, layout)
        print(f"| {title} | {rates[title]:.0f} | {predicted:.0f} |")


def run(flink: Flink, seconds: float) -> None:
    """Run the loop on a cluster of its own; nothing is left of it afterwards."""
    source = Path(__file__).parent / "flink" / f"{JOB}.java"
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(flink, DEVICES, settings=SETTINGS) as running,
    ):
        jar, classes = Path(folder) / "log-job.jar", Path(folder) / "classes"
        libraries = ":".join(map(str, flink.jars))
        subprocess.run(["javac", "-cp", libraries, "-d", classes, source], check=True)
        subprocess.run(["jar", "-c", "-f", jar, "-C", classes, "."], check=True)
        loop(FlinkEngine(Rest(running.url)), jar, seconds)


if __name__ == "__main__":
    parser = ArgumentParser(description="Measure, place, apply and verify a Flink job.")
    parser.add_argument("--seconds", type=float, default=10, help="seconds measured at a time")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run(find_flink(), parser.parse_args().seconds)
