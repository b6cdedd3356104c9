"""A Flink without machines that carries out what a move asks for: stops, starts and cancellations.

Whatever befalls a request is an act, which answers it, or raises what the command meets.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from fake_flink import (
    KEPT,
    UNDER_WAY,
    UNKNOWN,
    FakeFlink,
    checkpoints,
    cluster_jar,
    failed_by,
    failure,
    healthy,
    job,
    jobs,
    no_savepoint,
    savepoint_at,
    stopped,
    task_manager,
)

from streamplace.flink.program.jars import SPENT
from streamplace.flink.rest.client import ENDED

Answer = Callable[[], Any]
Act = Callable[["MovingFlink", Answer], Any]
DUPLICATE = "c.DuplicateJobSubmissionException: Job has already been submitted."
SILENCE = failure("a.B: busy", status=503)


class Killed(BaseException):
    """The command is killed: it sends and writes nothing after this."""


@dataclass
class FakeJob:
    """A job of one task, and what Flink says of it."""

    state: str
    devices: Sequence[str] = ("dev-0",)  # of its subtasks
    task: str = "RUNNING"  # state of its subtasks
    stop: Any = None  # answer on the request that stops it; None if there was none
    checkpoints: Any = None  # answer on its checkpoints
    policy: Any = None  # on those that outlive it

    def end(self, state, path=None):
        """End, with a savepoint if there is a path."""
        self.state = self.task = state
        if path is not None:
            self.checkpoints = checkpoints(4, savepoint=stopped(path, 4))


class MovingFlink(FakeFlink):
    """A cluster with jobs by their ids, which run while all of their TaskManagers are there.

    Attributes
    ----------
    jobs
        Jobs that Flink knows.
    managers
        TaskManagers that are there.
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
    is_dead
        Whether the command was killed.
    """

    def __init__(self, name, job, managers, saves):
        super().__init__(healthy())
        for request in ("GET /jobs", "GET /taskmanagers"):
            del self.answers[request]
        self.jobs, self.managers = {name: job}, [*managers]
        self.saves: str | None = saves
        self.starts: list[tuple[str, str, str]] = []
        self.spent: list[str] = []
        self.used = {name}
        self.acts: dict[str, list[Act]] = {}
        self.at: dict[int, Act] = {}
        self.is_dead = False

    @property
    def alive(self):
        """Jobs that have not ended, and whether all of their subtasks run."""
        live = {name: job for name, job in self.jobs.items() if job.state not in ENDED}
        return {name: self._task(job) == job.state == "RUNNING" for name, job in live.items()}

    def upload(self, places):
        """Upload a jar that says by its name where the subtasks run."""
        (devices,) = places.values()
        return nullcontext(cluster_jar(self.rest, ".".join(devices)))

    def answer(self, request, document=None):
        """Answer to a request, from the state of the jobs unless it has an answer of its own."""
        if self.is_dead:
            raise Killed
        number = len(self.asked)
        if number in self.at:
            return self.at.pop(number)(self, lambda: self.answer(request, document))
        if request.partition("?")[0] in self.answers:
            return super().answer(request, document)
        self.asked.append((request, document))
        method, _, path = request.partition("?")[0].partition(" ")
        match [method, *path.strip("/").split("/")]:
            case ["GET", "taskmanagers"]:
                rows = [task_manager(device, self.managers) for device in self.managers]
                return {"taskmanagers": rows}
            case ["GET", "taskmanagers", _]:
                return {"allocatedSlots": []}
            case ["GET", "jobs"]:
                return jobs({name: job.state for name, job in self.jobs.items()})
            case ["POST", "jars", jar, "run"]:
                kind = "spend" if document["entryClass"] == SPENT else "start"
                if kind == "start":
                    self.starts.append((document["jobId"], jar, document["savepointPath"]))
                return self._act(kind, lambda: self._run(jar, document))
            case [_, "jobs", name, *steps] if name in self.jobs:
                return self._of_job(method, name, steps, document)
        return UNKNOWN

    def _act(self, kind, answer):
        """Let befall a request what is due."""
        due = self.acts.get(kind)
        return due.pop(0)(self, answer) if due else answer()

    def _task(self, job):
        """State of the subtasks of a job: they wait for TaskManagers that are not there."""
        is_whole = {*job.devices} <= {*self.managers}
        return job.task if is_whole or job.task != "RUNNING" else "SCHEDULED"

    def _run(self, jar, document):
        name, path = document["jobId"], document.get("savepointPath")
        if name in self.used:
            return failure(DUPLICATE)
        is_spent = document["entryClass"] == SPENT
        assert is_spent or not self.used & self.alive.keys(), "two copies"
        self.used.add(name)
        self.jobs[name] = FakeJob("RUNNING", jar.split("."))
        self.jobs[name].checkpoints = path and checkpoints(restored=path)
        if is_spent:
            self.spent.append(name)
            self.jobs[name].task = "SCHEDULED"
        return {"jobid": name}

    def _of_job(self, method, name, steps, document):
        known = self.jobs[name]
        match [method, *steps]:
            case ["GET"]:
                found = job("shop", known.state, {"map": self._task(known)})
                found["vertices"][0]["parallelism"] = len(known.devices)
                return found
            case ["GET", "exceptions"]:
                return failed_by("c.D: lost")
            case ["GET", "config"]:
                return {"execution-config": {"object-reuse-mode": True}}
            case ["GET", "vertices", _]:
                return {"subtasks": [{"taskmanager-id": device} for device in known.devices]}
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

    def _stop(self, known, document):
        if self._task(known) == "SCHEDULED":
            return failure("not all of its tasks run", status=409)
        known.stop = UNDER_WAY
        return {"request-id": document["triggerId"]}

    def _stopping(self, known):
        """Answer on a stop, which ends the next time."""
        answer = known.stop() if callable(known.stop) else known.stop
        if answer is UNDER_WAY and known.state == "RUNNING":
            if self.saves is None:
                known.stop = no_savepoint("no disk")
            else:
                known.end("FINISHED", self.saves)
                known.stop = savepoint_at(self.saves)
        return answer


def refuses(_, __):
    """An error, and no effect."""
    return failure("no slots")


def loses(_, __):
    """A request that does not arrive."""
    return SILENCE


def stays_silent(_, answer):
    """An effect, and no answer."""
    answer()
    return SILENCE


def after(act):
    """What Flink does anyway, and then what others do."""

    def both(flink, answer):
        spoken = answer()
        act(flink)
        return spoken

    return both


def before(act):
    """What others do, and then what Flink does."""

    def both(flink, answer):
        act(flink)
        return answer()

    return both


def interrupt(_):
    """Press Ctrl-C."""
    raise KeyboardInterrupt


def kill(flink):
    """Kill the command."""
    flink.is_dead = True
    raise Killed


interrupts, interrupts_then = before(interrupt), after(interrupt)
kills, kills_then = before(kill), after(kill)
"""Before a request is sent, and before its answer comes."""


def loses_device(device):
    """A TaskManager is lost once the request is answered."""
    return after(lambda flink: flink.managers.remove(device))
