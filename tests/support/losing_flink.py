"""A Flink that loses TaskManagers: a job runs there only while all that it is placed on are left.

The watch that moves its job may be killed at any request, and then asks and writes nothing more.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fake_flink import FakeFlink, failure
from flink_documents import KEPT, healthy, job, jobs, task_manager
from moving_cases import SAVED, UNKNOWN, MemoryFolder, cluster_jar
from watched_jobs import Killed

from streamplace.engines.flink.move.folder import SavepointFolder
from streamplace.engines.flink.program.uploads import ClusterJar
from streamplace.engines.flink.rest.client import ENDED, Rest
from streamplace.engines.live import Verification

Places = Mapping[str, list[str]]
PATH = SAVED["operation"]["location"]
FAILED = {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": {"stack-trace": "none"}}}


class LosingFlink(FakeFlink):
    """A cluster with a job that is moved.

    Parameters
    ----------
    first, places
        The job, and where it runs.

    Attributes
    ----------
    managers
        TaskManagers that are left.
    states
        Job → state; all but the first are started from the savepoint.
    places
        Job → where it was placed.
    losses
        Method of a request → TaskManager that is lost when it is answered next.
    kill_at
        Number of the request at which the watch is killed; none if negative.
    kills_late
        Whether that request is carried out first.
    """

    def __init__(self, first: str, places: Places, *managers: str) -> None:
        super().__init__(healthy())
        self.managers = [*managers]
        self.states, self.places = {first: "RUNNING"}, {first: places}
        self.losses: dict[str, str] = {}
        self.kill_at, self.kills_late = -1, False
        self.is_dead = False
        self._ways: dict[str, Places] = {}
        self._stops: dict[str, Any] = {}
        self._names: list[str] = []

    @property
    def alive(self) -> dict[str, bool]:
        """Jobs that have not ended, and whether all of their subtasks run."""
        return {name: self.runs(name) for name, s in self.states.items() if s not in ENDED}

    def runs(self, name: str) -> bool:
        """Whether all TaskManagers of a job are there."""
        used = {device for devices in self.places[name].values() for device in devices}
        return used <= {*self.managers}

    def answer(self, request: str, document: Any = None) -> Any:
        """Answer, unless the watch is dead."""
        is_last = len(self.asked) == self.kill_at
        self.is_dead |= is_last and not self.kills_late
        answer = None if self.is_dead else self._answered(request, document)
        self.is_dead |= is_last
        if self.is_dead:
            raise Killed
        return answer

    def _answered(self, request: str, document: Any) -> Any:
        method, _, path = request.partition(" ")
        kind = "start" if document and "jobId" in document else path.rpartition("/")[2]
        if kind == "start":
            answer = self._started(document["jobId"], self._ways[path.split("/")[2]])
        elif path.startswith("/jobs/") and path != "/jobs/overview":
            answer = self._of_job(method, *path.split("/")[2:], document=document)
        elif path == "/jobs":
            answer = jobs(self.states)
        elif path == "/taskmanagers":
            answer = {"taskmanagers": [task_manager(one, self.managers) for one in self.managers]}
        elif path == "/jars":
            rows = [{"id": name, "name": name, "uploaded": 1} for name in self._names]
            answer = {"files": rows}
        elif path.startswith("/taskmanagers/"):
            answer = {"allocatedSlots": []}
        else:
            return super().answer(request, document)
        self.asked.append((request, document))
        if kind in self.losses:
            self.managers.remove(self.losses.pop(kind))
        return answer

    def _started(self, name: str, places: Places) -> Any:
        if name in self.states or f"spent {name}" in MemoryFolder.files:
            return failure("the job was submitted already")
        assert not self.alive, "two copies"
        self.states[name], self.places[name] = "RUNNING", places
        return {"jobid": name}

    def _of_job(self, method: str, name: str, *rest: str, document: Any) -> Any:
        if name not in self.states:
            return UNKNOWN
        if method == "PATCH":
            self.states[name] = "CANCELED"
        elif rest == ("stop",):
            self._stops[document["triggerId"]] = SAVED if self.runs(name) else FAILED
            self.states[name] = "FINISHED" if self.runs(name) else "RUNNING"
            return {"request-id": document["triggerId"]}
        elif rest and rest[0] == "savepoints":
            return self._stops.get(rest[1], failure("no operation"))
        elif rest == ("checkpoints",):
            latest = {"restored": {"id": 1, "external_path": PATH}} if len(self.states) > 1 else {}
            return {"counts": {"completed": 0}, "latest": latest}
        elif rest == ("checkpoints", "config"):
            return KEPT
        elif not rest:
            state = "RUNNING" if self.runs(name) else "SCHEDULED"
            return job(name, self.states[name], {"map": state})
        return {}

    @contextmanager
    def folder(
        self, rest: Rest, _: object, uri: str, name: str | None = None
    ) -> Iterator[SavepointFolder]:
        """Stand in for ``savepoint_folder``."""
        self._names.append(name or "files")
        yield MemoryFolder(rest, uri, cluster_jar(rest, self._names[-1]))

    @contextmanager
    def upload(
        self, rest: Rest, _: object, program: object, places: Places, __: object
    ) -> Iterator[ClusterJar]:
        """Stand in for ``placed_upload``."""
        name = f"way-{len(self._ways)}"
        self._ways[name] = places
        yield cluster_jar(rest, name)

    def verify(self, _: Rest, name: str, places: Places) -> Verification:
        """Stand in for ``verify``."""
        same = self.places[name] == places
        return Verification((), () if same else (f"job {name} is elsewhere",), ())
