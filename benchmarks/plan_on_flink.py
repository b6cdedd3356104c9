"""Plans carried out: a real Flink carries the rate, and does not with one machine less.

Every job first runs on all TaskManagers without limits: each process compiles for itself, and anew
when another job calls the same code in other ways. Each of sixteen jobs is then profiled on one
TaskManager that is full and on two that are not, and runs on eight, where placements drawn at
random are predicted from that profile. `streamplace plan` then chooses machines, parallelism and
placement for four rates, with a confidence of 90 % by the ledger of these runs of the other jobs;
those of jobs that chose nothing serve no job but for its tables. The job runs on TaskManagers of
exactly these limits: with the plan, and with the best placement that is found without the plan's
cheapest machine, all runs in random order. A plan that does not carry its rate is corrected once:
costs are re-scaled by what was measured. A line of ``assets/plans-that-hold.jsonl`` is appended for
all that is measured, so that a command that was stopped at any run goes on; it says how long the
rest will take. Afterwards ``plan-compared.md`` gets its tables. Needs Linux with cgroups of version
1, root and a JDK, and takes about half a minute a run. ``--table`` measures nothing.
"""

import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from against_cells import JOBS as COMPARED
from flink_jobs import JOBS as PROBED
from flink_jobs import ROOT, SOURCES, UNSEEN
from limiting import (
    SETTINGS,
    CpuWatch,
    limit,
    measured_devices,
    memory_ns,
    release,
    wait_compiled,
    with_library,
)
from measured_rows import append_row, read_rows
from planned_rates import rates_of, rates_together
from planned_runs import (
    BANDWIDTH,
    CARRIED,
    CORES,
    DEVICES,
    EIGHTH,
    LEVELS,
    MIPS,
    OFFERED,
    PLACEMENTS,
    SEED,
    JobFacts,
    Row,
    corrected_pair,
    entries_of,
    in_random_order,
    key_groups,
    key_of,
    planned_pair,
    scattered,
    seconds_left,
)
from planned_tables import summary

from streamplace.engines.flink.local.dist import Flink, find_flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.measure.profile import JobProfile, profile
from streamplace.engines.flink.measure.sampling import sample
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.fixed import planned_twice
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.plan import read_plan
from streamplace.errors import ProblemError
from streamplace.io.graphs import graph_to_dict
from streamplace.io.ledger import append_entries

JOBS = {**PROBED, **COMPARED, **UNSEEN}
NAMES = (*COMPARED, *UNSEEN)
SETTLE, SECONDS, PROFILE_SECONDS = 6.0, 6.0, 20.0
USUAL = {
    "taskmanager.memory.segment-size": "32kb",
    "taskmanager.memory.task.heap.size": "448m",
    "classloader.resolve-order": "parent-first",
}
"""Buffers and heap of Flink's defaults (512 MB, with 64 MB of the framework).

Small buffers would couple TaskManagers: all wait for one that collects garbage. It is collected
often where windows fill a small heap.
"""
PARTLY = 0.6
"""Share of the rate of one TaskManager at which two are profiled."""
FILE = "plans-that-hold.jsonl"
BEGIN, END = "<!-- plan on Flink -->\n", "<!-- /plan on Flink -->"


