"""Runs of one cell on one cluster: starting its job in an arm's way, and measuring it."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from against_cells import DEVICES, KINDS, PARALLELISM, SLOTS_PER_DEVICE, Cell
from flink_jobs import streamplace, submit
from kafka import Broker, broker
from limited import SETTINGS, limit, measured_devices, release, wait_compiled

from streamplace.errors import StreamplaceError
from streamplace.flink.local.session import Flink, LocalCluster
from streamplace.flink.measure.profile import profile
from streamplace.flink.measure.sampling import sample, sent_by
from streamplace.flink.rest.client import FlinkError
from streamplace.flink.rest.plan import layout_of, read_plan

SETTLE, WINDOW, MOST_WINDOWS, STEADY = 2.0, 3.0, 6, 0.05
START_SECONDS, MOVE_SECONDS = 100.0, 600.0
MODE = "taskmanager.load-balance.mode"
MOST_TOLD = 4000
BACKLOG, KAFKA_WINDOW = 60_000_000, 6.0
"""Records of each topic, more than all runs read; seconds: lag is reported about once in one."""
KAFKA_SETTINGS = {
    "execution.checkpointing.interval": "10 s",  # at which sinks commit
    # Windows of partitions that are read ahead of others wait in the heap.
    "taskmanager.memory.task.heap.size": "768m",
}
INPUTS, OUTPUTS = ("orders", "payments"), ("windows", "paid", "large", "totals")
Layout = dict[str, list[str]]


@dataclass(frozen=True)
class Session:
    """A running cluster of one mode of load balancing, for one cell."""

    cluster: LocalCluster
    jar: Path  # of all jobs
    cell: Cell
    folder: Path  # where the command leaves savepoints
    broker: Broker | None = None  # what the job reads; None if it makes its input itself

    @property
    def arguments(self) -> list[str]:
        """Arguments of the cell's job."""
        first = [] if self.broker is None else [self.broker.address]
        return [*first, *self.cell.arguments()]

    def start(self, *, is_first: bool = False) -> str:
        """Start the job, placed by Flink; returns its id when warm.

        It has no quotas meanwhile. One that reads what waits in Kafka has them as soon as it runs,
        but for the first time: what waits has to last.
        """
        release(self.cluster)
        uploaded = self.cluster.rest.upload(self.jar)
        job = submit(self.cluster.rest, uploaded, self.cell.entry, self.arguments, PARALLELISM)
        self.cluster.rest.wait_running(job, START_SECONDS)
        if self.broker is not None and not is_first:
            self.hold()
        wait_compiled(self.cluster)
        return job

    def hold(self) -> None:
        """Put the quotas into force."""
        limit(self.cluster, KINDS[self.cell.kind].quotas)

    def clear(self) -> None:
        """End all jobs; the TaskManagers are free again."""
        release(self.cluster)
        for job in self.cluster.rest.live_jobs():
            self.cluster.rest.cancel(job)

    def layout(self, job: str) -> Layout:
        """Operator → the TaskManager of each of its subtasks."""
        rest = self.cluster.rest
        return {name: [*own] for name, own in layout_of(rest, job, rest.job(job)).items()}

    def measured(self, job: str) -> dict[str, Any]:
        """Rate of a job's source under the quotas, how steady it is, and who took the CPU."""
        self.hold()
        time.sleep(SETTLE)
        processes = {name: one.pid for name, one in self.cluster.processes.items()}
        if self.broker is not None and (process := self.broker.nodes[0].process) is not None:
            processes["broker"] = process.pid
        before, rates, blocked = _Usage.now(processes), list[float](), 0.0
        for _ in range(MOST_WINDOWS):
            if (window := self._window(job)) is not None:
                emitted, blocked = window
                rates.append(emitted)
            elif rates:  # before, the lag of a subtask may not be known yet
                break
            if are_steady(rates):
                break
        if not rates:
            raise FlinkError("what waited for the job is read")
        others, used = _Usage.now(processes).since(before)
        return {
            "rate": round(sum(rates[-2:]) / len(rates[-2:]), 1),
            "rates": [round(rate, 1) for rate in rates],
            "steady": are_steady(rates),
            "blocked": round(blocked, 3),
            "others": round(others, 3),
            "used": {name: round(cores, 3) for name, cores in used.items()},
        }

    def _window(self, job: str) -> tuple[float, float] | None:
        """Tuples/s that sources emit, and the largest share of back-pressure.

        None if nothing waits in Kafka any more for a subtask of a source, which read more before.
        """
        if self.broker is not None:
            flow = profile(self.cluster.rest, job, KAFKA_WINDOW).flow
            flows = flow.sources.values()
            subtasks = [one for source in flows for one in source.subtasks]
            waits = bool(flow.pending) and all(one.is_draining for one in subtasks)
            return (flow.rate, max(one.back_pressured for one in flows)) if waits else None
        _, tasks, edges = read_plan(self.cluster.rest, job)
        fed = {edge.target for edge in edges}
        sources = [task for task in tasks if task.id not in fed]
        metrics = {task.id: sent_by(task.thread_name.split(" -> ")[0]) for task in sources}
        further = {task: [metric] for task, metric in metrics.items()}
        seen = sample(self.cluster.rest, job, list(metrics), WINDOW, further)
        emitted, blocked = 0.0, 0.0
        for task in sources:
            one = seen[task.id]
            emitted += one.rates.get(metrics[task.id], one.records_out)
            blocked = max(blocked, one.back_pressured / task.parallelism)
        return emitted, blocked

    def placed_by_flink(self) -> dict[str, Any]:
        """Measure the job where Flink places it."""
        job = self.start()
        return {"layout": self.layout(job)} | self.measured(job)

    def moved(self) -> dict[str, Any]:
        """Measure the job after the command that a user types."""
        self.start()
        self.hold()
        told = self._command()
        running = self.cluster.rest.live_jobs()
        if len(running) != 1:
            raise FlinkError(f"{len(running)} jobs run after the command: {told['told'][-500:]}")
        self.cluster.rest.wait_running(running[0], START_SECONDS)  # it may be restarting
        return told | {"layout": self.layout(running[0])} | self.measured(running[0])

    def _command(self) -> dict[str, Any]:
        """Run ``streamplace flink move`` as a user does; what it says, and how long it takes."""
        options = ["--rest", self.cluster.url, "--savepoints", self.folder.as_uri()]
        options += ["--entry-class", self.cell.entry, "-p", str(PARALLELISM)]
        if "scarce network" in self.cell.kind:
            cards = self.folder / "cards.toml"
            cards.write_text(f"nic = '{KINDS[self.cell.kind].bandwidth_bps / 1e6:g} Mbps'\n")
            options += ["--settings", str(cards)]
        began = time.monotonic()
        try:
            done = streamplace(
                *("flink", "move", "--yes", "--json", *options, self.jar, "--", *self.arguments),
                timeout=MOVE_SECONDS,
                XDG_STATE_HOME=str(self.folder),  # without the ledger of other measurements
                FLINK_HOME=str(self.cluster.flink.home),
            )
            code, out, told = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            code, out, told = None, "", f"the command did not end within {MOVE_SECONDS:g} s"
        return {
            "command_seconds": round(time.monotonic() - began, 1),
            "code": code,
            "answer": _document(out),
            "told": told[-MOST_TOLD:],
        }


