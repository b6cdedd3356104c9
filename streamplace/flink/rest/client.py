"""Client of Flink's REST interface: access, requests, and ids of jobs.

Flink rejects a job with a known id, of a running job or an ended one. So the id of a successor is a
hash of the id of the job that it replaces: a job has at most one successor, whoever submits it, and
even if the answer to the request is lost.
"""

import base64
import copy
import hashlib
import json
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeVar
from urllib.parse import quote, urlsplit

from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.rest.answers import (
    Job,
    JobVertex,
    finished,
    is_unavailable,
    missing_rule,
    parse_answer,
    parse_complaint,
    root_cause,
)
from streamplace.io.extras import extra
from streamplace.io.files import read_bytes, spot
from streamplace.model.message_text import listed, quoted, shown

if TYPE_CHECKING:
    import httpx

ENDED = frozenset({"FINISHED", "FAILED", "CANCELED"})
SUSPENDED = "SUSPENDED"
"""State of a job whose JobManager has lost its leadership; the next leader recovers the job."""
RUNNING, FINISHED = "RUNNING", "FINISHED"
FAILING_STATES = frozenset({"FAILED", "FAILING", "RESTARTING"})
NO_SLOT = "NoResourceAvailableException"
"""Exception of a job that got no slots in time."""
AT_WORK = frozenset({RUNNING, FINISHED})
"""States of the tasks of a running job; a task that has read all of its input is finished."""
WAITING = ("CREATED", "SCHEDULED", "DEPLOYING")
"""States of subtasks without a slot, or with a TaskManager that has not answered."""
ANSWER_SECONDS = 30.0
"""Timeout for an answer of Flink; most answers come within milliseconds."""
ANSWER_BYTES = 64 * 2**20
"""Maximum size of an answer; a job of a thousand tasks takes a few MiB."""
POLL_SECONDS = 0.1
"""Pause before a request is repeated."""
AFTER_SECONDS = 10.0
"""Maximum time until Flink has released the slots of an ended job, and reports its failure."""
RETRY_SECONDS = 60.0
"""Maximum time for which an unanswered request is repeated, and in which a job starts or ends
(judgement)."""
EFFECT_SECONDS = 3.0
"""Time after which the effect of a failed or unanswered request shows (judgement)."""
JAR_SECONDS = 600.0
"""Timeout for uploading a jar, and for running its main method."""
IDLE_SECONDS = 2.0
"""Time for which an idle connection is kept; servers and gateways keep it longer."""
PORTS = {"http": 80, "https": 443}
AUTHORIZATION = "STREAMPLACE_FLINK_AUTHORIZATION"
"""Environment variable with the text of an authorization file."""
NOT_FOUND = "Could not find Flink job"
T = TypeVar("T")


class FlinkError(StreamplaceError):
    """An error of Flink, or of a job on it."""


class NoAnswer(FlinkError):
    """Flink does not answer, or not at present."""


