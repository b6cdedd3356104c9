"""A job that is watched: its cluster, what happens to it look by look, and what moves it."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_flink import KEPT, FakeFlink, healthy, job, jobs

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.move.transaction import FlinkMoved
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.engines.flink.watch import watch as watching
from streamplace.engines.flink.watch.acting import Spares, WatchMover
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.watch import Watch
from streamplace.io.store import Store
from streamplace.io.watches import read_records

OLD = "a" * 32
NEW = successor(OLD)
NEXT = successor(NEW)
SAVED = "s3://b/chk-7"
CHECKPOINTED = {
    "counts": {"completed": 7},
    "latest": {"completed": {"id": 7, "external_path": SAVED}},
}
"""Checkpoints of a job that has completed some."""
DEVICES = ("dev-0", "dev-1", "dev-2", "dev-3")
HEALTHY = healthy(*DEVICES)
PLACED = Layout.from_json({"map": ["dev-0", "dev-1", "dev-1"], "sink": "dev-1"})


class Killed(BaseException):
    """The watch is killed: nothing after this happens."""


def outcome(store: Store) -> tuple[str, str]:
    """State of the only decision, and the id of the job that it left."""
    (decision,) = read_records(store)[0].decisions
    return decision.state, decision.after


def lacking(answers: Mapping[str, Any], *devices: str) -> dict[str, Any]:
    """Answer of a cluster that has lost some of its TaskManagers."""
    rows = answers["GET /taskmanagers"]["taskmanagers"]
    return {"taskmanagers": [row for row in rows if row["id"] not in devices]}


def write_program(folder: Path) -> None:
    """Write a jar with a main class, and the Flink from which it is submitted, into a folder."""
    with zipfile.ZipFile(folder / "job.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Main-Class: Job\r\n")
    (folder / "lib").mkdir()
    (folder / "lib" / "flink-dist-2.3.0.jar").touch()


def lost(*devices: str) -> dict[str, Any]:
    """What Flink answers from now on of TaskManagers, without some."""
    return {"GET /taskmanagers": lacking(HEALTHY, *devices)}


def now(state: str, name: str = OLD) -> dict[str, Any]:
    """What Flink answers from now on of a job."""
    return {f"GET /jobs/{name}": job("shop", state, {"map": state} if state == "RUNNING" else {})}


class Looks:
    """A clock of a watch: with each second that it waits, the next event happens.

    Parameters
    ----------
    answers
        What Flink answers.
    events
        Changes of that; after them, the watch must have ended.
    """

    def __init__(self, answers: dict[str, Any], events: Sequence[Mapping[str, Any]]) -> None:
        self.time, self.answers, self.events = 0.0, answers, [*events]

    def monotonic(self) -> float:
        """Seconds."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        assert self.events, "the watch goes on"
        self.answers.update(self.events.pop(0))
        self.time += seconds


@dataclass
class Watched:
    """A job on a cluster of four that takes checkpoints, and watches of it.

    Attributes
    ----------
    starts
        Jobs that were started again, with the layouts in which they had lost something.
    runs
        Jobs that the watch tells to have been started, and their layouts.
    """

    monkeypatch: pytest.MonkeyPatch
    flink: FakeFlink = field(init=False)
    program: Program = field(default_factory=lambda: Program(Path("a.jar")))
    told: list[str] = field(default_factory=list)
    starts: list[tuple[str, Layout]] = field(default_factory=list)
    runs: list[tuple[str, Layout]] = field(default_factory=list)

    def __post_init__(self) -> None:
        answers: dict[str, Any] = HEALTHY | {"GET /jobs": jobs({OLD: "RUNNING"})}
        for name in (OLD, NEW, NEXT):
            answers |= {
                **now("RUNNING", name),
                f"GET /jobs/{name}/checkpoints/config": KEPT,
                f"GET /jobs/{name}/checkpoints": CHECKPOINTED,
                f"GET /jobs/{name}/exceptions": {
                    "exceptionHistory": {"entries": [{"stacktrace": "a.B: c"}]}
                },
            }
        self.flink = FakeFlink(answers)
        self.monkeypatch.setattr(watching, "fitted", lambda *_: None)
        self.monkeypatch.setattr(watching, "check_cluster", lambda *_: None)

    @property
    def rest(self) -> Any:
        """REST interface of the cluster; with the next two and the program, this is a move."""
        return self.flink.rest

    def restart(self, name: str, layout: Layout) -> FlinkMoved:
        """Start a job again."""
        self.starts.append((name, layout))
        return FlinkMoved(successor(name), None, SAVED)

    def unfinished_moves(self) -> list[Any]:
        """Moves that were begun."""
        return []

    def mover(self, *spares: str, takes_free: bool = False) -> WatchMover:
        """What starts the job again."""
        move: Any = self
        taken = Spares(self.flink.rest, [*spares], takes_free=takes_free)
        return WatchMover(move, taken, self.log, self.told.append)

    @property
    def log(self) -> WatchLog:
        """Log of a new process."""
        return WatchLog.claimed(Store.usual(), OLD, "shop", self.told.append)

    def watch(
        self,
        *events: Mapping[str, Any],
        mover: WatchMover | None = None,
        rounds: Any = None,
        layout: Layout = PLACED,
    ) -> str:
        """Watch the job until it ends, with a patience of two looks; return its last state."""
        self.monkeypatch.setattr(watching, "time", Looks(self.flink.answers, events))
        log = self.log if mover is None else mover.log
        tell, moved = self.told.append, lambda name, where: self.runs.append((name, where))
        watch = Watch(self.flink.rest, log, tell, mover, rounds, moved, patience=1.5)
        return watch.run(OLD, layout)