@contextmanager
def session(
    flink: Flink,
    jar: Path,
    cell: Cell,
    mode: str,
    folder: Path,
    number: int = len(DEVICES),
    backlog: int = BACKLOG,
) -> Iterator[Session]:
    """Start a fresh cluster for a cell while the block runs; its job has run there once.

    ``number``: TaskManagers of the kind that there are.
    ``backlog``: records in each topic of Kafka, if the cell reads any.
    """
    kind = KINDS[cell.kind]
    settings = {key: value for key, value in SETTINGS.items() if "chaining" not in key}
    if kind.partitions:
        settings |= KAFKA_SETTINGS
    settings |= {
        MODE: mode,
        "taskmanager.numberOfTaskSlots": SLOTS_PER_DEVICE,
        # The JobManager's memory, the default, holds states of 5 MB.
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": folder.as_uri(),
    }
    with ExitStack() as stack:
        cluster = stack.enter_context(
            measured_devices(
                flink,
                DEVICES[:number],
                cores=max(kind.cores),
                bandwidth_bps=kind.bandwidth_bps,
                settings=settings,
            )
        )
        fed = None
        if kind.partitions:
            inputs = INPUTS if cell.job == "JoinJob" else INPUTS[:1]
            fed = stack.enter_context(_fed(cluster, jar, kind.partitions, inputs, backlog))
        made = Session(cluster, jar, cell, folder, fed)
        with suppress(StreamplaceError):  # it will fail again when it is measured, which counts
            made.start(is_first=True)
        made.clear()
        yield made


@contextmanager
def _fed(
    cluster: LocalCluster, jar: Path, partitions: str, inputs: Sequence[str], backlog: int
) -> Iterator[Broker]:
    """Run a broker beside a cluster, with records that wait in the topics of a job."""
    host = str(cluster.settings["jobmanager.rpc.address"])  # that TaskManagers reach
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder), jar, host) as made:
        made.create(*INPUTS, *OUTPUTS, partitions=len(partitions.split(":")))
        for topic in inputs:
            made.feed(topic, backlog, shares=partitions, keys=1000, end=False)
        yield made


@dataclass(frozen=True)
class _Usage:
    """CPU seconds so far: of the whole machine, and of some processes."""

    moment: float
    machine: float
    own: dict[str, float]

    @classmethod
    def now(cls, processes: Mapping[str, int]) -> "_Usage":
        user, nice, system, *rest = map(int, Path("/proc/stat").read_text().split()[1:9])
        ticks, pids = os.sysconf("SC_CLK_TCK"), {**processes, "benchmark": os.getpid()}
        own = {}
        for name, pid in pids.items():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            own[name] = (int(fields[11]) + int(fields[12])) / ticks
        return cls(time.monotonic(), (user + nice + system + rest[4]) / ticks, own)

    def since(self, before: "_Usage") -> tuple[float, dict[str, float]]:
        """Cores that other processes took since then, and each of these."""
        seconds = self.moment - before.moment
        used = {name: (self.own[name] - before.own[name]) / seconds for name in self.own}
        machine = (self.machine - before.machine) / seconds
        return max(0.0, machine - sum(used.values())), used


def are_steady(rates: Sequence[float]) -> bool:
    """Whether the last two windows agree; a job that has not begun to emit is not steady.

    >>> are_steady([0.0, 0.0]), are_steady([100.0, 96.0]), are_steady([100.0])
    (False, True, False)
    """
    if len(rates) < 2 or not rates[-2]:
        return False
    return abs(rates[-1] - rates[-2]) <= STEADY * rates[-2]


def _document(text: str) -> Any:
    """Parse the output of a command as JSON; return the end of its text if that fails."""
    try:
        return json.loads(text)
    except ValueError:
        return text[-MOST_TOLD:]
