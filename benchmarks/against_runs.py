"""Runs of one cell on one cluster: starting its job in an arm's way, and measuring it."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from against_cells import (
    DEVICES,
    FLINK,
    JOBS,
    KINDS,
    PARALLELISM,
    RANDOM,
    SLOTS_PER_DEVICE,
    STREAMPLACE,
    Cell,
    Row,
)
from limiting import SETTINGS, limit, measured_devices, release, wait_compiled

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.measure.sampling import BACK_PRESSURED, sample, sent_by
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.engines.flink.rest.plan import read_plan
from streamplace.engines.flink.rest.tasks import read_vertices
from streamplace.errors import StreamplaceError

SETTLE, WINDOW, MOST_WINDOWS, STEADY = 2.0, 3.0, 6, 0.05
START_SECONDS, MOVE_SECONDS = 100.0, 300.0
SUSTAINED, STEPS, LOWEST, HIGHEST = 0.98, 4, 0.5, 1.1
"""Share of an offered rate that is emitted, and bisection between parts of the saturated rate."""
GROWING = 0.05
"""Share of the time that back-pressure may take more in the second half of a window."""
MODE = "taskmanager.load-balance.mode"
ADVISED = re.compile(rf"{re.escape(MODE)}\W+({'|'.join(FLINK)})\b")
MOST_TOLD = 4000
Found = dict[str, list[str]]


@dataclass(frozen=True)
class Session:
    """A running cluster of one mode of load balancing, for one cell.

    Attributes
    ----------
    jar
        Holds all jobs.
    folder
        Where the command leaves savepoints.
    chains
        Operators that Flink runs as one task, with their parallelism.
    """

    cluster: LocalCluster
    flink: Flink
    jar: Path
    cell: Cell
    folder: Path
    chains: Sequence[tuple[Sequence[str], int]] = ()

    @property
    def entry(self) -> str:
        """Main class of the cell's job."""
        return JOBS[self.cell.job].entry

    def start(self, rate: float | None, vectors: Mapping[str, Sequence[str]] | None) -> str:
        """Start the job without quotas, placed by Flink or by pins; returns its id when warm."""
        release(self.cluster)
        arguments = self.cell.arguments(rate)
        if vectors is None:
            uploaded = self.cluster.rest.upload(self.jar)
            request: dict[str, Any] = {"entryClass": self.entry, "programArgsList": arguments}
            request["parallelism"] = PARALLELISM
            job = str(
                self.cluster.rest.post(f"/jars/{quote(uploaded, safe='')}/run", request)["jobid"]
            )
            self.cluster.rest.wait_running(job, START_SECONDS)
        else:
            program = Program(self.jar, self.entry, arguments, parallelism=PARALLELISM)
            job = apply(
                self.cluster.rest, self.flink, program, Layout(vectors), seconds=START_SECONDS
            )
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

    def layout(self, job: str) -> Found:
        """Operator → the TaskManager of each of its subtasks."""
        found: Found = {}
        for vertex in read_vertices(self.cluster.rest, job, self.cluster.rest.job(job)):
            answer = self.cluster.rest.get(
                f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex.id)}"
            )
            rows = sorted(answer["subtasks"], key=lambda row: row["subtask"])
            devices = [str(row.get("taskmanager-id")) for row in rows]
            found |= {operator: devices for operator in vertex.operators}
        return found

    def scattered(self, arm: str) -> Found:
        """Layout of a random arm: each subtask of what Flink chains on any TaskManager."""
        rng, found = self.cell.rng(arm), Found()
        for operators, parallelism in self.chains:
            drawn = [DEVICES[i] for i in rng.integers(len(DEVICES), size=parallelism)]
            found |= {operator: drawn for operator in operators}
        return found

    def measured(self, job: str) -> dict[str, Any]:
        """Rate of a job's source under the quotas, how steady it is, and who took the CPU."""
        self.hold()
        time.sleep(SETTLE)
        processes = {name: self.cluster.processes[name].pid for name in self.cluster.processes}
        before, rates, grows, blocked = _Usage.now(processes), list[float](), False, 0.0
        while len(rates) < MOST_WINDOWS and not are_steady(rates):
            emitted, blocked, grows = self._window(job)
            rates.append(emitted)
        others, used = _Usage.now(processes).since(before)
        return {
            "rate": round(sum(rates[-2:]) / len(rates[-2:]), 1),
            "rates": [round(rate, 1) for rate in rates],
            "steady": are_steady(rates),
            "blocked": round(blocked, 3),
            "grows": grows,
            "others": round(others, 3),
            "used": {name: round(cores, 3) for name, cores in used.items()},
        }

    def _window(self, job: str) -> tuple[float, float, bool]:
        """Tuples/s that sources emit, the largest share of back-pressure, and whether it grows."""
        _, tasks, edges = read_plan(self.cluster.rest, job)
        fed = {edge.target for edge in edges}
        sources = [task for task in tasks if task.id not in fed]
        metrics = {task.id: sent_by(task.thread_name.split(" -> ")[0]) for task in sources}
        further = {task: [metric] for task, metric in metrics.items()}
        seen = sample(self.cluster.rest, job, list(metrics), WINDOW, further)
        emitted, blocked, grows = 0.0, 0.0, False
        for task in sources:
            one = seen[task.id]
            emitted += one.rates.get(metrics[task.id], one.records_out)
            blocked = max(blocked, one.back_pressured / task.parallelism)
            first, second = one.halves(BACK_PRESSURED) or (0.0, 0.0)
            grows = grows or second - first > GROWING * 1000 * task.parallelism
        return emitted, blocked, grows

    def run(self, arm: str, known: Found | None, advised: bool) -> dict[str, Any]:
        """Measure an arm.

        Parameters
        ----------
        known
            The layout to re-create, if the arm is placed by one that is known.
        advised
            Whether streamplace has advised this cluster's mode of load balancing.
        """
        if arm == STREAMPLACE and not advised:
            return self._improved()
        if arm.startswith(RANDOM):
            known = self.scattered(arm)
        job = self.start(None, known)
        return {"layout": self.layout(job), "pinned": known is not None} | self.measured(job)

    def _improved(self) -> dict[str, Any]:
        """Measure the job after the command that a user types, or say which mode it advises."""
        before = self.start(None, None)
        self.hold()
        told = self._command()
        running = self.cluster.rest.live_jobs()
        told["moved"] = before not in running
        if not running:
            raise FlinkError(f"no job runs after the command: {told['told'][-500:]}")
        if not told["moved"] and told["advised"] not in (None, "NONE"):
            return told
        release(self.cluster)
        wait_compiled(self.cluster)
        found = {"layout": self.layout(running[0]), "pinned": told["moved"], "advised": None}
        return told | found | self.measured(running[0])

    def _command(self) -> dict[str, Any]:
        """Run ``streamplace flink move`` as a user does; what it says, and how long it takes."""
        command = [sys.executable, "-m", "streamplace", "flink", "move"]
        options = ["--rest", self.cluster.url, "--savepoints", self.folder.as_uri()]
        options += ["--entry-class", self.entry, "-p", str(PARALLELISM), "--json"]
        if self.cell.kind == "scarce network":
            cards = self.folder / "cards.toml"
            cards.write_text(f"nic = '{KINDS[self.cell.kind].bandwidth_bps / 1e6:g} Mbps'\n")
            options += ["--settings", str(cards)]
        began = time.monotonic()
        try:
            done = subprocess.run(
                [*command, *options, str(self.jar), "--", *self.cell.arguments()],
                capture_output=True,
                text=True,
                timeout=MOVE_SECONDS,
                env={**os.environ, "XDG_STATE_HOME": str(self.folder / "state")},
            )
            code, out, told = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            code, out, told = None, "", f"the command did not end within {MOVE_SECONDS:g} s"
        answer = _document(out)
        advised = ADVISED.search(told)  # the answer on stdout lists the lines of all layouts
        return {
            "command": options,
            "command_seconds": round(time.monotonic() - began, 1),
            "code": code,
            "answer": answer,
            "ledger": [_document(line) for line in self._ledger()],
            "told": told[-MOST_TOLD:],
            "advised": advised[1] if advised else None,
            "predicted": predicted(answer),
        }

    def _ledger(self) -> list[str]:
        lines = [path.read_text().splitlines() for path in self.folder.rglob("*.jsonl")]
        return [line for own in lines for line in own]

    def sustained(self, row: Row) -> dict[str, Any]:
        """Largest rate that an arm sustains where a run of it has placed the job, by bisection."""
        low, high, tried = LOWEST * row["rate"], HIGHEST * row["rate"], list[tuple[float, float]]()
        for _ in range(STEPS):
            rate = (low * high) ** 0.5
            job = self.start(rate, row["layout"] if row["pinned"] else None)
            seen = self.measured(job)
            self.clear()
            tried.append((round(rate, 1), seen["rate"]))
            is_carried = seen["rate"] >= SUSTAINED * rate and not seen["grows"]
            low, high = (rate, high) if is_carried else (low, rate)
        return {"rate": round(low, 1), "tried": tried}


