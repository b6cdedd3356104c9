"""A watched day on a real Flink: a job whose rate, keys and costs change, and that loses a machine.

    python benchmarks/watch_on_flink.py
    python benchmarks/watch_on_flink.py --page

See docs/results/evidence.md. A line of ``assets/watch-on-flink.jsonl`` is appended after every
arm, so that a stopped command goes on; ``--page`` measures nothing and writes the page's
results. Needs Linux with cgroups of version 1, root, a JDK and an idle computer.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
from flink_jobs import ROOT, command, jobs_jar, streamplace, submit
from limited import SETTINGS, limit, measured_devices, release, wait_compiled
from studies import append_row, read_rows
from watched_day import DAY, LAG_SECONDS, Moment, Move, Phases, draw, page_text

from streamplace.errors import StreamplaceError
from streamplace.flink.local.session import Flink, LocalCluster, find_flink
from streamplace.flink.rest.client import FlinkError
from streamplace.flink.rest.plan import layout_of

DEVICES = tuple(f"tm-{i}" for i in range(4))
CORES, BANDWIDTH, PARALLELISM = 0.18, 200e6, 4
SATURATED = 1e6
"""Tuples/s that no layout carries."""
CAPACITY_SECONDS, WARM_UP_SECONDS, DRAIN_SECONDS, POLL_SECONDS = 30.0, 40.0, 60.0, 2.0
ON_THE_WAY_SECONDS = 20.0
"""Time until tuples that were read at the end are counted, and Flink tells so."""
ARMS: Mapping[str, Sequence[str] | None] = {
    "Flink alone": None,
    "watch": ("--policy", "work-function"),
}
"""Arm → options of the watch; None is without one."""
WATCH = ("--apply", "--every", "15", "--settings")
SETTINGS_FILE = f"least-time = 30\npatience = 5\nmove-price = 30\nlag = {LAG_SECONDS:g}\n"
"""Options of every watch: a day of ten minutes is 144 times as fast as a real one."""
INTERRUPTED = re.compile(r"interrupted for ([\d.]+) s")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Site:
    """A cluster, and what its jobs are made of."""

    cluster: LocalCluster
    jar: Path
    folder: Path  # for plans, checkpoints, savepoints and the store of the watch

    @property
    def store(self) -> dict[str, str]:
        """Variable of the folder in which the watch keeps its decisions."""
        return {"XDG_STATE_HOME": str(self.folder / "state")}

    def start(self, plan: str, beginning: float) -> tuple[str, list[str]]:
        """Start the job; return its id and its arguments."""
        file = self.folder / f"plan-{time.monotonic_ns()}.txt"
        file.write_text(plan)
        arguments = [str(file), f"{beginning * 1000:.0f}"]
        uploaded = self.cluster.rest.upload(self.jar)
        job = submit(self.cluster.rest, uploaded, "Day", arguments, PARALLELISM)
        self.cluster.rest.wait_running(job, 100)
        return job, arguments

    def warm_up(self) -> None:
        """Let the TaskManagers compile the job, without limits."""
        release(self.cluster)
        job, _ = self.start(f"0 {SATURATED:g} 0.2 1", time.time())
        time.sleep(WARM_UP_SECONDS)
        wait_compiled(self.cluster)
        self.cluster.rest.cancel(job)

    def capacity(self) -> float:
        """Tuples/s that four TaskManagers carry under Flink's mode SLOTS."""
        self.warm_up()
        job, _ = self.start(f"0 {SATURATED:g} 0 1", time.time())
        limit(self.cluster, dict.fromkeys(DEVICES, CORES))
        while not self.read_by(job):
            time.sleep(POLL_SECONDS)
        time.sleep(10)
        before, began = self.read_by(job), time.monotonic()
        time.sleep(CAPACITY_SECONDS)
        after = self.read_by(job)
        found = (after - before) / (time.monotonic() - began)
        self.cluster.rest.cancel(job)
        return found

    def read_by(self, job: str) -> float:
        """Tuples that a job has read; 0 while Flink does not tell."""
        with suppress(StopIteration, ValueError):
            return self.counted(job, "log", "read")
        return 0.0

    def counted(self, job: str, task: str, metric: str) -> float:
        """Sum of a metric of the job over the subtasks of a task."""
        vertex = next(one for one in self.cluster.rest.job(job)["vertices"] if task in one["name"])
        path = f"/jobs/{job}/vertices/{vertex['id']}/subtasks/metrics"
        name = next(
            row["id"]
            for row in self.cluster.rest.get(path)
            if row["id"].endswith(f"{task}.{metric}")
        )
        (row,) = self.cluster.rest.get(f"{path}?get={quote(name, safe='')}&agg=sum")
        return float(row["sum"])

    def moment(self, second: float, known: float, phases: Phases) -> Moment:
        """The job now; what its source has read stays the same while it does not run."""
        read, machines = known, 0
        with suppress(StreamplaceError, StopIteration, ValueError, KeyError):
            (job,) = self.cluster.rest.live_jobs()
            layout = layout_of(self.cluster.rest, job, self.cluster.rest.running_job(job))
            read = self.counted(job, "log", "read")
            machines = len({device for own in layout.values() for device in own})
        return Moment(second, read, max(0.0, phases.arrived(second) - read), machines)


