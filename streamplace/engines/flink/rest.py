"""Flink's REST interface: what of it is needed here, over the standard library."""

import copy
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from http.client import HTTPException
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.access import Access
from streamplace.engines.flink.answer_shapes import Job, JobSummary
from streamplace.engines.flink.answers import parse_answer, parse_complaint, root_cause
from streamplace.engines.flink.transport import Address, exchange, masked, multipart
from streamplace.errors import SettingError, StreamplaceError
from streamplace.model.messages import quoted, shown

ENDED = frozenset({"FINISHED", "FAILED", "CANCELED", "SUSPENDED"})
FINISHED = "FINISHED"
FAILED = frozenset({"FAILED", "FAILING", "RESTARTING"})
NO_SLOT = "NoResourceAvailableException"
"""Of a job that got no slots in time."""
AT_WORK = frozenset({"RUNNING", "FINISHED"})
"""States of the tasks of a job that runs: one that has read all of its input has finished."""
JSON = "application/json"
POLL_SECONDS = 0.1
SLOT_SECONDS = 0.2
"""Between two requests while slots are awaited, from the third on."""
RELEASE_SECONDS = 10.0
"""In which TaskManagers give back the slots of a job that has ended."""
CAUSE_SECONDS = 5.0
"""In which Flink tells why a job failed."""
SUBMIT_SECONDS = 600.0
"""For what may take long: uploading a jar, and running its main method."""
NOT_FOUND = "Could not find Flink job"
UNAVAILABLE = frozenset({502, 503, 504})
"""Statuses of a Flink, or of a gateway before it, that will answer later."""
LEADERLESS = re.compile(r"\b(RecipientUnreachable|FencingToken|RpcConnection)Exception\b")
"""Errors of a JobManager that passes on what it is asked to one that leads no more."""


class FlinkError(StreamplaceError):
    """What Flink refuses or cannot do, in Flink's words."""


class NoAnswer(FlinkError):
    """Flink does not answer, or not now."""


class Refusal(FlinkError):
    """An error that Flink itself answers with.

    Attributes
    ----------
    complaint
        The whole of what it answers.
    """

    def __init__(self, message: str, complaint: str = "") -> None:
        super().__init__(message)
        self.complaint = complaint


