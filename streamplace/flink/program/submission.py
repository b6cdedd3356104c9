"""Upload jars, and submit jobs under ids that are chosen in advance, so that each is started once.

A restarted JobManager has lost the jars, so they are uploaded again. A request without an answer
may have started its job, which is looked up by its id.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamplace.flink.program.jars import SPENT
from streamplace.flink.rest.answers import OURS
from streamplace.flink.rest.client import (
    EFFECT_SECONDS,
    ENDED,
    JAR_SECONDS,
    RETRY_SECONDS,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    chain_of,
    turns,
)

DUPLICATE = ("DuplicateJobSubmissionException", "DuplicateApplicationSubmissionException")
"""Exceptions for an id that Flink has accepted before, whether or not it still lists the job.

In Flink 2.3, which throws the second one, every job belongs to an application with its id.
"""
UNMAPPED = "Cannot map checkpoint/savepoint state"
_MISSING = re.compile(r"Jar file .+ does not exist")


@dataclass(slots=True)
class ClusterJar:
    """A jar on the cluster."""

    rest: Rest
    file: Path  # the jar on this machine, under a name of its own, for as long as it is needed
    id: str  # id of the last upload

    def run(
        self, request: dict[str, object], rest: Rest | None = None, seconds: float = JAR_SECONDS
    ) -> Any:
        """Run the jar and return the answer; upload the jar again if the JobManager has lost it.

        ``rest``: client for the request; by default the client for uploads.
        """
        client = rest or self.rest

        def post() -> Any:
            return client.post(f"/jars/{quote(self.id, safe='')}/run", request, seconds)

        try:
            return post()
        except Refusal as error:
            if _MISSING.search(error.complaint) is None:
                raise
        self.rest.tell("the JobManager has lost the uploaded jar; uploading it again")
        self.id = self.rest.upload(self.file)
        return post()


@contextmanager
def uploaded(rest: Rest, file: Path) -> Iterator[ClusterJar]:
    """Upload a jar, and remove all uploads of it, also those without an answer, after the block."""
    jar = ClusterJar(rest, file, rest.upload(file))
    try:
        yield jar
    finally:
        with suppress(FlinkError):
            rest.remove_jar(jar.id)
        with suppress(FlinkError):
            for row in rest.get("/jars")["files"]:
                if row["name"] == file.name:
                    rest.remove_jar(row["id"])


def unique_name(name: str) -> str:
    """Unique name of a jar, of characters that Flink does not escape.

    >>> unique_name("my job.jar").endswith("_my_job.jar")
    True
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    return f"streamplace-{secrets.token_hex(8)}_{plain}"


def chain_states(rest: Rest, job: str) -> dict[str, str]:
    """States of a job and its successors that Flink knows, in order."""
    states = rest.jobs()
    return {name: states[name] for name in chain_of(job) if name in states}


def live_states(rest: Rest, job: str) -> dict[str, str]:
    """States of a job and its successors that have not ended, in order."""
    return {name: state for name, state in chain_states(rest, job).items() if state not in ENDED}


def submit(
    rest: Rest,
    jar: ClusterJar,
    request: dict[str, object],
    job: str,
    await_ready: Callable[[], None],
    seconds: float = RETRY_SECONDS,
) -> bool:
    """Submit a job under an id from a jar; the job exists when this returns.

    Returns whether this call has started the job or may have started it; False if an earlier
    request with the same id did. Before each request, ``await_ready`` waits until the cluster can
    run the job, or raises an error, because the JobManager may have been restarted. Raises NoAnswer
    when it is unknown whether the job exists, and the patience of the client since the first
    request without an answer is over.
    """
    impatient = rest.patient(0.0, rest.tell)
    deadline: float | None = None
    while True:
        await_ready()
        try:
            jar.run({**request, "jobId": job}, impatient, seconds)
            return True
        except NoAnswer as error:
            deadline = deadline or time.monotonic() + rest.patience
            rest.tell(f"{error}; checking whether job {job} was started")
            if _state_within(rest, job, EFFECT_SECONDS) is not None:
                return True
            if time.monotonic() > deadline:
                raise
        except Refusal as error:
            state = _state_if_refused(rest, job, error)
            # Flink lists a job as failed if it cannot restore its state.
            if state is None or (state == "FAILED" and not is_spent(error)):
                raise explained(error) from None
            return deadline is not None


def is_spent(error: BaseException) -> bool:
    """Whether Flink refuses to start a job because it has accepted its id before."""
    return isinstance(error, Refusal) and any(name in error.complaint for name in DUPLICATE)


def _state_if_refused(rest: Rest, job: str, error: FlinkError) -> str | None:
    """State of a job that Flink refuses to start; None if it lists no such job, now or soon.

    A job with a spent id that is not listed ended long ago.
    """
    if not is_spent(error):
        return rest.state(job)
    rest.tell(f"job {job} was submitted before; looking for it")
    return _state_within(rest, job, RETRY_SECONDS)


def explained(error: FlinkError) -> FlinkError:
    """Error for a job that Flink rejects, with the message of the pinning class if it has one."""
    if UNMAPPED in str(error):
        return FlinkError(
            f"{UNMAPPED} to the job: the savepoint contains state of operators that this job does "
            "not have; submit the job that was saved, or drop that state (allow-non-restored in "
            "--settings)"
        )
    _, ours, fault = str(error).partition(OURS)
    return FlinkError(fault.partition("\n")[0]) if ours else error


def _state_within(rest: Rest, job: str, seconds: float) -> str | None:
    """State of a job, once it is listed within some seconds; None otherwise."""
    for _ in turns(seconds):
        if (state := rest.state(job)) is not None:
            return state
    return None


def use_up(rest: Rest, jar: Callable[[], ClusterJar], job: str) -> None:
    """Use up the id of a job that Flink does not list, so that no earlier request starts it later.

    If one has started it meanwhile, the job is listed afterwards. ``jar`` uploads any jar that pins
    a job.
    """
    try:
        jar().run({"entryClass": SPENT, "jobId": job})
        rest.cancel(job)
    except FlinkError as error:
        if _state_if_refused(rest, job, error) is None and not is_spent(error):
            raise


def withdraw(rest: Rest, jar: Callable[[], ClusterJar], job: str) -> None:
    """Ensure that a job neither runs nor will run: cancel it, or use up its id."""
    if rest.state(job) is None:
        use_up(rest, jar, job)
    if rest.state(job) not in (None, *ENDED):
        rest.cancel(job)
