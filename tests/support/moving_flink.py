"""A Flink without machines that carries out what a move asks for: stops, starts and cancellations.

Whatever befalls a request is an act, which answers it, or raises what the command meets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fake_flink import (
    KEPT,
    UNDER_WAY,
    UNKNOWN,
    FakeFlink,
    checkpoints,
    failed_by,
    failure,
    healthy,
    job,
    jobs,
    no_savepoint,
    savepoint_at,
    stopped,
)

from streamplace.engines.flink.program.jars import SPENT

Answer = Callable[[], Any]
Act = Callable[["MovingFlink", Answer], Any]
DUPLICATE = "c.DuplicateJobSubmissionException: Job has already been submitted."
SILENCE = failure("a.B: busy", status=503)


@dataclass
class FakeJob:
    """A job of one subtask, and what Flink tells of it."""

    state: str
    device: str = "dev-0"
    task: str = "RUNNING"  # state of its subtask
    stop: Any = None  # answer on the request that stops it; None if it was not asked
    checkpoints: Any = None  # answer on its checkpoints
    policy: Any = None  # on those that outlive it

    def end(self, state: str, path: str | None = None) -> None:
        """End, with a savepoint if there is a path."""
        self.state = self.task = state
        if path is not None:
            self.checkpoints = checkpoints(4, savepoint=stopped(path, 4))


class MovingFlink(FakeFlink):
    """A cluster of two TaskManagers with jobs by their ids.

    Attributes
    ----------
    starts
        Id, jar and savepoint of every request that starts a job.
    spent
        Ids of jobs that can never run.
    acts
        What befalls the next request of a kind: ``stop``, ``start``, ``spend`` or ``cancel``.
    at
        What befalls a request by its number.
    saves
        Path of the next savepoint; None if none can be written.
    """

    def __init__(self, running: str, saves: str) -> None:
        super().__init__(healthy("dev-0", "dev-1"))
        del self.answers["GET /jobs"]
        self.known = {running: FakeJob("RUNNING")}
        self.saves: str | None = saves
        self.starts: list[tuple[str, str, str]] = []
        self.spent: list[str] = []
        self.used = {running}
        self.acts: dict[str, list[Act]] = {}
        self.at: dict[int, Act] = {}

    def answer(self, request: str, document: Any = None) -> Any:
        """Answer to a request, from the state of the jobs unless it has an answer of its own."""
        number = len(self.asked)
        if number in self.at:
            return self.at.pop(number)(self, lambda: self.answer(request, document))
        if request.partition("?")[0] in self.answers:
            return super().answer(request, document)
        self.asked.append((request, document))
        method, _, path = request.partition("?")[0].partition(" ")
        match [method, *path.strip("/").split("/")]:
            case ["GET", "jobs"]:
                return jobs({name: known.state for name, known in self.known.items()})
            case ["POST", "jars", jar, "run"]:
                kind = "spend" if document["entryClass"] == SPENT else "start"
                if kind == "start":
                    self.starts.append((document["jobId"], jar, document["savepointPath"]))
                return self._act(kind, lambda: self._run(jar, document))
            case [_, "jobs", name, *steps] if name in self.known:
                return self._of_job(method, name, steps, document)
        return UNKNOWN

    def _act(self, kind: str, answer: Answer) -> Any:
        """Let befall a request what is due."""
        due = self.acts.get(kind)
        return due.pop(0)(self, answer) if due else answer()

    def _run(self, jar: str, document: Any) -> Any:
        name = document["jobId"]
        if name in self.used:
            return failure(DUPLICATE)
        self.used.add(name)
        self.known[name] = FakeJob("RUNNING", "dev-1" if jar == "there" else "dev-0")
        if document["entryClass"] == SPENT:
            self.spent.append(name)
            self.known[name].task = "SCHEDULED"
        return {"jobid": name}

    def _of_job(self, method: str, name: str, steps: list[str], document: Any) -> Any:
        known = self.known[name]
        match [method, *steps]:
            case ["GET"]:
                return job("shop", known.state, {"map": known.task})
            case ["GET", "exceptions"]:
                return failed_by("c.D: lost")
            case ["GET", "vertices", _]:
                return {"subtasks": [{"taskmanager-id": known.device}]}
            case ["GET", "checkpoints"]:
                return known.checkpoints or checkpoints()
            case ["GET", "checkpoints", "config"]:
                return known.policy or KEPT
            case ["GET", "savepoints", _]:
                return failure("no operation") if known.stop is None else self._stopping(known)
            case ["POST", "stop"]:
                return self._act("stop", lambda: self._stop(known, document))
            case ["PATCH"]:
                return self._act("cancel", lambda: known.end("CANCELED") or {})
        return UNKNOWN

    def _stop(self, known: FakeJob, document: Any) -> Any:
        if known.task == "SCHEDULED":
            return failure("not all of its tasks run", status=409)
        known.stop = UNDER_WAY
        return {"request-id": document["triggerId"]}

    def _stopping(self, known: FakeJob) -> Any:
        """Answer on a stop, which ends the next time."""
        answer = known.stop() if callable(known.stop) else known.stop
        if answer is UNDER_WAY and known.state == "RUNNING":
            if self.saves is None:
                known.stop = no_savepoint("no disk")
            else:
                known.end("FINISHED", self.saves)
                known.stop = savepoint_at(self.saves)
        return answer


def refuses(_: MovingFlink, __: Answer) -> Any:
    """An error, and no effect."""
    return failure("no slots")


def loses(_: MovingFlink, __: Answer) -> Any:
    """A request that does not arrive."""
    return SILENCE


def stays_silent(_: MovingFlink, answer: Answer) -> Any:
    """An effect, and no answer."""
    answer()
    return SILENCE


def interrupts(_: MovingFlink, __: Answer) -> Any:
    """Ctrl-C before the request is sent."""
    raise KeyboardInterrupt


def interrupts_then(_: MovingFlink, answer: Answer) -> Any:
    """Ctrl-C before the answer comes."""
    answer()
    raise KeyboardInterrupt


def after(act: Callable[[MovingFlink], object]) -> Act:
    """What Flink does anyway, and then what others do."""

    def both(flink: MovingFlink, answer: Answer) -> Any:
        spoken = answer()
        act(flink)
        return spoken

    return both


def before(act: Callable[[MovingFlink], object]) -> Act:
    """What others do, and then what Flink does."""

    def both(flink: MovingFlink, answer: Answer) -> Any:
        act(flink)
        return answer()

    return both
