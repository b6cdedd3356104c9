"""Jobs that run on a real Flink: submitted as others do, placed, moved, and watched."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.move import RETENTION, FlinkMove
from streamplace.engines.flink.move.saving import resumable
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.watch.acting import Spares, WatchMover
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.watch import Watch
from streamplace.io.store import Store

TALLY: Layout = Layout(
    {
        "numbers": ["dev-0"],
        "Map": ["dev-1"],
        "KeyedProcess": ["dev-0", "dev-1"],
        "Process": ["dev-0", "dev-1"],
        "Writer": ["dev-0", "dev-1"],
        "TumblingEventTimeWindows": ["dev-1", "dev-1"],
        "tell": ["dev-1", "dev-1"],
        "out": ["dev-0", "dev-0"],
    }
)
"""Where tests put the subtasks of TallyJob."""


def submitted(
    rest: Rest, jar: Path, entry: str, *arguments: str, settings: Mapping[str, str] | None = None
) -> str:
    """Id of a job of which every subtask runs, by its main class."""
    request: dict[str, Any] = {"entryClass": entry, "programArgsList": [*arguments]}
    if settings:
        request["flinkConfiguration"] = dict(settings)
    job: str = rest.post(f"/jars/{rest.upload(jar)}/run", request)["jobid"]
    rest.wait_running(job)
    return job


def mover(
    rest: Rest,
    flink: Flink,
    program: Program,
    folder: Path,
    tell: Callable[[str], None] = lambda _: None,
) -> FlinkMove:
    """What moves a job by savepoints in a folder, and does not watch it afterwards."""
    saved = (folder / "saved").as_uri()
    return FlinkMove(rest, flink, program, tell, MoveSettings(saved, settle=0.0))


def tally(jobs: Path, folder: Path, rate: str = "500") -> Program:
    """A job that checks itself, and takes checkpoints in a folder that outlive it."""
    (folder / "told").mkdir()
    settings = {
        "execution.checkpointing.interval": "300 ms",
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        RETENTION: "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "10000",
        "restart-strategy.fixed-delay.delay": "500 ms",
    }
    return Program(jobs, "TallyJob", (str(folder / "told"), rate), settings=settings)


def placed(rest: Rest, flink: Flink, program: Program, vectors: Layout) -> str:
    """Id of a job that runs where it is placed, and has saved its state."""
    job = apply(rest, flink, program, vectors)
    while resumable(rest, job) is None:
        time.sleep(0.1)
    return job


class WatchThread:
    """A watch of a placed job in a thread, to which dev-2 is a spare.

    Attributes
    ----------
    steps
        What it told.
    runs
        Jobs that it has started in place of the first one, and where.
    ended
        Error with which it ended, if any.
    """

    def __init__(self, move: FlinkMove, job: str, layout: Layout, patience: float = 0.5) -> None:
        self.steps, self.ended = list[str](), list[str]()
        self.runs: list[tuple[str, Layout]] = []
        tell, spares = self.steps.append, Spares(move.rest, ["dev-2"])
        log = WatchLog.claimed(Store.usual(), job, "watched", tell)
        mover = WatchMover(replace(move, without_lost=spares.of_move), spares, log, tell)
        moved = lambda name, where: self.runs.append((name, where))  # noqa: E731
        self._watch = Watch(move.rest, log, tell, mover, None, moved, patience)
        self._thread = Thread(target=self._run, args=(job, layout), daemon=True)
        self._thread.start()

    def _run(self, job: str, layout: Layout) -> None:
        try:
            self._watch.run(job, layout)
        except FlinkError as error:
            self.ended.append(str(error))

    def goes_on(self) -> None:
        """Wait a moment, in which the watch must not end."""
        assert self._thread.is_alive(), (self.steps, self.ended)
        self._thread.join(0.1)

    def started(self, number: int = 1) -> tuple[str, Layout]:
        """Wait until it has started the job again so often; returns its id, and where it runs."""
        while len(self.runs) < number:
            self.goes_on()
        return self.runs[-1]

    def ends(self) -> None:
        """Wait for its end."""
        self._thread.join(30)
        assert not self._thread.is_alive()
