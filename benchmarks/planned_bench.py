"""A cluster of limited TaskManagers on which plans are carried out, and profiles of its jobs."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from against_cells import JOBS as COMPARED
from constant_speed import ConstantSpeed
from flink_jars import build_jar, with_jars
from flink_jobs import JOBS as PROBED
from flink_jobs import SOURCES, UNSEEN
from limiting import SETTINGS, CpuWatch, core_of, limit, measured_devices, release, wait_compiled
from planned_facts import BANDWIDTH, CORES, MIPS, Rates, Row, key_groups, rates_of, rates_together
from planned_runs import DEVICES, EIGHTH

from streamplace.flink.advise.fixed_parallelism import planned_twice
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import Flink, LocalCluster, find_flink
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import JobProfile, profile
from streamplace.flink.measure.sampling import sample
from streamplace.flink.pin.apply import apply
from streamplace.flink.program.program import Program
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
    flink: Flink
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
    jar = folder / "jobs.jar"
    build_jar(flink, sorted(java for f in SOURCES for java in f.glob("*.java")), jar)
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
            yield Bench(cluster, speed, own, jar, output)
        finally:
            _tell_ended(cluster)


def _tell_ended(cluster: LocalCluster) -> None:
    """Show the ends of the logs of TaskManagers that have ended, which nothing asked for."""
    for name, process in cluster.processes.items():
        if process.poll() is not None:
            lines = (cluster.folder / name / "log").read_text(errors="replace").splitlines()
            click.echo("\n".join([f"{name} has ended:", *lines[-LAST_LINES:]]), err=True)