class Rest:
    """A cluster's REST interface.

    It is asked directly, not through a proxy, and redirections are not followed.

    Parameters
    ----------
    url
        Such as ``http://localhost:8081``; it may hold a name and a password, which are sent to it
        and shown nowhere.
    timeout
        Seconds in which it must have answered a question.
    access
        Certificates, and an authorization that counts more than one in the address.

    Attributes
    ----------
    patience
        Seconds for which a request that is not answered is sent again.
    tell
        Is told, once per breakdown, that a request is sent again.
    """

    patience = 0.0
    tell: Callable[[str], None] = staticmethod(lambda _: None)

    def __init__(self, url: str, timeout: float = 30.0, access: Access | None = None) -> None:
        access = access or Access()
        address = Address.of(url)
        if access.is_for_https and address.scheme != "https":
            raise SettingError(f"{address} is not encrypted; certificates need an https:// address")
        authorization = access.authorization or address.authorization
        self._address = replace(address, authorization=authorization)
        self._context = access.context() if address.scheme == "https" else None
        self.timeout = timeout

    @property
    def url(self) -> str:
        """Address without name and password."""
        return str(self._address)

    def get(self, path: str) -> Any:
        """Answer to a GET."""
        return self._read(path, self._ask("GET", path))

    def patient(self, seconds: float, tell: Callable[[str], None]) -> "Rest":
        """Return the same interface, which sends what is not answered again for some time.

        It is for requests that may reach Flink twice: all that ask, and those that bear an id.
        """
        other = copy.copy(self)
        other.patience, other.tell = seconds, tell
        return other

    def post(self, path: str, document: object, seconds: float = SUBMIT_SECONDS) -> Any:
        """Answer to a POST of a JSON document."""
        body = json.dumps(document).encode()
        return self._read(path, self._ask("POST", path, body, seconds=seconds))

    def delete(self, path: str) -> None:
        """Have something removed."""
        self._ask("DELETE", path)

    def task_managers(self) -> list[dict[str, Any]]:
        """Every TaskManager with its id, and what it offers and has left."""
        managers: list[dict[str, Any]] = self.get("/taskmanagers")["taskmanagers"]
        return managers

    def settings(self) -> dict[str, str]:
        """Return what the JobManager's configuration says, by key."""
        return {row["key"]: row["value"] for row in self.get("/jobmanager/config")}

    def offered(self) -> dict[str, dict[str, float]]:
        """TaskManager → the external resources that it has in all."""
        return {
            manager["id"]: manager["totalResource"].get("extendedResources", {})
            for manager in self.task_managers()
        }

    def job(self, job: str) -> Job:
        """State and vertices of a job."""
        answer: Job = self.get(f"/jobs/{quote(job, safe='')}")
        return answer

    def state(self, job: str) -> str | None:
        """State of a job; None where Flink knows no such job."""
        try:
            return str(self.job(job)["state"])
        except Refusal as error:
            if NOT_FOUND in str(error):
                return None
            raise

    def jobs(self) -> dict[str, str]:
        """Job → its state, ended ones too."""
        return {job["id"]: job["status"] for job in self.get("/jobs")["jobs"]}

    def running_job(self, job: str) -> Job:
        """State and vertices of a job that runs.

        Raises
        ------
        FlinkError
            When it or one of its tasks does not; it quotes why, where that is known.
        """
        document = self.job(job)
        if document["state"] == FINISHED:
            raise FlinkError(f"{finished(job)}; only a running job can be examined")
        if document["state"] != "RUNNING":
            why = self.failure(job) if document["state"] in FAILED else ""
            advice = self._advice(job) if NO_SLOT in why else None
            raise FlinkError(
                f"job {shown(job)} is {shown(document['state'])}, not RUNNING; "
                f"{advice or 'wait for it or start it again'}{': ' if why else ''}{why}"
            )
        for vertex in document["vertices"]:
            if vertex["status"] not in AT_WORK:
                raise FlinkError(
                    f"job {shown(job)} is not running (yet, or any more): its task "
                    f"{quoted(vertex['name'])} is {shown(vertex['status'])}; "
                    f"{self._advice(job) or 'wait until all of them run'}"
                )
        return document

    def _advice(self, job: str) -> str | None:
        """What helps a job that waits for slots, where others have some of every TaskManager."""
        holders = [set(self.holders(manager["id"])) for manager in self.task_managers()]
        if any(job in jobs or not jobs for jobs in holders):
            return None
        return (
            "it has no slot, because every TaskManager has slots of other jobs: a job without a "
            "placement requests whole TaskManagers, so submit it with 'streamplace flink apply', "
            "or cancel the others"
        )

    def live_jobs(self) -> list[str]:
        """Ids of the jobs that have not ended, running or not."""
        return [job for job, state in self.jobs().items() if state not in ENDED]

    def upload(self, jar: Path) -> str:
        """Id of a jar, uploaded."""
        body, kind = multipart(jar)
        path = "/jars/upload"
        answer = self._read(path, self._ask("POST", path, body, kind, SUBMIT_SECONDS))
        return str(answer["filename"]).rsplit("/", 1)[-1]

    def remove_jar(self, jar: str) -> None:
        """Remove an uploaded jar."""
        self.delete(f"/jars/{quote(jar, safe='')}")

    def run_jar(self, jar: str, entry_class: str | None, arguments: Sequence[str] = ()) -> str:
        """Id of the job that a jar's main class submits."""
        document: dict[str, Any] = {"programArgsList": list(arguments)}
        if entry_class is not None:
            document["entryClass"] = entry_class
        return str(self.post(f"/jars/{quote(jar, safe='')}/run", document)["jobid"])

    def cancel(self, job: str) -> None:
        """Cancel a job and wait until it has ended and left; one that has ended is left alone."""
        if self.job(job)["state"] not in ENDED:
            try:
                self._ask("PATCH", f"/jobs/{quote(job, safe='')}")
            except Refusal:
                if self.job(job)["state"] not in ENDED:  # it did not end by itself meanwhile
                    raise
            self.wait(job, ENDED)
        self.wait_released()

    def wait_released(self, seconds: float = RELEASE_SECONDS) -> None:
        """Wait, not for ever, until no slot belongs to a job that has just ended.

        TaskManagers give slots back a moment after a job has ended; until then what it had is
        taken. Flink is asked at most five times per second, however many TaskManagers there are:
        where other jobs may hold slots, too, of one TaskManager after the other.
        """
        jobs: Sequence[JobSummary] = self.get("/jobs/overview")["jobs"]
        ended, others = _just_ended(jobs, seconds), any(row["state"] not in ENDED for row in jobs)
        deadline, waiting = time.monotonic() + seconds, self._in_use() if ended else []
        pauses = slot_pauses()
        while waiting and time.monotonic() < deadline:
            time.sleep(next(pauses))
            waiting = self._still_held(waiting, ended) if others else self._in_use()

    def _in_use(self) -> list[str]:
        """TaskManagers that have slots of any job."""
        rows = self.task_managers()
        return [row["id"] for row in rows if row["freeResource"] != row["totalResource"]]

    def _still_held(self, devices: list[str], jobs: set[str]) -> list[str]:
        """Ask the first TaskManager whether it has slots of some jobs; if so it is the last now."""
        try:
            is_held = jobs.intersection(self.holders(devices[0]))
        except Refusal:  # it has just ended
            is_held = set()
        return devices[1:] + (devices[:1] if is_held else [])

    def wait(self, job: str, states: frozenset[str], seconds: float = 60.0) -> str:
        """Wait until a job is in one of the states; returns the one it is in then."""
        deadline = time.monotonic() + seconds
        while (state := str(self.job(job)["state"])) not in states:
            if time.monotonic() > deadline:
                raise FlinkError(f"job {shown(job)} is still {shown(state)} after {seconds:g} s")
            time.sleep(POLL_SECONDS)
        return state

    def wait_running(self, job: str, seconds: float = 60.0) -> None:
        """Wait until every subtask of a job runs.

        Raises
        ------
        FlinkError
            When the job ended instead; it quotes why.
        """
        deadline = time.monotonic() + seconds
        while True:
            document = self.job(job)
            if document["state"] == FINISHED:
                raise FlinkError(f"{finished(job)} before all of it ran")
            if document["state"] in ENDED:
                raise FlinkError(f"job {shown(job)} is {document['state']}: {self.failure(job)}")
            states = {vertex["status"] for vertex in document["vertices"]}
            if states == {"RUNNING"}:  # a job that is being recovered shows no task
                return
            if time.monotonic() > deadline:
                raise FlinkError(f"job {shown(job)} does not run after {seconds:g} s")
            time.sleep(POLL_SECONDS)

    def failure(self, job: str) -> str:
        """Root cause of a job's failure, one line; Flink tells it a moment after the job failed."""
        deadline = time.monotonic() + CAUSE_SECONDS
        while not (traces := self._traces(job)) and self.job(job)["state"] in FAILED:
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        return root_cause(traces[0] if traces else "no exception is known")

    def _traces(self, job: str) -> list[str]:
        """Stack traces of what failed in a job, the newest first."""
        history = self.get(f"/jobs/{quote(job, safe='')}/exceptions").get("exceptionHistory", {})
        return [entry.get("stacktrace", "") for entry in history.get("entries", ())]

    def holders(self, device: str) -> list[str]:
        """Jobs that have a slot on a TaskManager."""
        slots = self.task_manager(device).get("allocatedSlots", [])
        return sorted({slot["jobId"] for slot in slots})

    def task_manager(self, device: str) -> dict[str, Any]:
        """Return what a TaskManager offers, has left, and the slots that jobs have on it."""
        manager: dict[str, Any] = self.get(f"/taskmanagers/{quote(device, safe='')}")
        return manager

    def _read(self, path: str, content: bytes) -> Any:
        try:
            return parse_answer(path, content)
        except ValueError as error:
            raise FlinkError(
                f"{self.url}{shown(path)}: its answer is not one of Flink's REST API: {error}"
            ) from None

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str | None = None,
        seconds: float | None = None,
    ) -> bytes:
        """Content of an answer; what is not answered is sent again while patience lasts."""
        deadline, is_told = time.monotonic() + self.patience, False
        while True:
            try:
                return self._ask_once(method, path, body, kind, seconds or self.timeout)
            except NoAnswer as error:
                if time.monotonic() >= deadline:
                    raise
                if not is_told:
                    self.tell(f"{error}; trying again")
                is_told = True
            time.sleep(POLL_SECONDS)

    def _ask_once(
        self, method: str, path: str, body: bytes | None, kind: str | None, seconds: float
    ) -> bytes:
        try:
            answer = exchange(
                self._address, self._context, method, path, body, kind or JSON, seconds
            )
        except TimeoutError:
            raise NoAnswer(f"no Flink answers at {self.url} within {seconds:g} s") from None
        except (OSError, HTTPException, ValueError) as error:
            reason = shown(str(error) or type(error).__name__)
            if isinstance(error, ConnectionRefusedError):
                reason = "connection refused; start it, or correct the address"
            raise NoAnswer(f"no Flink answers at {self.url}: {reason}") from None
        if answer.status >= 400:
            complaint = parse_complaint(answer.content)
            message = f"Flink answers {answer.status}: {root_cause(complaint)}"
            if answer.status in UNAVAILABLE or LEADERLESS.search(complaint):
                raise NoAnswer(message)
            raise Refusal(message, complaint)
        if answer.status >= 300:
            there = f" to {masked(answer.location)}" if answer.location else ""
            raise FlinkError(
                f"{self.url} redirects{there}, and redirects are not followed; use Flink's own "
                "address"
            )
        return answer.content


def slot_pauses() -> Iterator[float]:
    """Pauses between requests while slots are awaited: soon again, but at most five in a second."""
    return chain((0.5 * SLOT_SECONDS, 1.5 * SLOT_SECONDS), repeat(SLOT_SECONDS))


def _just_ended(jobs: Sequence[JobSummary], seconds: float) -> set[str]:
    """Jobs that ended so many seconds ago at most; all that ended, where no other tells the time.

    A job that runs tells it by its duration.
    """
    now = max((row["start-time"] + row["duration"] for row in jobs), default=0)
    if all(row["state"] in ENDED for row in jobs):
        seconds = math.inf
    return {
        row["jid"]
        for row in jobs
        if row["state"] in ENDED and now - row["end-time"] <= 1000 * seconds
    }


def finished(job: str) -> str:
    """What became of a job that nobody ended."""
    return f"job {shown(job)} has finished because it has read all of its input"