def run_arm(site: Site, day: Phases, options: Sequence[str] | None) -> dict[str, Any]:
    """Pass a day."""
    site.warm_up()
    beginning = time.time() + 15
    plan = day.text()
    job, arguments = site.start(plan, beginning)
    limit(site.cluster, dict.fromkeys(DEVICES, CORES))
    moments: list[Moment] = []
    killed = ""
    with _watching(site, job, arguments, options):
        while (second := time.time() - beginning) < day.end + DRAIN_SECONDS:
            if 0 <= day.loss <= second and not killed:
                killed = _kill_one(site)
            known = moments[-1].read if moments else 0.0
            moments.append(site.moment(second, known, day))
            if second > day.end and not moments[-1].waits and moments[-1].machines:
                break
            time.sleep(POLL_SECONDS)
    history = _history(site) if options is not None else []
    time.sleep(ON_THE_WAY_SECONDS)
    (last,) = site.cluster.rest.live_jobs() or ("",)
    return {
        "moments": [[round(value, 1) for value in one] for one in moments],
        "moves": [[*one] for one in _moves(history, beginning)],
        "decisions": history,
        "killed": killed,
        "arrived": round(day.arrived(day.end)),
        "read": _settled(site, last, "log", "read"),
        "counted": _settled(site, last, "count", "counted"),
    }


def _kill_one(site: Site) -> str:
    """Kill a TaskManager that the job uses, the last one by name; return it."""
    (job,) = site.cluster.rest.live_jobs()
    layout = layout_of(site.cluster.rest, job, site.cluster.rest.running_job(job))
    device = max(device for own in layout.values() for device in own)
    site.cluster.processes[device].send_signal(signal.SIGKILL)
    return device


def _settled(site: Site, job: str, task: str, metric: str) -> float | None:
    with suppress(FlinkError, StopIteration):
        return site.counted(job, task, metric)
    return None


@contextmanager
def _watching(
    site: Site, job: str, arguments: Sequence[str], options: Sequence[str] | None
) -> Iterator[None]:
    """Watch the job by the command that a user types, while the block runs."""
    if options is None:
        yield
        return
    (site.folder / "watch.toml").write_text(SETTINGS_FILE)
    words = ["flink", "watch", *WATCH, site.folder / "watch.toml", *options]
    words += ["--rest", site.cluster.url, "--job", job, "--entry-class", "Day"]
    words += ["-p", PARALLELISM, "--savepoints", (site.folder / "saved").as_uri()]
    words += [site.jar, "--", *arguments]
    environment = {**os.environ, **site.store}
    with (site.folder / "watch.log").open("wb") as told:
        process = subprocess.Popen(command(*words), stdout=told, stderr=told, env=environment)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _history(site: Site) -> list[dict[str, Any]]:
    """Decisions of the watch."""
    done = streamplace("flink", "history", "--json", **site.store)
    watches = json.loads(done.stdout or "{}").get("watches", [])
    return [decision for watch in watches for decision in watch["decisions"]]


def _moves(decisions: Sequence[Row], beginning: float) -> list[Move]:
    found = []
    for one in decisions:
        outage = INTERRUPTED.search(str(one.get("outcome", "")))
        second = datetime.fromisoformat(one["at"]).timestamp() - beginning
        found.append(Move(round(second, 1), one["kind"], float(outage[1]) if outage else None))
    return found


@contextmanager
def opened(flink: Flink, jar: Path, folder: Path) -> Iterator[Site]:
    """Start a cluster while the block runs."""
    settings = {key: value for key, value in SETTINGS.items() if "chaining" not in key}
    settings |= {
        "taskmanager.load-balance.mode": "SLOTS",
        "execution.checkpointing.interval": "3 s",
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 1000,
        "restart-strategy.fixed-delay.delay": "1 s",
        "heartbeat.timeout": 10_000,
        "heartbeat.interval": 2_000,
        "web.timeout": "10 s",  # after the loss, Flink tells no metrics for so long
    }
    (folder / "saved").mkdir(parents=True)
    with measured_devices(
        flink, DEVICES, cores=CORES, bandwidth_bps=BANDWIDTH, settings=settings
    ) as cluster:
        yield Site(cluster, jar, folder)


@click.command()
@click.option("--seconds", type=click.FloatRange(30), default=75.0, show_default=True)
@click.option("--arms", help=f"Of {', '.join(ARMS)}.")
@click.option("--page", is_flag=True, help="Measure nothing, print all tables and draw the day.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "docs")
def main(seconds: float, arms: str | None, page: bool, output: Path) -> None:
    """Measure the arms that are missing, or print the tables."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    file = output / "assets" / "watch-on-flink.jsonl"
    if page:
        click.echo(page_text(read_rows(file)))
        draw(read_rows(file), file.with_suffix(".svg"))
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    flink = find_flink(None)
    with tempfile.TemporaryDirectory() as folder:
        jar = jobs_jar(flink, Path(folder) / "jobs.jar")
        rows = read_rows(file)
        capacity = next((row["capacity"] for row in rows), None)
        for number, (arm, options) in enumerate(ARMS.items()):
            is_wanted = not arms or arm in arms.split(",")
            if not is_wanted or any(row.get("arm") == arm for row in rows):
                continue
            click.echo(f"{arm}: about {(len(DAY) * seconds + 150) / 60:.0f} minutes")
            with opened(flink, jar, Path(folder) / f"arm-{number}") as site:
                if capacity is None:
                    capacity = site.capacity()
                    append_row(file, {"capacity": round(capacity, 1)})
                day = Phases(DAY, seconds, capacity)
                found = run_arm(site, day, options)
                told = (site.folder / "watch.log").read_text() if options is not None else ""
            phases = [{field: getattr(one, field) for field in one.__slots__} for one in DAY]
            facts = {"arm": arm, "seconds": seconds, "capacity": capacity, "phases": phases}
            append_row(file, facts | found | {"told": told[-20_000:]})


if __name__ == "__main__":
    main()
