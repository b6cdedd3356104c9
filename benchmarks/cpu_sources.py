"""CPU of operators by all sources at once, against that of the threads.

    PYTHONPATH=tests/support STREAMPLACE_KAFKA=… python benchmarks/cpu_sources.py

Protocol: two TaskManagers of this machine with the reporter, Java's first compiler alone, metrics
fetched every 10 s as by default. Each job runs for `WARM_UP` seconds, and is then measured for
`SECONDS`, by its threads, from REST alone (by the reporter, by dumps, and by busy time), and from
the history of a Prometheus. Needs JDK 17, Prometheus and, for the job on Kafka, its jars. On a busy
machine, repeat it: threads that wait for a core are on one for a dump.
"""

import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from flink_jobs import JOBS, ROOT, jobs_jar, submit
from kafka import broker, kafka_flink, kafka_jars, kafka_jobs
from prometheus_server import prometheus
from studies import table

from streamplace.flink.cpu.reporter import Reporters, jar_path
from streamplace.flink.local.session import find_flink, free_port, local_cluster
from streamplace.flink.measure import windows
from streamplace.flink.measure.cluster import capacity, measured_cluster
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import JobProfile, profile_of
from streamplace.flink.measure.windows import JobWindows
from streamplace.flink.prometheus.client import Prometheus, PrometheusAddress, TimeRange
from streamplace.flink.prometheus.reading import read_history
from streamplace.flink.rest.client import Rest

WARM_UP, SECONDS, PARALLELISM = 45.0, 40.0, 2
MIPS, LAYOUTS = 2500.0, 30
THREADS, BESIDE = "threads", "jobs beside"
SOURCES = ("reporter", "dumps", "busy time", "history")
DEVICES = ("one", "two")
SETTINGS: dict[str, str | int | float] = {
    "taskmanager.numberOfTaskSlots": 4,
    "metrics.fetcher.update-interval": 10_000,
    "taskmanager.load-balance.mode": "SLOTS",
    "env.java.opts.taskmanager": "-XX:TieredStopAtLevel=1",
    "metrics.reporters": "streamplace,prom",
    "metrics.reporter.prom.factory.class": (
        "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
    ),
    "metrics.reporter.streamplace.factory.class": "CpuReporter",
}


class Started(NamedTuple):
    """A job of the table: what is submitted, and what feeds it."""

    entry: str
    arguments: list[str]
    settings: Mapping[str, str]


