"""Plans carried out: a real Flink carries the rate, and does not with one machine less.

Every job first runs on all TaskManagers without limits: each process compiles for itself, and anew
when another job calls the same code in other ways. The sixteen jobs then follow one after the
other, in random order, because what a profile tells holds for the computer as it is at that time.
Each is profiled on one TaskManager that is full and on two that are not, and runs on eight, where
placements drawn at random are predicted from that profile. `streamplace plan` then chooses
machines, parallelism and placement for four rates, with a confidence of 90 % by the recorded runs
of other jobs that the package has. The job runs on TaskManagers of exactly these limits: with the
plan, and with the best placement that is found without the plan's cheapest machine, in random
order. The limits follow how much slower other virtual machines make the CPU at the time. A plan
that does not carry its rate is corrected once: the job is profiled as it runs, and costs are
re-scaled by what was measured. A line of ``assets/plans-that-hold.jsonl`` is appended for all that
is measured, so that a command that was stopped at any run goes on; it says how long the rest will
take. Afterwards it prints what the lines amount to. Needs Linux with cgroups of version 1, root and
a JDK, and takes about half a minute a run. ``--table`` measures nothing.
"""

import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from against_cells import JOBS as COMPARED
from constant_speed import ConstantSpeed
from flink_jars import with_jars
from flink_jobs import JOBS as PROBED
from flink_jobs import ROOT, UNSEEN, jobs_jar
from limited import SETTINGS, CpuWatch, core_of, limit, measured_devices, release, wait_compiled
from planned_facts import (
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
    Rates,
    Row,
    corrected_pair,
    in_random_order,
    key_groups,
    key_of,
    planned_pair,
    rates_of,
    rates_together,
    scattered,
    seconds_left,
)
from studies import append_row, read_rows

from streamplace.errors import ProblemError
from streamplace.flink.advise.fixed_parallelism import planned_twice
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import LocalCluster, find_flink
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import JobProfile, profile
from streamplace.flink.measure.sampling import sample
from streamplace.flink.pin.apply import apply
from streamplace.flink.program.program import Program
from streamplace.flink.rest.client import FlinkError
from streamplace.flink.rest.plan import read_plan
from streamplace.io.graphs import graph_to_dict

JOBS = {**PROBED, **COMPARED, **UNSEEN}
SETTLE, SECONDS, PROFILE_SECONDS = 6.0, 12.0, 20.0
LAST_LINES = 40
"""Lines of a log that are shown."""
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