@contextmanager
def session(flink: Flink, jar: Path, cell: Cell, mode: str, folder: Path) -> Iterator[Session]:
    """Start a fresh cluster for a cell while the block runs; its job has run there once."""
    kind = KINDS[cell.kind]
    settings = {key: value for key, value in SETTINGS.items() if "chaining" not in key}
    settings |= {
        MODE: mode,
        "taskmanager.numberOfTaskSlots": SLOTS_PER_DEVICE,
    }
    with measured_devices(
        flink, DEVICES, cores=max(kind.cores), bandwidth_bps=kind.bandwidth_bps, settings=settings
    ) as cluster:
        made = Session(cluster, flink, jar, cell, folder)
        with suppress(StreamplaceError):  # it will fail again when it is measured, which counts
            job = made.start(None, None)
            vertices = read_vertices(made.cluster.rest, job, made.cluster.rest.job(job))
            made = replace(made, chains=[(v.operators, v.parallelism) for v in vertices])
        made.clear()
        yield made


def predicted(answer: object) -> float | None:
    """The rate that the answer of a command predicts; None where it tells none.

    >>> predicted({"job": "a", "there": {"predicted": 2.5}}), predicted({"job": "a"})
    (2.5, None)
    """
    if isinstance(answer, list):
        answer = dict(enumerate(answer))
    if not isinstance(answer, dict):
        return None
    own = answer.get("predicted")
    if isinstance(own, int | float) and not isinstance(own, bool):
        return float(own)
    found = (predicted(value) for value in answer.values())
    return next((value for value in found if value is not None), None)


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