def main() -> None:
    """Measure, and print the tables."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "plugins" / "streamplace").mkdir(parents=True)
        shutil.copy(jar_path(), folder / "plugins" / "streamplace")
        stack.enter_context(patch.dict(os.environ, FLINK_PLUGINS_DIR=str(folder / "plugins")))
        flink = find_flink(None)
        for library in (flink.home / "plugins").glob("metrics-prometheus"):
            shutil.copytree(library, folder / "plugins" / library.name)
        flink = kafka_flink(flink, folder / "flink") if kafka_jars() else flink
        tests = (ROOT / "tests/flink/java").glob("*Job.java")
        jars = {"jobs": jobs_jar(flink, folder / "jobs.jar", *tests)}
        if kafka_jars():
            jars["kafka"] = kafka_jobs(flink, folder / "kafka.jar")
        first = free_port()
        ports = {"metrics.reporter.prom.port": f"{first}-{first + 9}"}
        cluster = stack.enter_context(local_cluster(flink, DEVICES, settings=SETTINGS | ports))
        url = stack.enter_context(prometheus(folder, scraped=range(first, first + 10)))
        server = Prometheus(PrometheusAddress.of(f"prometheus:{url}"))
        uploaded = {name: cluster.rest.upload(jar) for name, jar in jars.items()}
        found = {}
        for name, start in table_of_jobs(folder, jars).items():
            with start() as jobs:
                found[name] = run(cluster.rest, server, uploaded, jobs)
            for source, of in found[name].items():
                cores = " ".join(f"{own:.3f}" for own in of.cores.values())
                print(f"{name}, {source}: {cores}", flush=True)
    print(as_tables(found))


def table_of_jobs(folder: Path, jars: Mapping[str, Path]) -> dict[str, Any]:
    """Jobs by name; the last one of each is profiled."""
    rocks = {"state.backend.type": "rocksdb"}

    @contextmanager
    def on_kafka() -> Iterator[tuple[tuple[str, Started], ...]]:
        with broker(folder / "broker", jars["kafka"]) as made:
            made.create("orders", "totals")
            with made.fed("orders", rate=6_000.0, end=False):
                yield (("kafka", Started("SqlJob", [made.address], {})),)

    maps = Started("MapsJob", ["400", "1000", "300000", "100000"], {})
    jobs: dict[str, Any] = {
        "state in RocksDB": lambda: nullcontext([("jobs", Started("Readings", ["8000"], rocks))]),
        "look-ups beside work": lambda: nullcontext(
            [("jobs", Started("BlockingJob", ["300", "5", "2"], {})), ("jobs", maps)]
        ),
        "ETL": lambda: nullcontext(
            [("jobs", Started(JOBS["riot-etl"].entry, JOBS["riot-etl"].arguments(8_000), {}))]
        ),
    }
    if "kafka" in jars:
        (folder / "broker").mkdir()
        jobs["SQL on Kafka"] = on_kafka
    return jobs


class Measured(NamedTuple):
    """What one source says of a job."""

    cores: dict[str, float]  # operator of any job → cores
    rates: list[float]  # logarithm of the rates of layouts


def run(
    rest: Rest, server: Prometheus, uploaded: Mapping[str, str], jobs: Any
) -> dict[str, Measured]:
    """Start jobs, and measure them by all sources."""
    started = []
    try:
        for jar, job in jobs:
            facts = job.entry, job.arguments, PARALLELISM, job.settings
            started.append(submit(rest, uploaded[jar], *facts))
            rest.wait_running(started[-1])
        time.sleep(WARM_UP)
        return measured(rest, server, started[-1])
    finally:
        for name in started:
            rest.cancel(name)


def measured(rest: Rest, server: Prometheus, job: str) -> dict[str, Measured]:
    """Measure a job by all sources in the same time."""
    near, began = JobWindows(rest, job), time.time()
    with patch.object(windows, "processes_of", lambda rest: {}):
        by_reporter = JobWindows(rest, job)
        with patch.object(Reporters, "_has_reporter", lambda self, device: False):
            by_dumps = JobWindows(rest, job)
            by_dumps.add(SECONDS)
    by_reporter._marks.append(by_reporter._mark(by_reporter._marks[-1]))
    near._marks.append(near._mark(near._marks[-1]))
    near._sampler = by_reporter._sampler = by_dumps._sampler
    seen = {THREADS: near, "reporter": by_reporter, "dumps": by_dumps}
    kinds = near.last().cluster.kinds.values()
    print("  threads:", *({kind: round(own, 3) for kind, own in of.items()} for of in kinds))
    cluster = measured_cluster(rest, str(MIPS), None).cluster()
    answer = {}
    for name, of in seen.items():
        profile = profile_of(of)
        print(f"  {name}: {profile.origin}")
        answer[name] = said_by(profile, of, cluster)
    mark = by_dumps._marks[-1]
    by_dumps._marks[-1] = mark._replace(cluster=replace(mark.cluster, dumps={}))
    answer["busy time"] = said_by(profile_of(by_dumps), by_dumps, cluster)
    history = read_history(server, rest, job, TimeRange(began, time.time())).profile()
    cores = {task.name: history.cpu[task.id].cores for task in history.tasks}
    return answer | {"history": Measured(cores, rates_of(history, cluster))}


def said_by(profile: JobProfile, of: JobWindows, cluster: Any) -> Measured:
    """What a profile says; the operators of other jobs count as one."""
    cores = {task.name: profile.cpu[task.id].cores for task in profile.tasks}
    others = of.last().cluster.cpu.items()
    cores[BESIDE] = sum(cpu.cores for (job, _, _), cpu in others if job != of.job)
    return Measured(cores, rates_of(profile, cluster))


def rates_of(profile: JobProfile, cluster: Any) -> list[float]:
    """Logarithms of the rates that random layouts carry, by the model."""
    graph, rng = measured_graph(profile, MIPS), np.random.default_rng(0)
    answer = []
    for _ in range(LAYOUTS):
        layout = {
            task.name: rng.choice(DEVICES, task.parallelism).tolist() for task in profile.tasks
        }
        answer.append(math.log(capacity(graph, cluster, layout)))
    return answer


def as_tables(found: Mapping[str, Mapping[str, Measured]]) -> str:
    """Errors against the threads: of operators, and of rates."""
    heads = ("source", "operators: median error", "90 % within", "rates: 90 % within")
    lines = []
    for source in SOURCES:
        errors, rates = [], []
        for by in found.values():
            true, said = by[THREADS], by[source]
            errors += [
                abs(said.cores[name] / cores - 1)
                for name, cores in true.cores.items()
                if name in said.cores and cores >= LEAST
            ]
            rates += [abs(math.expm1(b - a)) for a, b in zip(true.rates, said.rates, strict=True)]
        ends = ((errors, 0.5), (errors, 0.9), (rates, 0.9))
        lines.append((source, *(f"{np.quantile(values, q):.0%}" for values, q in ends)))
    return table(heads, lines)


LEAST = 0.005
"""Least cores of an operator whose error counts."""

if __name__ == "__main__":
    main()
