"""Moves by the command that are disturbed, and what becomes of them when its advice is typed."""

import json
import multiprocessing
import os
import queue
import re
import shlex
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from command_lines import settings_file
from flink_proxy import FaultyProxy
from moved_jobs import write_spread

from streamplace.cli.main import main
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import JOB_MANAGER, LocalCluster
from streamplace.engines.flink.move.saving import stop
from streamplace.engines.flink.pin.apply import check_made
from streamplace.engines.flink.program.jars import SPENT
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest

RATE = "200"
MOST_COMMANDS = 4
"""That are typed in a row: the move, and what each of them advises."""
_ADVICE = re.compile(r"(streamplace flink (?:move|apply) .*?)\s*$", re.MULTILINE)


@dataclass
class Outcome:
    """What became of a move.

    Attributes
    ----------
    typed
        Commands that were typed after the first, as advised.
    status
        Of the last command.
    copies
        Jobs that run afterwards.
    lost, doubled
        Numbers that were told by nobody, and more than once.
    words
        What the commands said.
    """

    typed: int
    status: int
    copies: int
    lost: int
    doubled: int
    words: str


@dataclass
class Trial:
    """A job, and commands that move it.

    Attributes
    ----------
    proxy
        Between the commands and the cluster.
    url
        Address that the commands are given.
    process
        The command that runs.
    """

    cluster: LocalCluster
    flink: Flink
    jar: Path
    folder: Path
    proxy: FaultyProxy
    process: multiprocessing.process.BaseProcess | None = None
    words: list[str] = field(default_factory=list)
    restarts: queue.Queue[threading.Event] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        self.rest = Rest(self.cluster.url).patient(60.0, lambda _: None)
        for name in ("told", "commands", "saved"):
            (self.folder / name).mkdir(parents=True)
        self.arguments = (RATE, self._uri("told"), str(self.folder / "commands"))
        self.request = {
            "entryClass": "OnceJob",
            "programArgsList": [*self.arguments],
            "flinkConfiguration": {
                "execution.checkpointing.interval": "500 ms",
                "execution.checkpointing.dir": self._uri("checkpoints"),
            },
        }
        uploaded = self.rest.upload(self.jar)
        self.job = self.rest.post(f"/jars/{uploaded}/run", self.request)["jobid"]
        self.rest.remove_jar(uploaded)
        self.rest.wait_running(self.job, 120)
        self.tells_more()
        check_made(self.flink, Program(self.jar))  # what a process compiles, its children have

    @property
    def saved(self) -> str:
        """Folder of savepoints."""
        return self._uri("saved")

    def move(self, settle: float = 3) -> int:
        """Type the command that moves the job elsewhere; returns its status."""
        devices = self.cluster.devices
        step = int(time.time() * 1000) % 3
        placed = write_spread(self.folder / "p.json", self.rest, self.job, devices, step)
        return self.type(
            *("flink", "move", str(self.jar), "--placement", placed, "--rest", self.proxy.url),
            *("--entry-class", "OnceJob", "--savepoints", self.saved, *self._given(settle=settle)),
            *("--", *self.arguments),
        )

    def apply(self, savepoint: str) -> int:
        """Type the command that starts the job from a savepoint; returns its status."""
        return self.type(
            *("flink", "apply", str(self.jar), "--rest", self.proxy.url, *self._given()),
            *("--entry-class", "OnceJob", "--savepoint", savepoint),
            *("--placement", str(self.folder / "p.json"), "--", *self.arguments),
        )

    def type(self, *words: str) -> int:
        """Run a command in a process of its own; returns its status."""
        output = self.folder / "words"
        self.process = multiprocessing.get_context("fork").Process(
            target=_main, args=(words, output)
        )
        self.process.start()
        while self.process.exitcode is None:
            self.process.join(0.02)
            self._act()
        self.words.append(output.read_text())
        return int(self.process.exitcode or 0)

    def advised(self) -> list[str] | None:
        """Words of the command that was advised last."""
        matches = _ADVICE.findall(self.words[-1])
        with suppress(ValueError):  # it cannot be typed
            return shlex.split(matches[-1])[1:] if matches else None
        return None

    def followed(self, status: int) -> Outcome:
        """Type what is advised until nothing is, and count copies and numbers."""
        self.proxy.disturb(-1, "")
        typed = 0
        if status == -signal.SIGKILL:  # it could not advise anything; this is in the how-to
            status, typed = self.type(*self.resuming()), 1
        while status != 0 and typed < MOST_COMMANDS and (words := self.advised()) is not None:
            status, typed = self.type(*words), typed + 1
        copies = self.live()
        if copies:
            with suppress(FlinkError):
                self.rest.wait_running(copies[0], 60)
                self.tells_more()
        for job in copies:
            stop(self.rest, job, self._uri("end"))
        lost, doubled = self.count()
        return Outcome(typed, status, len(copies), lost, doubled, "\n".join(self.words))

    def resuming(self) -> list[str]:
        """The command that finishes a move whose command was killed."""
        saved = ("--entry-class", "OnceJob", "--savepoints", self.saved, *self._given(settle=3))
        return [
            *("flink", "move", str(self.jar), "--rest", self.proxy.url, *saved, "--resume"),
            *("--", *self.arguments),
        ]

    def _given(self, **fields: float) -> tuple[str, str]:
        return settings_file(self.folder, flink_home=str(self.flink.home), **fields)

    def kill(self) -> None:
        """Kill the command that runs."""
        if self.process is not None and self.process.pid is not None:
            os.kill(self.process.pid, signal.SIGKILL)

    def restart(self) -> None:
        """Kill the JobManager, which forgets everything, and start another.

        The thread that types does so, as the kernel ends a process with the thread that started it.
        """
        done = threading.Event()
        self.restarts.put(done)
        done.wait(60)

    def _act(self) -> None:
        """Restart the JobManager if that is wanted."""
        with suppress(queue.Empty):
            done = self.restarts.get_nowait()
            self.cluster.kill(JOB_MANAGER)
            self.cluster.start(JOB_MANAGER)
            done.set()

    def live(self) -> list[str]:
        """Jobs that have not ended."""
        return self.rest.live_jobs()

    def tells_more(self) -> None:
        """Wait until more numbers are told for good."""
        before, deadline = len(self.numbers()), time.monotonic() + 90
        while len(self.numbers()) <= before:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def numbers(self) -> list[int]:
        """What was told for good."""
        files = (path for path in (self.folder / "told").rglob("*") if path.name[0] not in "._")
        texts = (path.read_text() for path in files if path.is_file())
        return [int(line) for text in texts for line in text.splitlines()]

    def count(self) -> tuple[int, int]:
        """How many numbers are missing below the largest, and how many were told again."""
        seen = Counter(self.numbers())
        lost = max(seen) + 1 - len(seen) if seen else 0
        return lost, sum(seen.values()) - len(seen)

    def end(self) -> None:
        """Leave no job on the cluster."""
        for job in self.live():
            with suppress(FlinkError):
                self.rest.cancel(job)

    def wait(self, job: str, states: Sequence[str]) -> None:
        """Wait until a job is there, in one of these states."""
        deadline = time.monotonic() + 120
        while self.rest.state(job) not in states:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def _uri(self, name: str) -> str:
        return (self.folder / name).as_uri()


def label(request: str, body: bytes) -> str:
    """What a request changes, in words; empty for one that only asks.

    >>> label("DELETE /jars/1_a.jar", b""), label("GET /jobs", b"")
    ('remove a jar', '')
    """
    method, _, path = request.partition(" ")
    if path == "/jars/upload":
        return "upload a jar"
    if method == "DELETE":
        return "remove a jar"
    if path.endswith("/stop"):
        return "stop"
    if path.endswith("/run"):
        document = json.loads(body)
        if document["entryClass"] == SPENT:
            return "spend"
        return "start" if "jobId" in document else "check"
    return f"{method} {path.partition('?')[0]}" if method not in ("GET",) else ""


def nth(wanted: str, number: int = 1) -> Callable[[str, bytes], bool]:
    """Whether a request is the one of this number with a label."""
    seen = Counter[str]()

    def is_meant(request: str, body: bytes) -> bool:
        name = label(request, body)
        seen[name] += 1
        return name == wanted and seen[name] == number

    return is_meant


def _main(words: Sequence[str], output: Path) -> None:
    """Run a command with its words in a file."""
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        sys.argv = ["streamplace", *words]
        try:
            main(words)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