class Refusal(FlinkError):
    """An answer of Flink itself with an error status."""

    def __init__(self, message: str, complaint: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.complaint = complaint  # the complete answer
        self.status = status  # HTTP status; from 500 on, Flink itself has failed


def task_state(vertex: JobVertex) -> str:
    """State of the subtask of a task that is furthest from running.

    Flink reports a task as RUNNING, or INITIALIZING, as soon as one of its subtasks is.

    >>> counts = {"SCHEDULED": 3, "RUNNING": 1}
    >>> task_state({"id": "", "name": "", "parallelism": 4, "status": "RUNNING", "tasks": counts})
    'SCHEDULED'
    """
    status, counts = vertex["status"], vertex.get("tasks", {})
    if status not in (RUNNING, "INITIALIZING"):
        return status
    return next((state for state in WAITING if counts.get(state)), status)


@dataclass(frozen=True, slots=True)
class Access:
    """How the server and the user are authenticated."""

    authorities: Path | None = None  # certificates of authorities, instead of the system's
    certificate: Path | None = None  # certificate of the client; may contain its private key
    key: Path | None = None  # private key of the client
    # Value of the HTTP header; it is never displayed.
    authorization: str | None = field(default=None, repr=False)
    # File of the authorization, which is read for each request, because tokens expire.
    authorized_by: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of connections."""
        if self.key is not None and self.certificate is None:
            raise SettingError("key is the private key of cert; give both")
        try:
            context = ssl.create_default_context(cafile=self.authorities)
        except OSError as error:
            raise _unreadable(self.authorities, "certificates", error) from None
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, _no_password)
            except OSError as error:
                raise _unreadable(self.certificate, "certificate with its key", error) from None
        return context


def read_authorization(path: Path | None, variable: str = AUTHORIZATION) -> str | None:
    """Value of the HTTP header from a file, or else from an environment variable.

    The text is ``Bearer TOKEN`` or ``NAME:PASSWORD``.
    """
    if path is not None:
        return _authorization(read_bytes(path), spot(path))
    text = os.environ.get(variable)
    return None if text is None else _authorization(os.fsencode(text), f"${variable}")


def _authorization(text: bytes, where: str) -> str:
    """Value of the HTTP header ``Authorization``.

    >>> _authorization(b"me:secret", "file"), _authorization(b"Bearer abc", "file")
    ('Basic bWU6c2VjcmV0', 'Bearer abc')
    """
    words = text.strip()
    if words.startswith(b"Bearer ") and words.isascii() and words.decode().isprintable():
        return words.decode()
    if b":" in words and b"\n" not in words:
        return f"Basic {base64.b64encode(words).decode()}"
    raise SettingError(f"{where}: is not an authorization; write 'Bearer TOKEN' or 'NAME:PASSWORD'")


def _unreadable(path: Path | None, what: str, error: OSError) -> SettingError:
    reason = shown(error.strerror or str(error) or "its key needs a password", 200)
    return SettingError(f"{path}: contains no {what} (PEM): {reason}")


def _no_password() -> str:
    raise OSError("its key is protected by a password; use a key without one")


def plain_address(url: str) -> str:
    """Address of a server, with its port and without a slash at the end.

    >>> plain_address("https://flink.example/api/")
    'https://flink.example:443/api'
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    is_malformed = not url.isascii() or not url.isprintable() or " " in url
    if is_malformed or not host or parts.scheme not in PORTS or parts.query or parts.fragment:
        raise SettingError(f"{masked(url)} is not an address; write http://HOST:8081")
    if "@" in parts.netloc:  # printed commands and journals would show or lack it
        raise SettingError(
            f"{masked(url)} has a name or a password before its host; give --authorization FILE"
        )
    host = f"[{host}]" if ":" in host else host
    port = PORTS[parts.scheme] if port is None else port
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}"


def masked(url: str) -> str:
    """Quote an address, or a text in its place, without a password.

    >>> masked("ftp://me:secret@host:21"), masked("localhost:8081")
    ("'…@host:21'", "'localhost:8081'")
    """
    _, at, host = url.rpartition("@")
    return f"'{shown('…@' + host if at else url)}'"


def http_client(address: str, access: Access) -> "httpx.Client":
    """Client of a server; it keeps idle connections for `IDLE_SECONDS`."""
    extra("httpx", "flink")
    import httpx

    is_encrypted = address.startswith("https:")
    if not is_encrypted and any((access.authorities, access.certificate, access.key)):
        raise SettingError(f"{address} is not encrypted; certificates need an https:// address")
    latest = access.authorization

    def authorized(request: httpx.Request) -> httpx.Request:
        nonlocal latest
        if access.authorized_by is not None:
            with suppress(StreamplaceError):  # the file is being replaced
                latest = read_authorization(access.authorized_by)
        if latest:
            request.headers["Authorization"] = latest
        return request

    return httpx.Client(
        auth=authorized,
        limits=httpx.Limits(keepalive_expiry=IDLE_SECONDS),
        trust_env=False,
        verify=access.context() if is_encrypted else False,
    )


