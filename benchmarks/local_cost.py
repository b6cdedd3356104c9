"""The cost of streams between threads: what a job with chaining takes, predicted and measured.

    python benchmarks/local_cost.py -o local_cost.jsonl

Jobs run on one TaskManager of this machine at rates that leave CPU free. Each is profiled with
chaining off; its streams that Flink chains are then chained in the profile, and the CPU per tuple
of that graph is compared with the CPU per tuple of the job with chaining on. Besides, the CPU per
tuple is measured with and without sampling of stacks, in turn, while the job runs. Needs a JDK, and
takes about four minutes a job.
"""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from urllib.parse import quote

import click
from measured_rows import append_row

from streamplace.engines.flink.cpu.flight_recorder import sampled_stacks
from streamplace.engines.flink.cpu.task_cpu import between, snapshot
from streamplace.engines.flink.cpu.threads import processes_of
from streamplace.engines.flink.local.dist import find_flink
from streamplace.engines.flink.local.session import local_cluster
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.sampling import sample
from streamplace.engines.flink.pin.names import FUSED
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import read_plan
from streamplace.model.graph import StreamGraph
from streamplace.model.streams import CHAINED

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "datasets/applications/jobs",)
JOBS = {
    "nexmark-q3": ("NexmarkQ3", "200000"),
    "word-count": ("WordCount", "30000"),
    "riot-etl": ("RiotEtl", "10000"),
}
"""Main class, and tuples/s."""
MICRO_MIPS = 1.0
"""Speed at which an instruction takes a microsecond."""
SETTINGS: dict[str, str | int | float] = {
    "taskmanager.numberOfTaskSlots": 1,
    "metrics.fetcher.update-interval": 1000,
}
SECONDS, WINDOW = 15.0, 10.0
MOST_WINDOWS, ALIKE = 12, 0.05
"""A job has warmed up when its CPU per tuple in two windows in a row differs by less."""
Row = dict[str, str | float]


@click.command()
@click.argument("jobs", nargs=-1, type=click.Choice(list(JOBS)))
@click.option("--repeats", type=click.IntRange(1), default=2, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Every run, a line of JSON.")
def main(jobs: tuple[str, ...], repeats: int, output: Path | None) -> None:
    """Print how far the CPU per tuple of jobs with chaining is from its prediction."""
    flink = find_flink(None)
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(flink, ("here",), settings=SETTINGS) as cluster,
    ):
        jar = Path(folder) / "jobs.jar"
        build_jar(flink, sorted(file for f in SOURCES for file in f.glob("*.java")), jar)
        rest = cluster.rest
        uploaded = rest.upload(jar)
        for name in jobs or JOBS:
            for _ in range(repeats):
                rows.append({"job": name, **run(rest, uploaded, *JOBS[name])})
                if output is not None:
                    append_row(output, rows[-1])
                click.echo(line(rows[-1]), err=True)
    click.echo(table(rows))


def run(rest: Rest, jar: str, entry: str, rate: str) -> Row:
    """Measure a job without chaining and with it, µs of CPU per tuple of its sources."""
    job = started(rest, jar, (entry, rate), chaining=False)
    seen = profile(rest, job, SECONDS)
    sources = [task.id for task in seen.sources]
    sampled, plain = zip(
        *(
            [per_tuple(rest, job, sources, SECONDS, sampling=on) for on in (True, False)]
            for _ in range(2)
        ),
        strict=True,
    )
    rest.cancel(job)
    job = started(rest, jar, (entry, rate), chaining=True)
    chained = profile(rest, job, SECONDS)
    rest.cancel(job)
    graph = measured_graph(seen, MICRO_MIPS)
    return {
        "unchained": cpu_of(graph),
        "predicted": cpu_of(as_chained(graph, [task.name for task in chained.tasks])),
        "measured": cpu_of(measured_graph(chained, MICRO_MIPS)),
        "sampled": mean(sampled),
        "plain": mean(plain),
        "local cost": str(graph.attributes["local cost"]),
    }


def started(rest: Rest, jar: str, job: tuple[str, str], *, chaining: bool) -> str:
    """Id of a job that has warmed up."""
    entry, rate = job
    settings = {"pipeline.operator-chaining.enabled": str(chaining).lower()}
    document = {"entryClass": entry, "programArgsList": [rate], "flinkConfiguration": settings}
    number = str(rest.post(f"/jars/{quote(jar, safe='')}/run", document)["jobid"])
    rest.wait_running(number)
    time.sleep(WINDOW)
    _, tasks, edges = read_plan(rest, number)
    fed = {edge.target for edge in edges}
    sources = [task.id for task in tasks if task.id not in fed]
    before = cpu = math.inf
    for _ in range(MOST_WINDOWS):
        before, cpu = cpu, per_tuple(rest, number, sources, WINDOW, sampling=False)
        if abs(cpu - before) < ALIKE * cpu:
            break
    return number


def per_tuple(
    rest: Rest, job: str, sources: Sequence[str], seconds: float, *, sampling: bool
) -> float:
    """CPU of the whole TaskManager per tuple, with or without sampling."""
    processes = processes_of(rest)
    with sampled_stacks(processes if sampling else {}):
        first = snapshot(rest, job, processes)
        activity = sample(rest, job, sources, seconds)
        spent = between(first, snapshot(rest, job, processes), processes, ())
    cores = sum(load.cores for loads in spent.loads.values() for load in loads)
    return 1e6 * cores / sum(activity[source].records_out for source in sources)


def as_chained(graph: StreamGraph, tasks: Sequence[str]) -> StreamGraph:
    """Graph whose streams within tasks are chained."""
    chains = [set(task.split(FUSED)) for task in tasks]
    kinds = tuple(
        CHAINED if any({stream.source, stream.target} <= chain for chain in chains) else kind
        for stream, kind in zip(graph.streams, graph.streams.partitioning, strict=True)
    )
    return replace(graph, streams=replace(graph.streams, partitioning=kinds))


def cpu_of(graph: StreamGraph) -> float:
    """CPU of all operators per tuple of the sources, with what they use at any rate."""
    work = graph.charged_ipt * graph.input_rate + 1e6 * graph.operators.constant
    return float(work.sum() / graph.source_rate)


def line(row: Row) -> str:
    """One run, in words."""
    numbers = ("unchained", "predicted", "measured", "sampled", "plain")
    return f"{row['job']}: " + ", ".join(f"{name} {row[name]:.3f}" for name in numbers)


def table(rows: Sequence[Row]) -> str:
    """Means and errors of every job, as Markdown."""
    text = (
        "| job | chaining off, µs per tuple | chaining on | predicted | error without separation "
        "| error | sampling takes |\n|---|---:|---:|---:|---:|---:|---:|\n"
    )
    for job in dict.fromkeys(str(row["job"]) for row in rows):
        own = [row for row in rows if row["job"] == job]
        unchained, predicted, measured, sampled, plain = (
            mean(float(row[name]) for row in own)
            for name in ("unchained", "predicted", "measured", "sampled", "plain")
        )
        text += (
            f"| {job} | {unchained:.2f} | {measured:.2f} | {predicted:.2f} | "
            f"{unchained / measured - 1:+.0%} | {predicted / measured - 1:+.0%} | "
            f"{sampled / plain - 1:+.1%} |\n"
        )
    return text


if __name__ == "__main__":
    main()
