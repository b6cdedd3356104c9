"""Flink's REST interface: what of it is needed here, over the standard library."""

import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamplace.errors import SettingError, StreamplaceError
from streamplace.model.messages import quoted, shown

ENDED = frozenset({"FINISHED", "FAILED", "CANCELED", "SUSPENDED"})
POLL_SECONDS = 0.1


class FlinkError(StreamplaceError):
    """What Flink refuses or cannot do, in Flink's words."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A cluster's REST interface, such as ``http://localhost:8081``."""

    url: str
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise SettingError(f"{quoted(self.url)} is no address; write http://HOST:8081")

    def get(self, path: str) -> Any:
        """Answer to a GET."""
        return self._ask("GET", path, None, None)

    def post(self, path: str, document: object) -> Any:
        """Answer to a POST of a JSON document."""
        return self._ask("POST", path, json.dumps(document).encode(), "application/json")

    def delete(self, path: str) -> Any:
        """Answer to a DELETE."""
        return self._ask("DELETE", path, None, None)

    def task_managers(self) -> list[dict[str, Any]]:
        """Every TaskManager with its id, and what it offers and has left."""
        managers: list[dict[str, Any]] = self.get("/taskmanagers")["taskmanagers"]
        return managers

    def offered(self) -> dict[str, dict[str, float]]:
        """TaskManager → the external resources that it has in all."""
        return {
            manager["id"]: manager["totalResource"].get("extendedResources", {})
            for manager in self.task_managers()
        }

    def job(self, job: str) -> dict[str, Any]:
        """State and vertices of a job."""
        answer: dict[str, Any] = self.get(f"/jobs/{quote(job, safe='')}")
        return answer

    def running_jobs(self) -> list[str]:
        """Ids of the jobs that run."""
        return [job["id"] for job in self.get("/jobs")["jobs"] if job["status"] == "RUNNING"]

    def live_jobs(self) -> list[str]:
        """Ids of the jobs that have not ended, running or not."""
        return [job["id"] for job in self.get("/jobs")["jobs"] if job["status"] not in ENDED]

    def upload(self, jar: Path) -> str:
        """Id of a jar, uploaded."""
        boundary = secrets.token_hex(16)
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="jarfile"; '
            f'filename="{jar.name}"\r\nContent-Type: application/x-java-archive\r\n\r\n'
        )
        body = head.encode() + jar.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
        kind = f"multipart/form-data; boundary={boundary}"
        answer = self._ask("POST", "/jars/upload", body, kind)
        return str(answer["filename"]).rsplit("/", 1)[-1]

    def run_jar(self, jar: str, entry_class: str | None, arguments: Sequence[str] = ()) -> str:
        """Id of the job that a jar's main class submits."""
        document = {"programArgsList": list(arguments)}
        if entry_class is not None:
            document["entryClass"] = entry_class  # type: ignore[assignment]
        return str(self.post(f"/jars/{quote(jar, safe='')}/run", document)["jobid"])

    def cancel(self, job: str) -> None:
        """Cancel a job and wait until it has ended and left; one that has ended is left alone."""
        if self.job(job)["state"] not in ENDED:
            try:
                self._ask("PATCH", f"/jobs/{quote(job, safe='')}", None, None)
            except FlinkError:
                if self.job(job)["state"] not in ENDED:  # it did not end by itself meanwhile
                    raise
            self.wait(job, ENDED)
        self.wait_released()

    def wait_released(self, seconds: float = 10.0) -> None:
        """Wait, not for ever, until no slot belongs to a job that has ended.

        TaskManagers give slots back a moment after a job has ended; until then what it had is
        taken.
        """
        deadline = time.monotonic() + seconds
        while self._slot_holders() & self._ended_jobs() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def wait(self, job: str, states: frozenset[str], seconds: float = 60.0) -> str:
        """Wait until a job is in one of the states; returns the one it is in then."""
        deadline = time.monotonic() + seconds
        while (state := str(self.job(job)["state"])) not in states:
            if time.monotonic() > deadline:
                raise FlinkError(f"job {job} is still {state} after {seconds:g} s")
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
            if document["state"] in ENDED:
                raise FlinkError(f"job {job} is {document['state']}: {self.failure(job)}")
            if all(vertex["status"] == "RUNNING" for vertex in document["vertices"]):
                return
            if time.monotonic() > deadline:
                raise FlinkError(f"job {job} does not run after {seconds:g} s")
            time.sleep(POLL_SECONDS)

    def failure(self, job: str) -> str:
        """Root cause of a job's failure, one line."""
        history = self.get(f"/jobs/{quote(job, safe='')}/exceptions").get("exceptionHistory", {})
        entries = history.get("entries") or [{"stacktrace": "no exception is known"}]
        return root_cause(entries[0]["stacktrace"])

    def _ended_jobs(self) -> set[str]:
        return {job["id"] for job in self.get("/jobs")["jobs"] if job["status"] in ENDED}

    def _slot_holders(self) -> set[str]:
        """Jobs that have a slot on a TaskManager that answers."""
        found = set()
        for manager in self.task_managers():
            with suppress(FlinkError):  # it has just ended
                detail = self.get(f"/taskmanagers/{quote(manager['id'], safe='')}")
                found |= {slot["jobId"] for slot in detail.get("allocatedSlots", [])}
        return found

    def _ask(self, method: str, path: str, body: bytes | None, kind: str | None) -> Any:
        headers = {} if kind is None else {"Content-Type": kind}
        request = urllib.request.Request(
            self.url.rstrip("/") + path, data=body, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            raise FlinkError(f"Flink answers {error.code}: {_complaint(error.read())}") from None
        except (OSError, ValueError) as error:
            reason = shown(str(getattr(error, "reason", error)))
            raise FlinkError(f"no Flink answers at {self.url}: {reason}") from None


def root_cause(trace: str) -> str:
    r"""Last cause of a Java stack trace.

    >>> root_cause("a.B: first\n\tat x\nCaused by: c.D: the reason\n\tat y")
    'c.D: the reason'
    """
    lines = [line.strip() for line in trace.splitlines() if line and not line.startswith("\t")]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return shown((causes or lines or ["unknown"])[-1], 300)


def _complaint(body: bytes) -> str:
    try:
        errors = json.loads(body)["errors"]
    except (ValueError, KeyError, TypeError):
        return shown(body.decode(errors="replace"), 200)
    return root_cause("\n".join(str(error) for error in errors))