class JobResource(Protocol):
    """A resource of Flink's operator; its text is one line."""

    @property
    def has_autoscaler(self) -> bool:
        """Whether Flink's autoscaler chooses the parallelism; REST does not show that."""
        ...

    @property
    def job_id(self) -> str:
        """Id of its job when it was read; empty if the operator reports none."""
        ...

    @property
    def counts_pods(self) -> bool:
        """Whether it sets the number of pods, so that the job uses all of their slots."""
        ...


class Rest:
    """A cluster's REST interface.

    Requests do not use a proxy, and redirections are not followed.

    ``url``: address such as ``http://localhost:8081``.
    ``access``: certificates and authorization.
    """

    patience = 0.0  # seconds for which an unanswered request is repeated
    resource: JobResource | None = None  # resource in the address, kubernetes:NAMESPACE/NAME
    # Receives a message when a request is first repeated.
    tell: Callable[[str], None] = staticmethod(lambda _: None)

    def __init__(self, url: str, access: Access | None = None) -> None:
        self.url = self._address = plain_address(url)
        self._path = urlsplit(self.url).path
        self._client = http_client(self.url, access or Access())

    @classmethod
    def through(
        cls, name: str, address: str, client: "httpx.Client", resource: JobResource
    ) -> "Rest":
        """Interface behind a proxy with its own client; messages contain ``name``."""
        rest = cls.__new__(cls)
        rest.url, rest._address, rest._client = name, plain_address(address), client
        rest.resource = resource
        rest._path = urlsplit(rest._address).path
        return rest

    def get(self, path: str) -> Any:
        """Parsed answer to a GET request."""
        return self._parsed(path, self._patiently(self._ask, "GET", path))

    def patient(self, seconds: float, tell: Callable[[str], None]) -> "Rest":
        """Return a client that repeats unanswered requests for some time.

        Only for requests that Flink may receive twice: queries, and requests with an id.
        """
        other = copy.copy(self)
        other.patience, other.tell = seconds, tell
        return other

    def post(self, path: str, document: object, seconds: float = JAR_SECONDS) -> Any:
        """Parsed answer to a POST request with a JSON document."""
        content = self._patiently(self._ask, "POST", path, seconds, document)
        return self._parsed(path, content)

    def task_managers(self) -> list[dict[str, Any]]:
        """TaskManagers with their ids, total and free resources."""
        managers: list[dict[str, Any]] = self.get("/taskmanagers")["taskmanagers"]
        return managers

    def settings(self) -> dict[str, str]:
        """Return the configuration of the JobManager, by key."""
        return {row["key"]: row["value"] for row in self.get("/jobmanager/config")}

    def offered(self) -> dict[str, dict[str, float]]:
        """TaskManager → total amounts of its external resources."""
        return {
            manager["id"]: manager["totalResource"].get("extendedResources", {})
            for manager in self.task_managers()
        }

    def job(self, job: str) -> Job:
        """State and vertices of a job; raise NoAnswer while it is suspended."""
        if not job:
            raise SettingError("the id of the job is empty; give the id of a job, as --job ID")

        def ask() -> Job:
            path = job_path(job)
            answer: Job = self._parsed(path, self._ask("GET", path))
            if answer["state"] == SUSPENDED:
                raise NoAnswer(f"job {shown(job)} is suspended until a JobManager takes it over")
            for vertex in answer["vertices"]:
                vertex["status"] = task_state(vertex)
            return answer

        return self._patiently(ask)

    def state(self, job: str) -> str | None:
        """State of a job; None if Flink does not know the job."""
        try:
            return str(self.job(job)["state"])
        except Refusal as error:
            if NOT_FOUND in str(error):
                return None
            raise

    def jobs(self) -> dict[str, str]:
        """Job → state, including jobs that have ended.

        Flink never refuses this request, so a refusal comes from a gateway in front of it.
        """
        try:
            return {job["id"]: job["status"] for job in self.get("/jobs")["jobs"]}
        except Refusal as error:
            raise NoAnswer(str(error)) from None

    def running_job(self, job: str) -> Job:
        """State and vertices of a running job; otherwise raise FlinkError with the reason."""
        document = self.job(job)
        if document["state"] == FINISHED:
            raise FlinkError(f"{finished(job)}; only a running job can be examined")
        if document["state"] != RUNNING:
            why = self.failure(job) if document["state"] in FAILING_STATES else ""
            advice = self._advice(job) if NO_SLOT in why else None
            raise FlinkError(
                f"job {shown(job)} is {shown(document['state'])}, not RUNNING; "
                f"{advice or 'wait for it or start it again'}{': ' if why else ''}{why}"
            )
        for vertex in document["vertices"]:
            if vertex["status"] not in AT_WORK or vertex["parallelism"] < 1:
                raise FlinkError(
                    f"job {shown(job)} is not running (yet, or any more): its task "
                    f"{quoted(vertex['name'])} is {shown(vertex['status'])}; "
                    f"{self._advice(job) or 'wait until all of them run'}"
                )
        return document

    def _advice(self, job: str) -> str | None:
        """Advice for a job that waits for slots while other jobs have some of every TaskManager."""
        holders = [set(self.holders(manager["id"])) for manager in self.task_managers()]
        if not holders or any(job in jobs or not jobs for jobs in holders):
            return None
        return (
            "it has no slot, because every TaskManager has slots of other jobs: a job without a "
            "placement requests whole TaskManagers, so submit it with 'streamplace flink apply', "
            "or cancel the others"
        )

    def live_jobs(self) -> list[str]:
        """Ids of the jobs that have not ended, and are not suspended."""
        return [job for job, state in self.jobs().items() if state not in {*ENDED, SUSPENDED}]

    def upload(self, jar: Path) -> str:
        """Upload a jar and return its id."""
        path = "/jars/upload"
        with jar.open("rb") as file:
            files = {"jarfile": (jar.name, file, "application/x-java-archive")}
            content = self._patiently(self._ask, "POST", path, JAR_SECONDS, None, files)
        return str(self._parsed(path, content)["filename"]).rsplit("/", 1)[-1]

    def remove_jar(self, jar: str) -> None:
        """Remove an uploaded jar."""
        self._patiently(self._ask, "DELETE", f"/jars/{quote(jar, safe='')}")

    def run_jar(self, jar: str, entry_class: str | None, arguments: Sequence[str] = ()) -> str:
        """Run a jar's main class and return the id of the job that it submits."""
        entry = {} if entry_class is None else {"entryClass": entry_class}
        document: dict[str, object] = {"programArgsList": [*arguments], **entry}
        return str(self.post(f"/jars/{quote(jar, safe='')}/run", document)["jobid"])

    def cancel(self, job: str) -> str:
        """Cancel a job; return its last state after its slots were released."""
        state = str(self.job(job)["state"])
        if state not in ENDED:
            try:
                self._patiently(self._ask, "PATCH", job_path(job))
            except Refusal as error:
                if error.status != HTTPStatus.CONFLICT:  # it has ended by itself
                    raise
            state = self.wait(job, ENDED)
        self.wait_released()
        return state

    def wait_released(self) -> None:
        """Wait up to `AFTER_SECONDS` until TaskManagers have released the slots of ended jobs."""
        ended = {job for job, state in self.jobs().items() if state in ENDED}
        rows = self.task_managers() if ended else []
        devices = [row["id"] for row in rows if row["freeResource"] != row["totalResource"]]
        for _ in turns(AFTER_SECONDS):
            while devices and not self._has_slot(devices[0], ended):
                del devices[0]
            if not devices:
                return

    def _has_slot(self, device: str, jobs: set[str]) -> bool:
        """Whether one of the jobs has a slot on a TaskManager."""
        with suppress(Refusal):  # the TaskManager has just ended
            return not jobs.isdisjoint(self.holders(device))
        return False

    def wait(self, job: str, states: frozenset[str], seconds: float = RETRY_SECONDS) -> str:
        """Wait until a job is in one of the states, and return that state."""
        for _ in turns(seconds):
            if (state := str(self.job(job)["state"])) in states:
                return state
        raise FlinkError(f"job {shown(job)} is still {shown(state)} after {seconds:g} s")

    def wait_running(self, job: str, seconds: float = RETRY_SECONDS) -> None:
        """Wait until every subtask of a job runs, or has read all of its input.

        Raise FlinkError with the reason if the job ends before.
        """
        for _ in turns(seconds):
            document = self.job(job)
            if document["state"] == FINISHED:
                raise FlinkError(f"{finished(job)} before all of it ran")
            if document["state"] in ENDED:
                raise FlinkError(f"job {shown(job)} is {document['state']}: {self.failure(job)}")
            states = {vertex["status"] for vertex in document["vertices"]}
            if states and states <= AT_WORK:  # while a job is recovered, it has no tasks
                return
        raise FlinkError(f"job {shown(job)} does not run after {seconds:g} s")

    def failure(self, job: str) -> str:
        """Root cause of a job's failure, one line; Flink reports it some time after the failure."""
        for _ in turns(AFTER_SECONDS):
            answer = self.get(job_path(job, "exceptions"))
            if entries := answer.get("exceptionHistory", {}).get("entries"):
                return root_cause(entries[0].get("stacktrace", ""))
            if self.job(job)["state"] not in FAILING_STATES:
                break
        return root_cause("no exception is known")

    def holders(self, device: str) -> list[str]:
        """Jobs with a slot on a TaskManager."""
        slots = self.task_manager(device).get("allocatedSlots", [])
        return sorted({slot["jobId"] for slot in slots})

    def task_manager(self, device: str) -> dict[str, Any]:
        """Return a TaskManager with its allocated slots."""
        manager: dict[str, Any] = self.get(f"/taskmanagers/{quote(device, safe='')}")
        return manager

    def _patiently(self, ask: Callable[..., T], *words: object) -> T:
        """Result of a function that is repeated for `patience` while there is no answer."""
        deadline, is_first = time.monotonic() + self.patience, True
        while True:
            try:
                return ask(*words)
            except NoAnswer as error:
                if time.monotonic() >= deadline:
                    raise
                if is_first:
                    self.tell(f"{error}; trying again")
                is_first = False
            time.sleep(POLL_SECONDS)

    def _parsed(self, path: str, content: bytes) -> Any:
        """Parse the content of an answer."""
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
        seconds: float = ANSWER_SECONDS,
        document: object = None,
        files: Mapping[str, tuple[str, BinaryIO, str]] | None = None,
    ) -> bytes:
        """Content of the answer to a request that is sent once."""
        import httpx

        try:
            target = f"{self._path}{path}"  # not normalized, even if an id is ".."
            answer, content = _within(
                seconds,
                partial(
                    send_request,
                    self._client,
                    method,
                    self._address,
                    target,
                    seconds,
                    document,
                    files,
                ),
            )
        except (httpx.TimeoutException, TimeoutError):
            raise NoAnswer(f"no Flink answers at {self.url} within {seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = shown(str(error) or type(error).__name__)
            if "Connection refused" in reason:
                reason = "connection refused; start it, or correct the address"
            raise NoAnswer(f"no Flink answers at {self.url}: {reason}") from None
        if answer.status_code >= 400:
            complaint = parse_complaint(content)
            message = f"Flink answers {answer.status_code}: {root_cause(complaint)}"
            message += "; give a valid --authorization" if answer.status_code == 401 else ""
            if self.resource is not None and answer.status_code == 403:
                message = f"a right is missing: {shown(missing_rule(complaint), 300)}"
            if is_unavailable(answer.status_code, complaint):
                raise NoAnswer(message)
            raise Refusal(message, complaint, answer.status_code)
        # A gateway in front of Flink sends its login or maintenance page, or redirects to it.
        if answer.status_code >= 300:
            location = answer.headers.get("Location")
            target = f" to {masked(location)}" if location else ""
            raise NoAnswer(
                f"{self.url} redirects{target}, and redirects are not followed; use Flink's own "
                "address"
            )
        if content.lstrip()[:1] == b"<":
            raise NoAnswer(f"no Flink answers at {self.url}: a web page came instead")
        return content


def send_request(
    client: "httpx.Client",
    method: str,
    address: str,
    target: str,
    seconds: float,
    document: object = None,
    files: Mapping[str, tuple[str, BinaryIO, str]] | None = None,
    kind: str = "application/json",
) -> tuple["httpx.Response", bytes]:
    """Send a request; return the head and the content of the answer.

    Raise an error of httpx for an answer that takes too long or has too many bytes.
    """
    import httpx

    deadline, content = time.monotonic() + seconds, bytearray()
    with client.stream(
        method,
        address,
        content=None if document is None else json.dumps(document).encode(),
        files=files,
        headers={"Accept-Encoding": "identity"}
        | ({} if document is None else {"Content-Type": kind}),
        timeout=seconds,
        extensions={"target": target.encode()},
    ) as answer:
        answer.headers.pop("Content-Encoding", None)  # few bytes may decompress to gigabytes
        for part in answer.iter_bytes():
            content += part
            if len(content) > ANSWER_BYTES:
                raise httpx.ReadError(f"an answer has more than {ANSWER_BYTES} bytes")
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout("")
    return answer, bytes(content)


def _within(seconds: float, request: Callable[[], T]) -> T:
    """Result of a request within some time in all; otherwise raise TimeoutError.

    Another thread sends the request: timeouts of httpx are for each read, and it looks up the name
    of a host without a timeout.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(request())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, daemon=True).start()
    return result.result(seconds)


def turns(seconds: float) -> Iterator[None]:
    """Turns of waiting, at least one, with pauses of `POLL_SECONDS`."""
    deadline = time.monotonic() + seconds
    while True:
        yield
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_SECONDS)


def only_job(rest: Rest, job: str | None) -> str:
    """Job ID: given, or the only active one, or the resource's.

    Flink accepts ids in capitals, too, but the id of a successor is the hash of small letters.
    """
    if job is not None:
        return job.lower()
    states, live = rest.jobs(), rest.live_jobs()
    if len(live) > 1:
        if rest.resource is not None and rest.resource.job_id in live:
            return rest.resource.job_id
        names = ", ".join(f"{job} ({shown(str(rest.job(job)['name']))})" for job in live[:8])
        raise SettingError(f"{len(live)} jobs are running: {names}; choose one with --job ID")
    if not live and SUSPENDED in states.values():
        waiting = listed([name for name, state in states.items() if state == SUSPENDED])
        raise SettingError(
            f"no job is running; wait until a JobManager takes over suspended jobs: {waiting}"
        )
    if not live:
        others = "; ".join(f"{shown(name)} is {shown(states[name])}" for name in [*states][:8])
        raise SettingError(
            f"no job is running{others and f' ({others})'}; start one, or name one with --job ID"
        )
    return live[0]


def job_path(job: str, *steps: str) -> str:
    """Path of a job, or below it, with quoted ids.

    >>> job_path("a/b", "vertices", "c")
    '/jobs/a%2Fb/vertices/c'
    """
    return "/".join(["/jobs", *(quote(step, safe="") for step in (job, *steps))])


def chosen_id(purpose: str) -> str:
    """Id that all commands choose for a purpose, so that Flink accepts one of their requests."""
    return hashlib.sha256(f"streamplace {purpose}".encode()).hexdigest()[:32]


def successor(job: str) -> str:
    """Id of the successor of a job.

    >>> successor("0" * 32)
    'cf11261d0af4f3b322e9c4b7ae85b901'
    """
    return chosen_id(f"successor of {job}")


def chain_of(job: str, length: int = 64) -> list[str]:
    """Ids of a job and of its successors in a move and its returns, in order.

    Every failed start uses one, so they suffice for hours.
    """
    ids = [job]
    while len(ids) < length:
        ids.append(successor(ids[-1]))
    return ids


def stop_trigger(job: str, number: int) -> str:
    """Id of the n-th request that stops a job so that it can be moved."""
    return chosen_id(f"stop {number} of {job}")


def return_trigger(job: str) -> str:
    """Id of the request that stops a job so that it can return to its previous devices."""
    return chosen_id(f"return of {job}")
