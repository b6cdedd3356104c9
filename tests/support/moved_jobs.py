"""Jobs that tell their results in files: started as others do, moved, and finished."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command_lines import settings_file

from streamplace.engines.flink.move.saving import stop
from streamplace.engines.flink.rest.client import ENDED, Rest
from streamplace.engines.flink.rest.tasks import read_vertices

COUNT, SLOW, FAST = 150_000, 500, 1_000_000
"""Tuples of a job, and how many a second while it is watched and when it shall end."""
PARALLELISM = 2
WINDOW, KEYS = 100, 10
"""Numbers in a window of TallyJob, and its keys."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A job of the tests' jar on a cluster.

    Attributes
    ----------
    before
        Its first arguments.
    settings
        That it is started with.
    """

    rest: Rest
    jar: Path
    folder: Path
    entry: str
    before: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, per_second: int) -> list[str]:
        """What the job is told."""
        return [*self.before, str(COUNT), str(per_second), self.folder.as_uri()]

    def start(self, per_second: int, savepoint: str | None = None) -> str:
        """Submit it as others do; returns its id."""
        request: dict[str, Any] = {
            "entryClass": self.entry,
            "programArgsList": self.arguments(per_second),
            "parallelism": PARALLELISM,
            "flinkConfiguration": dict(self.settings),
        }
        if savepoint is not None:
            request["savepointPath"] = savepoint
        job: str = self.rest.post(f"/jars/{self.rest.upload(self.jar)}/run", request)["jobid"]
        return job

    def results(self) -> list[str]:
        """What it has told for good, in an order of its own."""
        files = (path for path in self.folder.rglob("*") if path.name[0] not in "._")
        texts = (path.read_text() for path in files if path.is_file())
        return sorted(line for text in texts for line in text.splitlines())

    def tells_more(self) -> None:
        """Wait until it has told something more."""
        before, deadline = len(self.results()), time.monotonic() + 120
        while len(self.results()) <= before:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def finished(self, job: str) -> list[str]:
        """Everything that a job has told when it has come to its end."""
        assert self.rest.wait(job, ENDED, 120) == "FINISHED", self.rest.failure(job)
        return self.results()

    def resumed(self, job: str) -> list[str]:
        """Everything that it tells when it is stopped and goes on, as it was first started."""
        path = stop(self.rest, job, f"{self.folder.as_uri()}-saved")
        return self.finished(self.start(FAST, path))

    def move(
        self,
        run: Callable[..., Any],
        home: Path,
        *options: str,
        settings: Mapping[str, str],
        beside: int = 0,
    ) -> str:
        """Move it by the command, beside so many other jobs; returns its new id."""
        more = [word for pair in settings.items() for word in ("-D", "=".join(pair))]
        given = settings_file(self.folder.parent, flink_home=str(home), settle=0, seconds=2)
        place = ("--rest", self.rest.url, *given)
        saved = ("--savepoints", f"{self.folder.as_uri()}-saved", "-p", str(PARALLELISM))
        job = ("--entry-class", self.entry, *more, *options)
        command = ("flink", "move", str(self.jar), *place, *saved, *job)
        answer = run(*command, "--", *self.arguments(SLOW))
        assert answer.status == 0, answer.err
        moved: str = answer.out.strip()
        live = self.rest.live_jobs()
        assert moved in live
        assert len(live) == 1 + beside
        return moved


def spread(rest: Rest, job: str, devices: Sequence[str], step: int) -> dict[str, Any]:
    """Placement of a running job whose operators, and subtasks, are next to one another nowhere."""
    assignment, parallelism = {}, {}
    operators = [
        (name, vertex.parallelism)
        for vertex in read_vertices(rest, job, rest.job(job))
        for name in vertex.operators
    ]
    for i, (name, number) in enumerate(operators):
        parallelism[name] = number
        names = [f"{name}#{k}" for k in range(number)] if number > 1 else [name]
        for k, subtask in enumerate(names):
            assignment[subtask] = devices[(i + step + k * (1 + step)) % len(devices)]
    return {
        "assignment": assignment,
        "parallelism": {name: number for name, number in parallelism.items() if number > 1},
    }


def write_spread(path: Path, rest: Rest, job: str, devices: Sequence[str], step: int) -> str:
    """Write such a placement; returns the file's name."""
    path.write_text(json.dumps(spread(rest, job, devices, step)))
    return str(path)


def lines(told: Path, kind: str) -> list[list[int]]:
    """Numbers that the job told."""
    texts = (path.read_text() for path in told.glob(f"{kind}-*"))
    return [[int(word) for word in line.split()] for text in texts for line in text.splitlines()]


def check_windows(told: Path) -> None:
    """Every window was told once, with all of its tuples, however often the job was started."""
    windows = lines(told, "windows")
    assert {number for _, _, number in windows} == {WINDOW // KEYS}
    found = Counter((key, first // WINDOW) for key, first, _ in windows)
    last = {key: max(n for k, n in found if k == key) for key in range(KEYS)}
    assert found == {(key, n): 1 for key in range(KEYS) for n in range(last[key] + 1)}


def tells_more_windows(told: Path, rounds: int) -> None:
    """Wait until TallyJob has told so many windows more of each key."""
    wanted, deadline = len(lines(told, "windows")) + rounds * KEYS, time.monotonic() + 60
    while len(lines(told, "windows")) < wanted:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def settings(chaining: str, backend: str) -> dict[str, str]:
    """Settings of a job whose operators are chained, or not, and keep their state somewhere."""
    return {"pipeline.operator-chaining.enabled": chaining, "state.backend.type": backend}
