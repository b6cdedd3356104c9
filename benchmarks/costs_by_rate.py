"""CPU of jobs at several rates, by subtask and by kind of thread: what a tuple costs, and what not.

    python benchmarks/costs_by_rate.py --minutes 25
    python benchmarks/costs_by_rate.py --check

Protocol: two TaskManagers of this machine, parallelism 2, as many slots, Java's first compiler
alone, the rates in random order, every job started anew for each, watched for 15 s after a warm-up
of 25 s; runs in which another process takes more than a tenth of the machine are left out. A line
of ``assets/costs-by-rate.jsonl`` is appended after each run, so that a stopped command goes on.
``--check`` measures nothing: it fits each job at one rate and compares what that predicts of its
operators at higher rates with what was measured there.
"""

import random
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import click
from flink_jobs import JOBS, ROOT, UNSEEN, jobs_jar, submit
from studies import append_row, read_rows, table

from streamplace.errors import StreamplaceError
from streamplace.flink.local.session import find_flink, local_cluster
from streamplace.flink.measure.cost_fit import Observation, constant_cores
from streamplace.flink.measure.windows import JobWindows
from streamplace.flink.rest.client import Rest

RATES = (1_000, 2_000, 4_000, 8_000, 16_000)
FILE = ROOT / "docs/assets/costs-by-rate.jsonl"
PARALLELISM = 2
SETTINGS: dict[str, str | int | float] = {
    "taskmanager.numberOfTaskSlots": PARALLELISM,
    "metrics.fetcher.update-interval": 1000,
    "taskmanager.load-balance.mode": "SLOTS",
    "env.java.opts.taskmanager": "-XX:TieredStopAtLevel=1",
}
WARM_UP, SECONDS = 25.0, 15.0
MOST_OTHERS = 0.1
FITTED = {"nexmark-q3", "riot-etl", "word-count", "meter readings", "payment rules"}
"""Jobs whose runs the priors come from; the others judge them."""
NAMES = (*sorted(FITTED), *UNSEEN)
Row = dict[str, Any]


@click.command()
@click.option("--minutes", type=float, default=25.0, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--check", is_flag=True, help="Compare predictions with the runs of the file.")
def main(minutes: float, seed: int, check: bool) -> None:
    """Measure the CPU of jobs at several rates."""
    if check:
        click.echo(checked(read_rows(FILE)))
        return
    deadline = time.monotonic() + 60 * minutes
    done = {(row["job"], row["offered"]) for row in read_rows(FILE)}
    todo = [(name, rate) for name in NAMES for rate in RATES if (name, rate) not in done]
    random.Random(seed).shuffle(todo)
    flink = find_flink(None)
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(flink, ("one", "two"), settings=SETTINGS) as cluster,
    ):
        uploaded = cluster.rest.upload(jobs_jar(flink, Path(folder) / "jobs.jar"))
        for name, rate in todo:
            if time.monotonic() > deadline:
                break
            try:
                row = run(cluster.rest, uploaded, name, rate)
            except StreamplaceError as error:
                click.echo(f"{name} at {rate}/s: {error}", err=True)
                continue
            click.echo(f"{name} at {rate}/s: {sum(map(len, row['threads'].values()))}", err=True)
            append_row(FILE, row)


def run(rest: Rest, jar: str, name: str, rate: int) -> Row:
    """Measure a job at one rate."""
    job = {**JOBS, **UNSEEN}[name]
    started = submit(rest, jar, job.entry, job.arguments(rate), PARALLELISM)
    try:
        rest.wait_running(started)
        time.sleep(WARM_UP)
        before, began = idle_seconds(), time.monotonic()
        windows = JobWindows(rest, started)
        windows.add(SECONDS)
        idle, seconds = idle_seconds() - before, time.monotonic() - began
        last = windows.last()
    finally:
        rest.cancel(started)
    subtasks = [
        {
            "task": subtask.vertex, "number": subtask.number, "device": subtask.device,
            "read": subtask.read, "wrote": subtask.wrote, "cores": cpu.cores,
            "own": cpu.thread.cores if cpu.thread else None, "wakes": cpu.wakes,
        }
        for own in last.subtasks.values()
        for subtask, cpu in own
    ]  # fmt: skip
    return {
        "job": name,
        "offered": rate,
        "tasks": {
            task.id: {
                "name": task.name,
                "in": last.activity[task.id].records_in,
                "out": last.activity[task.id].records_out,
                "generated": last.activity[task.id].rates.get(windows.generated.get(task.id, "")),
            }
            for task in windows.tasks
        },
        "edges": [[edge.source, edge.target, edge.partitioning] for edge in windows.edges],
        "subtasks": subtasks,
        "threads": {
            device: [
                [load.name, round(load.cores, 6), round(load.wakes, 2)]
                for load in last.cluster.loads[device].threads
                if load.cores > 1e-5
            ]
            for device in last.cluster.sampled
        },
        "idle": idle / seconds,
    }


def checked(rows: list[Row]) -> str:
    """Errors of the CPU that a fit at one rate predicts for higher ones, as Markdown."""
    lines = []
    by_job = {(row["job"], row["offered"]): row for row in rows}
    for kind, jobs in (("of the prior", sorted(FITTED)), ("others", list(UNSEEN))):
        for low in RATES[:3]:
            for high in RATES[RATES.index(low) + 1 :]:
                pairs = [
                    (by_job[job, low], by_job[job, high])
                    for job in jobs
                    if {(job, low), (job, high)} <= by_job.keys()
                ]
                if not pairs:
                    continue
                errors = [predicted(fitted, asked) / cores(asked) - 1 for fitted, asked in pairs]
                ends = f"{median(map(abs, errors)):.0%}", f"{max(errors, key=abs):+.0%}"
                lines.append((f"{len(pairs)} {kind}", f"{low:,}", f"{high:,}", *ends))
    return table(("jobs", "fitted at", "asked at", "median error", "largest"), lines)


def cores(row: Row) -> float:
    """Cores of all subtasks of a job, with what is charged to them."""
    return float(sum(subtask["cores"] for subtask in row["subtasks"]))


def taken_in(row: Row, task: str) -> float:
    """Tuples/s that a task processed."""
    facts = row["tasks"][task]
    generated = facts["generated"]
    return float(facts["in"] if generated is None else generated)


def observed(row: Row, task: str) -> list[Observation]:
    """Rate and CPU of the subtasks of a task."""
    is_source = row["tasks"][task]["generated"] is not None
    own = [subtask for subtask in row["subtasks"] if subtask["task"] == task]
    counts = [subtask["wrote" if is_source else "read"] for subtask in own]
    if not sum(counts):
        counts = [1.0] * len(own)
    rate = taken_in(row, task)
    return [
        Observation(rate * count / sum(counts), subtask["cores"], subtask["wakes"])
        for count, subtask in zip(counts, own, strict=True)
    ]


def predicted(row: Row, target: Row) -> float:
    """Cores at the rates of another row, by a fit to one."""
    ids = {facts["name"]: task for task, facts in target["tasks"].items()}
    total = 0.0
    for task, facts in row["tasks"].items():
        subtasks, rate = observed(row, task), taken_in(row, task)
        used = sum(subtask.cores for subtask in subtasks)
        fixed = constant_cores(used, rate, subtasks, len(subtasks))
        wanted = taken_in(target, ids[facts["name"]])
        total += fixed + (used - fixed) * (wanted / rate if rate > 0 else 0.0)
    return total


def idle_seconds() -> float:
    """Idle core seconds of the machine since its start."""
    numbers = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return (int(numbers[3]) + int(numbers[4])) / 100


if __name__ == "__main__":
    main()