@dataclass(frozen=True)
class Bench:
    """A running cluster of limited TaskManagers, the jar of all jobs, and the file of results."""

    cluster: LocalCluster
    flink: Flink
    jar: Path
    output: Path

    @property
    def rest(self) -> Rest:
        """The cluster's interface."""
        return Rest(self.cluster.url)

    def start(
        self,
        job: str,
        rate: float | None,
        vectors: Mapping[str, list[str]],
        cores: Mapping[str, float],
        *,
        is_limited: bool = True,
    ) -> str:
        """Start a job, let it warm up without limits, and limit it; returns its id."""
        release(self.cluster)
        parallelism = {name: len(vector) for name, vector in vectors.items()}
        program = self.program(job, JOBS[job].arguments(rate, parallelism))
        started = apply(self.rest, self.flink, program, vectors, seconds=100)
        wait_compiled(self.cluster)
        if not is_limited:
            return started
        limit(self.cluster, {name: cores.get(name, EIGHTH) for name in DEVICES})
        time.sleep(SETTLE)
        return started

    def run(self, job: str, rate: float | None, where: Row) -> dict[str, Any]:
        """Rates of a job where it is placed, and how long its sources are held back."""
        started = self.start(job, rate, where["vectors"], where["cores"])
        _, tasks, edges = read_plan(self.rest, started)
        before = memory_ns()
        cpu = CpuWatch(self.cluster)
        seen = sample(self.rest, started, [task.id for task in tasks], SECONDS)
        cores = cpu.cores()
        after = memory_ns()
        self.stop(started)
        fed = {edge.target for edge in edges}
        blocked = [seen[t.id].back_pressured / t.parallelism for t in tasks if t.id not in fed]
        return {
            "rates": rates_together({task.name: seen[task.id] for task in tasks}),
            "blocked": round(max(blocked), 3),
            "memory_ns": [before, after],
            "cpu": cores,
        }

    def warm_up(self, jobs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Run every job on every TaskManager without limits; returns facts of their programs.

        Java takes more in the first job after its start, and compiles anew what behaves otherwise
        in the next one.
        """
        facts = {}
        for job in jobs:
            facts[job] = self.program_facts(job)
            subtasks, fixed = facts[job]["subtasks"], facts[job]["fixed"]
            most = key_groups(job)
            for first in range(0, len(DEVICES), most):
                there = [*DEVICES[first:], *DEVICES[:first]]
                vectors = {
                    name: there[:p] if name in fixed else there[:most]
                    for name, p in subtasks.items()
                }
                self.stop(self.start(job, None, vectors, {}, is_limited=False))
            click.echo(f"{job}: warm")
        return facts

    def profiled(
        self, job: str, vectors: Mapping[str, list[str]], rate: float | None = None
    ) -> JobProfile:
        """Profile of a job whose sources offer a rate, or more than the TaskManagers carry."""
        started = self.start(job, rate, vectors, dict.fromkeys(DEVICES, CORES["large"]))
        seen = profile(self.rest, started, PROFILE_SECONDS)
        self.stop(started)
        return seen

    def stop(self, job: str) -> None:
        """End a job; the TaskManagers are free again."""
        release(self.cluster)
        self.rest.cancel(job)

    def program(self, job: str, arguments: list[str]) -> Program:
        """Program of a job, whose operators get its key groups."""
        settings = {"pipeline.max-parallelism": str(key_groups(job))}
        return Program(self.jar, JOBS[job].entry, arguments, settings=settings)

    def program_facts(self, job: str) -> dict[str, Any]:
        """Least number of subtasks of each operator, and what else the program says of them."""
        uploaded = self.rest.upload(self.jar)
        started = self.rest.run_jar(uploaded, JOBS[job].entry, JOBS[job].arguments())
        self.rest.wait_running(started)
        _, tasks, _ = read_plan(self.rest, started)
        self.rest.cancel(started)
        if JOBS[job].operators:  # its arguments set them all
            return {"subtasks": {task.name: 1 for task in tasks}, "fixed": [], "loose": []}
        planned = planned_twice(self.rest, self.program(job, JOBS[job].arguments()))
        fixed, name = planned.fixed, {task.id: task.name for task in tasks}
        return {
            "subtasks": {t.name: t.parallelism if t.id in fixed else 1 for t in tasks},
            "fixed": [task.name for task in tasks if task.id in fixed],
            "loose": sorted([name[u], name[v]] for u, v in planned.loose),
        }


def profile_row(bench: Bench, job: str, program: Mapping[str, Any]) -> dict[str, Any]:
    """Profile a job on one TaskManager, and on two what remote tuples cost.

    The two are not full: threads that wait for the CPU send many buffers at a time, each for less.
    """
    subtasks = program["subtasks"]
    before = memory_ns()
    alone = bench.profiled(job, {name: p * [DEVICES[0]] for name, p in subtasks.items()})
    halves = {name: DEVICES[i % 2] for i, name in enumerate(subtasks)}
    graph = alone.graph(MIPS)
    vectors = {name: p * [halves[name]] for name, p in subtasks.items()}
    apart = bench.profiled(job, vectors, PARTLY * graph.source_rate)
    java, sending = apart.background(len(DEVICES))
    return {
        "kind": "profile",
        "job": job,
        "graph": graph_to_dict(graph),
        "fixed": program["fixed"],
        "loose": program["loose"],
        "memory_ns": [before, memory_ns()],
        "rates": rates_of({task.name: alone.activity[task.id] for task in alone.tasks}),
        "java": java,
        "per_tuple": sending.per_tuple if sending else 0.0,
        "per_byte": sending.per_byte if sending else 0.0,
    }


def measure(bench: Bench, jobs: list[str], repeats: int) -> None:
    """Append what is missing in the file: profiles, runs on eight machines, and runs of plans."""
    rows = read_rows(bench.output)
    done = {key_of(row) for row in rows}
    click.echo(f"about {seconds_left(done, jobs, repeats) / 60:.0f} minutes are left")
    programs = bench.warm_up(jobs)
    facts = {job: profiled(bench, job, programs[job], rows) for job in jobs}
    measure_eight(bench, facts, done)
    pairs = {}
    for job in jobs:
        for one in planned(bench, facts[job], rows, ledger_for(bench, job, facts)):
            pairs[job, one["level"]] = one
    for repeat in range(repeats):
        for job, level, which in in_random_order(jobs, repeat):
            row = {"kind": "run", "job": job, "level": level, "repeat": repeat}
            pair = pairs.get((job, level))
            if pair is None:
                continue
            if key_of(row | {"which": which}) not in done:
                carry_out(bench, facts[job], row | {"which": which}, pair, pair[which])
            if which == "plan" and key_of(row | {"which": "corrected"}) not in done:
                correct(bench, facts[job], row, pair)


def carry_out(bench: Bench, facts: JobFacts, row: dict[str, Any], pair: Row, where: Row) -> None:
    """Run a job where it is placed, and append what it received."""
    about = f"{row['job']} {row['level']} {row['which']}"
    try:
        seen = bench.run(row["job"], pair["rate"], where)
    except FlinkError as error:
        click.echo(f"{about}: {error}", err=True)
        return
    append_row(bench.output, row | seen)
    share = facts.received(seen["rates"], pair["rate"])
    click.echo(f"{about}: {share:.3f} of the rate")


def correct(bench: Bench, facts: JobFacts, row: dict[str, Any], pair: Row) -> None:
    """Correct a plan that did not carry its rate in this repeat, and run it once more."""
    rows = read_rows(bench.output)
    first = next((one for one in rows if key_of(one) == key_of(row | {"which": "plan"})), None)
    if first is None or facts.received(first["rates"], pair["rate"]) >= CARRIED:
        return
    about = row | {"kind": "correction"}
    correction = next((one for one in rows if key_of(one) == key_of(about)), None)
    if correction is None:
        measured = facts.throughput(first["rates"])
        correction = about | corrected_pair(facts, pair, measured)
        append_row(bench.output, correction)
    carry_out(bench, facts, row | {"which": "corrected"}, pair, correction["plan"])


def profiled(
    bench: Bench, job: str, program: Mapping[str, Any], rows: list[dict[str, Any]]
) -> JobFacts:
    """Profile of a job, from the file or made now."""
    known = [row for row in rows if row["job"] == job and row["kind"] == "profile"]
    if known:
        return JobFacts.of(known[0])
    made = profile_row(bench, job, program)
    append_row(bench.output, made)
    click.echo(f"{job}: profiled")
    return JobFacts.of(made)


def measure_eight(bench: Bench, facts: Mapping[str, JobFacts], done: set[tuple[Any, ...]]) -> None:
    """Run random placements on eight TaskManagers whose sources offer a little more than predicted.

    Not much more: a source that is held back less than the others would send in their place.
    """
    drawn = []
    for job, own in facts.items():
        rng = np.random.default_rng(sum(map(ord, job)))
        drawn += [(job, n, scattered(own, rng)) for n in range(PLACEMENTS)]
    for i in np.random.default_rng(SEED).permutation(len(drawn)):
        job, number, where = drawn[i]
        row = {"kind": "eight", "job": job, "placement": number} | where
        if key_of(row) in done:
            continue
        try:
            row |= bench.run(job, OFFERED * where["predicted"], where)
        except FlinkError as error:
            click.echo(f"{job} on eight, {number}: {error}", err=True)
            continue
        append_row(bench.output, row)
        share = facts[job].throughput(row["rates"]) / where["predicted"]
        click.echo(f"{job} on eight, {number}: {share:.3f} of what is predicted")


def ledger_for(bench: Bench, job: str, facts: Mapping[str, JobFacts]) -> Path:
    """Write the ledger by which a job is planned: runs on eight machines of all other jobs."""
    path = Path(tempfile.mkdtemp(dir=bench.jar.parent)) / "ledger.jsonl"
    eight = [row for row in read_rows(bench.output) if row["kind"] == "eight"]
    others = [row for row in eight if row["job"] not in {job, *UNSEEN} and row["job"] in facts]
    append_entries(path, (entry for row in others for entry in entries_of(facts[row["job"]], row)))
    return path


def planned(
    bench: Bench, facts: JobFacts, rows: list[dict[str, Any]], ledger: Path
) -> list[dict[str, Any]]:
    """Plans of a job, from the file or made now."""
    job = facts.graph.name
    pairs = [row for row in rows if row["kind"] == "pair" and row["job"] == job]
    for level in LEVELS:
        if any(row["level"] == level for row in pairs):
            continue
        try:
            row = {"kind": "pair", "job": job} | planned_pair(facts, level, ledger)
        except ProblemError as error:
            click.echo(f"{job} {level}: {error}", err=True)
            continue
        append_row(bench.output, row)
        pairs.append(row)
        click.echo(
            f"{job} {level}: {row['rate']:,.0f} tuples/s on {row['machines']}, predicted "
            f"{row['plan']['predicted'] / row['rate']:.3f} and "
            f"{row['less']['predicted'] / row['rate']:.3f} of it"
        )
    return pairs


def carry_out_all(folder: Path, file: Path, jobs: list[str], repeats: int) -> None:
    """Start a cluster, and append what is missing in the file."""
    flink, large = find_flink(None), CORES["large"]
    settings = {**SETTINGS, **USUAL}
    jar = folder / "jobs.jar"
    build_jar(flink, sorted(java for f in SOURCES for java in f.glob("*.java")), jar)
    own = with_library(flink, jar, folder / "flink")
    with measured_devices(
        own,
        DEVICES,
        cores=large,
        bandwidth_bps=BANDWIDTH,
        settings=settings,
    ) as cluster:
        bench = Bench(cluster, own, jar, file)
        measure(bench, jobs, repeats)


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "docs")
@click.option("--jobs", default=",".join(NAMES), help="Such as riot-etl,word-count.")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
@click.option("--file", "name", default=FILE, show_default=True, help="File in assets/.")
@click.option("--table", is_flag=True, help="Measure nothing.")
def main(output: Path, jobs: str, repeats: int, name: str, table: bool) -> None:
    """Measure what is missing, then print the tables."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    file, page = output / "assets" / name, output / "plan-compared.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not table:
        with tempfile.TemporaryDirectory() as folder:
            carry_out_all(Path(folder), file, jobs.split(","), repeats)
    text = summary(read_rows(file))
    click.echo(text)
    head, begin, rest = page.read_text("utf-8").partition(BEGIN) if page.exists() else ("", "", "")
    if begin:
        page.write_text(head + BEGIN + text + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
