"""The cost of sending a buffer: CPU of a job whose buffers are sent more or less often.

Flink sends what is in the buffer of a channel once per buffer timeout, if there is anything in it,
so the number of messages grows with the number of channels, which is that of sending times that of
receiving subtasks. Its metric ``numBuffersOut`` does not count them: it counts buffers of 32 KiB,
which are sent in parts. A job of the same rate and parallelism runs with several timeouts, and

    cores = cores without messages + cost · messages/s,
    messages/s = channels · r / (1 + r · timeout)       for r tuples/s on each channel

is fitted to the CPU of all threads of its tasks and of the network.
"""

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np
from flink_jobs import HEAVY, SOURCES, FlinkJob

from streamplace.engines.flink.cpu.threads import HELPERS, NETWORK, TASKS
from streamplace.engines.flink.local.dist import find_flink
from streamplace.engines.flink.local.session import local_cluster
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.sampling import sample
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.rest.client import Rest

LIGHT = FlinkJob(
    "GraphJob",
    1_000,
    tuple({**row, "rounds": 0} if "rounds" in row else row for row in HEAVY.operators),
    tuple({**row, "partitioning": "rebalance"} for row in HEAVY.streams),
)
"""Hardly any work, so that what buffers cost is seen."""
WORK = FlinkJob("GraphJob", 1_000, HEAVY.operators, LIGHT.streams)
JOBS: Mapping[str, FlinkJob] = {"light pipeline": LIGHT, "heavy pipeline": WORK}
PARALLELISM = (2, 8)
TIMEOUTS = (20, 100, 500)
"""Milliseconds; Flink's default is 100."""
SETTINGS: dict[str, str | int | float] = {
    "taskmanager.numberOfTaskSlots": 8,
    "taskmanager.memory.network.min": "128m",
    "taskmanager.memory.network.max": "128m",
    "taskmanager.load-balance.mode": "SLOTS",
    "metrics.fetcher.update-interval": 1000,
}
WARM_UP = 20.0
BUFFERS = "numBuffersOut"
Row = dict[str, str | float]


@click.command()
@click.argument("jobs", nargs=-1, type=click.Choice(list(JOBS)))
@click.option("--seconds", type=click.FloatRange(2), default=10.0, show_default=True)
def main(jobs: tuple[str, ...], seconds: float) -> None:
    """Print what a buffer costs in jobs of parallelism 2 and 8."""
    flink, rows = find_flink(None), list[Row]()
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(flink, ("one", "two"), settings=SETTINGS) as cluster,
    ):
        jar = Path(folder) / "jobs.jar"
        build_jar(flink, sorted(file for f in SOURCES for file in f.glob("*.java")), jar)
        rest = cluster.rest
        uploaded = rest.upload(jar)
        for name in jobs or JOBS:
            for number in PARALLELISM:
                for timeout in TIMEOUTS:
                    rows.append(run(rest, uploaded, name, number, timeout, seconds))
                    print(json.dumps(rows[-1]), file=sys.stderr)
    click.echo(table(rows))


def run(rest: Rest, jar: str, name: str, number: int, timeout: int, seconds: float) -> Row:
    """Measure a job with one buffer timeout."""
    job = JOBS[name]
    parallelism = {str(row["name"]): number for row in job.operators}
    settings = {"execution.buffer-timeout.interval": f"{timeout} ms"}
    request = {
        "entryClass": job.entry,
        "programArgsList": job.arguments(None, parallelism),
        "parallelism": number,
        "flinkConfiguration": settings,
    }
    started = str(rest.post(f"/jars/{jar}/run", request)["jobid"])
    try:
        rest.wait_running(started)
        time.sleep(WARM_UP)
        seen = profile(rest, started, seconds)
        tasks = [task.id for task in seen.tasks]
        counted = sample(rest, started, tasks, seconds, {task: (BUFFERS,) for task in tasks})
    finally:
        rest.cancel(started)
    present, rate = seen.present, sum(seen.tuples[task.id] for task in seen.sources)
    kinds = [usage.kinds for usage in present.usage.values()]
    return {
        "job": name,
        "parallelism": number,
        "timeout": timeout,
        "rate": rate,
        "messages": messages(len(job.streams), number, rate, timeout / 1000),
        "buffers": sum(one.rates.get(BUFFERS, 0.0) for one in counted.values()),
        "network": sum(one.get(NETWORK, 0.0) for one in kinds),
        "tasks": sum(one.get(kind, 0.0) for one in kinds for kind in (TASKS, HELPERS)),
    }


def messages(streams: int, number: int, rate: float, timeout: float) -> float:
    """Messages/s of streams that each join all of so many subtasks.

    >>> messages(1, 2, 40.0, 0.1), messages(1, 8, 64e6, 0.1)
    (20.0, 639.9936000639993)
    """
    channels = number**2
    each = rate / channels
    return streams * channels * each / (1 + each * timeout)


def table(rows: list[Row]) -> str:
    """Cost of a message, in the network's threads and in those of tasks, of each job."""
    lines = [
        "| job | parallelism | tuples/s | messages/s at 20, 100, 500 ms | `numBuffersOut` per s | "
        "cores of tasks | cores of the network | µs per message |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in dict.fromkeys(str(row["job"]) for row in rows):
        for number in PARALLELISM:
            own = [row for row in rows if (row["job"], row["parallelism"]) == (name, number)]
            sent, buffers, tasks, network = (
                np.array([row[key] for row in own], np.float64)
                for key in ("messages", "buffers", "tasks", "network")
            )
            slope = float(np.polyfit(sent, tasks + network, 1)[0])
            counts = [_numbers(values, "{:,.0f}") for values in (sent, buffers)]
            cells = (*counts, _numbers(tasks), _numbers(network))
            lines.append(
                f"| {name} | {number} | {np.mean([row['rate'] for row in own]):,.0f} | "
                f"{' | '.join(cells)} | {1e6 * slope:.0f} |"
            )
    return "\n".join(lines)


def _numbers(values: np.ndarray, form: str = "{:.3f}") -> str:
    return ", ".join(form.format(value) for value in values)


if __name__ == "__main__":
    main()