@dataclass(frozen=True)
class Bench:
    """A running cluster of limited TaskManagers, the jar of all jobs, and the file of results.

    TaskManagers have a constant speed. Cores, and CPU times, are those of a quiet machine.
    """

    cluster: LocalCluster
    speed: ConstantSpeed
    jar: Path
    output: Path

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
        self._release()
        parallelism = {name: len(vector) for name, vector in vectors.items()}
        program = self.program(job, JOBS[job].arguments(rate, parallelism))
        started = apply(self.cluster.rest, program, Layout(vectors), seconds=100)
        wait_compiled(self.cluster)
        if not is_limited:
            return started
        granted = {name: cores.get(name, EIGHTH) for name in DEVICES}
        limit(self.cluster, granted)
        self.speed.hold(dict(enumerate(granted.values())), code_of(job))
        time.sleep(SETTLE)
        return started

    def run(
        self,
        job: str,
        rate: float | None,
        where: Row,
        is_short: Callable[[Rates], bool] | None = None,
    ) -> dict[str, Any]:
        """Rates of a job where it is placed, and how long its sources are held back.

        A job whose rates are short of what is wanted is profiled: the row has the largest rates of
        subtasks that are found.
        """
        started = self.start(job, rate, where["vectors"], where["cores"])
        _, tasks, edges = read_plan(self.cluster.rest, started)
        cpu = CpuWatch(self.cluster)
        seen = sample(self.cluster.rest, started, [task.id for task in tasks], SECONDS)
        cores, slow = cpu.cores(), self.speed.slowness(code_of(job), cpu.begun)
        rates = rates_together({task.name: seen[task.id] for task in tasks})
        limits = self._max_rates(started) if is_short and is_short(rates) else {}
        self.stop(started)
        fed = {edge.target for edge in edges}
        blocked = [seen[t.id].back_pressured / t.parallelism for t in tasks if t.id not in fed]
        return {
            "rates": rates,
            "max_rate": limits,
            "blocked": round(max(blocked), 3),
            "busy": {
                task.name: round(busy / task.parallelism, 3)
                for task in tasks
                if (busy := seen[task.id].busy) is not None
            },
            "slow": slow,
            "cpu": {
                name: {kind: round(n / slow[core_of(i)], 4) for kind, n in cores[name].items()}
                for i, name in enumerate(DEVICES)
            },
        }

    def warm_up(self, jobs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Run every job on every TaskManager without limits; returns facts of their programs.

        Java takes more in the first job after its start, and compiles anew what behaves otherwise
        in the next one.
        """
        facts = {}
        for job in jobs:
            facts[job] = self.program_facts(job)
            self._run_everywhere(job, facts[job])
            click.echo(f"{job}: warm")
        for job in jobs[:1]:  # which is measured first, and ran while Flink was not compiled
            self._run_everywhere(job, facts[job])
        return facts

    def _run_everywhere(self, job: str, facts: Mapping[str, Any]) -> None:
        """Run a job on all TaskManagers without limits."""
        most = key_groups(job)
        for first in range(0, len(DEVICES), most):
            there = [*DEVICES[first:], *DEVICES[:first]]
            vectors = {
                name: there[:p] if name in facts["fixed"] else there[:most]
                for name, p in facts["subtasks"].items()
            }
            self.stop(self.start(job, None, vectors, {}, is_limited=False))

    def profiled(
        self, job: str, vectors: Mapping[str, list[str]], rate: float | None = None
    ) -> tuple[JobProfile, float]:
        """Profile of a job whose sources offer a rate, or more than the TaskManagers carry.

        Second, how much more CPU time its code took there than on a quiet machine.
        """
        started = self.start(job, rate, vectors, dict.fromkeys(DEVICES, CORES["large"]))
        begun = time.monotonic()
        seen = profile(self.cluster.rest, started, PROFILE_SECONDS)
        slow = self.speed.slowness(code_of(job), begun)
        self.stop(started)
        used = {DEVICES.index(device) for vector in vectors.values() for device in vector}
        return seen, sum(slow[core_of(i)] for i in used) / len(used)

    def stop(self, job: str) -> None:
        """End a job; the TaskManagers are free again."""
        self._release()
        self.cluster.rest.cancel(job)

    def _max_rates(self, job: str) -> dict[str, float]:
        """Largest rates of subtasks that a profile of a running job finds."""
        graph = measured_graph(profile(self.cluster.rest, job, PROFILE_SECONDS), MIPS)
        return {one.name: one.max_rate for one in graph.operators if one.max_rate}

    def _release(self) -> None:
        self.speed.let_go()
        release(self.cluster)

    def program(self, job: str, arguments: list[str]) -> Program:
        """Program of a job, whose operators get its key groups."""
        settings = {"pipeline.max-parallelism": str(key_groups(job))}
        return Program(self.jar, JOBS[job].entry, arguments, settings=settings)

    def program_facts(self, job: str) -> dict[str, Any]:
        """Least number of subtasks of each operator, and what else the program says of them."""
        uploaded = self.cluster.rest.upload(self.jar)
        started = self.cluster.rest.run_jar(uploaded, JOBS[job].entry, JOBS[job].arguments())
        self.cluster.rest.wait_running(started)
        _, tasks, _ = read_plan(self.cluster.rest, started)
        self.cluster.rest.cancel(started)
        if JOBS[job].operators:  # its arguments set them all
            return {"subtasks": {task.name: 1 for task in tasks}, "fixed": []}
        fixed = planned_twice(self.cluster.rest, self.program(job, JOBS[job].arguments())).fixed
        return {
            "subtasks": {t.name: t.parallelism if t.id in fixed else 1 for t in tasks},
            "fixed": [task.name for task in tasks if task.id in fixed],
        }


def code_of(job: str) -> str:
    """Kind of a job's code: the rounds of ``GraphJob`` wait for each other.

    >>> code_of("heavy pipeline"), code_of("word-count")
    ('dependent', 'independent')
    """
    return "dependent" if JOBS[job].operators else "independent"


def profile_row(bench: Bench, job: str, program: Mapping[str, Any]) -> dict[str, Any]:
    """Profile a job on one TaskManager, and on two what remote tuples cost.

    The two are not full: threads that wait for the CPU send many buffers at a time, each for less.
    """
    subtasks = program["subtasks"]
    alone, slow = bench.profiled(job, {name: p * [DEVICES[0]] for name, p in subtasks.items()})
    halves = {name: DEVICES[i % 2] for i, name in enumerate(subtasks)}
    graph = measured_graph(alone, MIPS / slow)
    vectors = {name: p * [halves[name]] for name, p in subtasks.items()}
    apart, slow_apart = bench.profiled(job, vectors, PARTLY * graph.source_rate)
    java, sending = apart.java or 0.0, apart.sending
    return {
        "kind": "profile",
        "job": job,
        "graph": graph_to_dict(graph),
        "fixed": program["fixed"],
        "slow": [slow, slow_apart],
        "rates": rates_of({task.name: alone.activity[task.id] for task in alone.tasks}),
        "java": java / slow_apart,
        "per_tuple": sending.per_tuple / slow_apart if sending else 0.0,
        "per_byte": sending.per_byte / slow_apart if sending else 0.0,
    }


@contextmanager
def running_bench(folder: Path, output: Path) -> Iterator[Bench]:
    """Run a cluster of eight TaskManagers that know the jar of all jobs."""
    flink = find_flink(None)
    jar = jobs_jar(flink, folder / "jobs.jar")
    own = with_jars(flink, [jar], folder / "flink")
    with (
        measured_devices(
            own,
            DEVICES,
            cores=CORES["large"],
            bandwidth_bps=BANDWIDTH,
            settings={**SETTINGS, **USUAL},
        ) as cluster,
        ConstantSpeed() as speed,
    ):
        try:
            yield Bench(cluster, speed, jar, output)
        finally:
            _tell_ended(cluster)


def _tell_ended(cluster: LocalCluster) -> None:
    """Show the ends of the logs of TaskManagers that have ended, which nothing asked for."""
    for name, process in cluster.processes.items():
        if process.poll() is not None:
            lines = (cluster.folder / name / "log").read_text(errors="replace").splitlines()
            click.echo("\n".join([f"{name} has ended:", *lines[-LAST_LINES:]]), err=True)


Outcomes = Mapping[str, list[float]]


def outcomes(pair: Row, runs: Iterable[Row], facts: JobFacts) -> Outcomes:
    """Received shares of the rate in all runs of a pair, of the plan and of one machine less."""
    shares: dict[str, list[float]] = {"plan": [], "less": []}
    for run in runs:
        is_own = (run["job"], run["level"]) == (pair["job"], pair["level"])
        if is_own and run["which"] in shares:
            shares[run["which"]].append(facts.received(run["rates"], pair["rate"]))
    return shares


def is_carried(shares: Sequence[float]) -> bool:
    """Whether most runs carried the rate.

    >>> is_carried([0.99, 1.0, 0.9]), is_carried([0.99, 0.9])
    (True, False)
    """
    return 2 * sum(share >= CARRIED for share in shares) > len(shares)


def summary(rows: Sequence[Row]) -> str:
    """What the lines amount to, as Markdown."""
    facts = {row["job"]: JobFacts.of(row) for row in rows if row["kind"] == "profile"}
    runs = [row for row in rows if row["kind"] == "run"]
    judged = [
        (row, outcomes(row, runs, facts[row["job"]])) for row in rows if row["kind"] == "pair"
    ]
    judged = [(pair, shares) for pair, shares in judged if all(shares.values())]
    judged.sort(key=lambda one: ([*facts].index(one[0]["job"]), one[0]["level"]))
    eight = [row for row in rows if row["kind"] == "eight"]
    corrections = [row for row in rows if row["kind"] == "correction"]
    parts = (
        counted(judged),
        *holding(judged, runs, corrections, facts),
        *covered(judged, runs, eight, facts),
    )
    return "\n\n".join(parts) + "\n"


def counted(judged: Sequence[tuple[Row, Outcomes]]) -> str:
    """How many pairs, and how many runs, ended as planned."""
    pairs, sentences = len(judged), []
    for which, verb in (("plan", "carries"), ("less", "does not carry")):
        wanted = which == "plan"
        good = sum(is_carried(shares[which]) == wanted for _, shares in judged)
        runs = [share for _, shares in judged for share in shares[which]]
        times = sum((share >= CARRIED) == wanted for share in runs)
        what = "The plan" if wanted else "The plan less its cheapest machine"
        part = f"{good / pairs:.0%}" if pairs else "none"
        sentences.append(
            f"{what} {verb} the rate of {good} of {pairs} pairs ({part}), and in {times} of "
            f"{len(runs)} runs."
        )
    return " ".join(sentences)


def holding(
    judged: Sequence[tuple[Row, Outcomes]],
    runs: Sequence[Row],
    corrections: Sequence[Row],
    facts: Mapping[str, JobFacts],
) -> list[str]:
    """Cost of plans over the cheapest that carried the rate; how many hold after a correction.

    Of a pair, the least that carried it is the cheapest of the plan, the plan less its cheapest
    machine, and the corrected plans; a pair that nothing carried has none. Nothing is said of pairs
    that were planned without a confidence.
    """
    own = [(pair, shares) for pair, shares in judged if "errors" in pair]
    if not own:
        return []
    costs, after = [], []
    for pair, shares in own:
        key = pair["job"], pair["level"]
        mended = {
            run["repeat"]: facts[run["job"]].received(run["rates"], pair["rate"])
            for run in runs
            if run["which"] == "corrected" and (run["job"], run["level"]) == key
        }
        carrying = {
            row["cost"]
            for row in corrections
            if (row["job"], row["level"]) == key and mended.get(row["repeat"], 0) >= CARRIED
        }
        carrying |= {pair["cost"]} if is_carried(shares["plan"]) else set()
        carrying |= {pair["less_cost"]} if is_carried(shares["less"]) else set()
        if carrying:
            costs.append(pair["cost"] / min(carrying))
        whole = [share for share in shares["plan"] if share >= CARRIED]
        missing = len(shares["plan"]) - len(whole) - len(mended)
        after.append(is_carried([*whole, *mended.values(), *[0.0] * missing]))
    ratio = f"{np.median(costs):.2f}" if costs else "unknown"
    return [
        f"Plans cost {ratio} times the least of the tried clusters that carries the rate, in the "
        f"median of {len(costs)} pairs. After one correction, {sum(after)} of {len(own)} pairs "
        f"({sum(after) / len(own):.0%}) are carried."
    ]


def covered(
    judged: Sequence[tuple[Row, Outcomes]],
    runs: Sequence[Row],
    eight: Sequence[Row],
    facts: Mapping[str, JobFacts],
) -> list[str]:
    """How often intervals hold, of all jobs and of those that were never used, and their width.

    Runs count that were offered more than predicted and tell whether the interval holds: one
    machine less that does not carry the rate, or carries more than the upper end, and eight
    TaskManagers.
    """
    pairs = {(pair["job"], pair["level"]): pair for pair, _ in judged if "errors" in pair}
    errors = {job: pair["errors"] for (job, _), pair in pairs.items()}
    ratios: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        pair, own = pairs.get((run["job"], run["level"])), facts[run["job"]]
        if pair is None or run["which"] != "less" or pair["less"]["predicted"] >= pair["rate"]:
            continue
        is_short = own.received(run["rates"], pair["rate"]) < CARRIED
        ratio = own.throughput(run["rates"]) / pair["less"]["predicted"]
        if own.is_steady(run["rates"]) and (is_short or ratio > pair["errors"]["high"]):
            ratios[run["job"]].append(ratio)
    for row in eight:
        if row["job"] in errors and facts[row["job"]].is_steady(row["rates"]):
            measured = facts[row["job"]].throughput(row["rates"])
            ratios[row["job"]].append(measured / row["predicted"])
    sentences = []
    for what, jobs in (
        ("jobs with runs that can tell", [*ratios]),
        ("that were never used to choose anything", [job for job in ratios if job in UNSEEN]),
    ):
        shares = [
            np.mean([errors[job]["low"] <= one <= errors[job]["high"] for one in ratios[job]])
            for job in jobs
        ]
        if shares:
            widths = [(errors[job]["high"] - errors[job]["low"]) / 2 for job in jobs]
            sentences.append(
                f"Of {len(jobs)} {what}, intervals hold {np.mean(shares):.0%} of the runs in the "
                f"mean; their median half-width is {np.median(widths):.0%}."
            )
    return sentences


NAMES = (*COMPARED, *UNSEEN)
FILE = "plans-that-hold.jsonl"


def kept(
    bench: Bench,
    about: Mapping[str, Any],
    measure: Callable[[], Mapping[str, Any]],
    told: Callable[[Row], str] = lambda row: "done",
) -> dict[str, Any] | None:
    """Line about something from the file, or measured now and appended; None if that fails."""
    for row in read_rows(bench.output):
        if key_of(row) == key_of(about):
            return row
    what = " ".join(str(value) for value in about.values() if value is not None)
    try:
        made = {**about, **measure()}
    except (FlinkError, ProblemError) as error:
        click.echo(f"{what}: {error}", err=True)
        return None
    append_row(bench.output, made)
    click.echo(f"{what}: {told(made)}")
    return made


def measure(bench: Bench, jobs: list[str], repeats: int) -> None:
    """Append what is missing in the file: profiles, runs on eight machines, and runs of plans."""
    done = {key_of(row) for row in read_rows(bench.output)}
    order = np.random.default_rng(SEED).permutation(len(jobs))
    ends = {job: {key_of(end_of(job, repeat)) for repeat in range(repeats)} for job in jobs}
    left = [jobs[i] for i in order if not ends[jobs[i]] <= done]
    click.echo(f"about {seconds_left(done, left, repeats) / 60:.0f} minutes are left")
    programs = bench.warm_up(left)
    for job in left:
        make = partial(profile_row, bench, job, programs[job])
        if (row := kept(bench, {"kind": "profile", "job": job}, make)) is not None:
            measure_job(bench, JobFacts.of(row), repeats)


def end_of(job: str, repeat: int) -> dict[str, Any]:
    """Line that says that a repeat of a job was measured, with all corrections."""
    return {"kind": "end", "job": job, "repeat": repeat}


def measure_job(bench: Bench, facts: JobFacts, repeats: int) -> None:
    """Append what is missing of a job that was profiled: runs on eight machines, and of plans."""
    measure_eight(bench, facts)
    job = facts.graph.name
    pairs = {level: planned(bench, facts, level) for level in LEVELS}
    for repeat in range(repeats):
        runs = [
            ({"kind": "run", "job": job, "level": level, "which": which, "repeat": repeat}, pair)
            for level, which in in_random_order(job, repeat)
            if (pair := pairs[level]) is not None
        ]
        seen = [carry_out(bench, facts, row, pair, pair[row["which"]]) for row, pair in runs]
        for (row, pair), first in zip(runs, seen, strict=True):
            if row["which"] == "plan" and first is not None:
                correct(bench, facts, row, pair, first)
        kept(bench, end_of(job, repeat), dict)


def carry_out(bench: Bench, facts: JobFacts, row: Row, pair: Row, where: Row) -> Row | None:
    """Run a job where it is placed; return what it received, from the file if it is there."""

    def share(rates: Rates) -> float:
        return facts.received(rates, pair["rate"])

    return kept(
        bench,
        row,
        lambda: bench.run(
            row["job"],
            pair["rate"],
            where,
            lambda rates: row["which"] == "plan" and share(rates) < CARRIED,
        ),
        lambda made: f"{share(made['rates']):.3f} of the rate",
    )


def correct(bench: Bench, facts: JobFacts, row: Row, pair: Row, first: Row) -> None:
    """Correct a plan that did not carry its rate in this repeat, and run it again."""
    if facts.received(first["rates"], pair["rate"]) >= CARRIED:
        return
    measured, limits = facts.throughput(first["rates"]), first.get("max_rate", {})
    correction = kept(
        bench,
        {**row, "kind": "correction", "which": None},
        lambda: corrected_pair(facts, pair, measured, limits),
    )
    if correction is not None:
        carry_out(bench, facts, {**row, "which": "corrected"}, pair, correction["plan"])


def measure_eight(bench: Bench, facts: JobFacts) -> None:
    """Run random placements on eight TaskManagers whose sources offer a little more than predicted.

    Not much more: a source that is held back less than the others would send in their place.
    """
    job = facts.graph.name
    rng = np.random.default_rng(sum(map(ord, job)))
    for number in range(PLACEMENTS):
        where = scattered(facts, rng)
        about = {"kind": "eight", "job": job, "placement": number}
        run = partial(bench.run, job, OFFERED * where["predicted"], where)
        kept(bench, about, lambda where=where, run=run: {**where, **run()})


def planned(bench: Bench, facts: JobFacts, level: float) -> dict[str, Any] | None:
    """Plan of a job, from the file or made now; None where there is none."""
    return kept(
        bench,
        {"kind": "pair", "job": facts.graph.name, "level": level},
        lambda: planned_pair(facts, level),
        lambda row: (
            f"{row['rate']:,.0f} tuples/s on {row['machines']}, predicted "
            f"{row['plan']['predicted'] / row['rate']:.3f} and "
            f"{row['less']['predicted'] / row['rate']:.3f} of it"
        ),
    )


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "docs")
@click.option("--jobs", default=",".join(NAMES), help="Such as riot-etl,word-count.")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
@click.option("--file", "name", default=FILE, show_default=True, help="File in assets/.")
@click.option("--table", is_flag=True, help="Measure nothing.")
def main(output: Path, jobs: str, repeats: int, name: str, table: bool) -> None:
    """Measure what is missing, then print what it amounts to."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    file = output / "assets" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    if not table:
        with tempfile.TemporaryDirectory() as folder, running_bench(Path(folder), file) as bench:
            measure(bench, jobs.split(","), repeats)
    click.echo(summary(read_rows(file)))


if __name__ == "__main__":
    main()
