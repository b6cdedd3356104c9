"""Stopping: make the savepoint with which a job is stopped, and wait for it."""

import secrets
import time
from dataclasses import dataclass
from urllib.parse import quote

from streamplace.engines.flink.move.state import refuse_fault, suppress_missing
from streamplace.engines.flink.rest.answers import SavepointAnswer, root_cause
from streamplace.engines.flink.rest.client import (
    ENDED,
    SUBMIT_SECONDS,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
)
from streamplace.model.defaults import SAVEPOINT_SECONDS

SAVE_POLL_SECONDS = 0.05
UNDER_WAY = "IN_PROGRESS"
"""Status of a stop request that Flink is still carrying out."""


@dataclass(frozen=True, slots=True)
class Saving:
    """How the state of a job is saved."""

    seconds: float = SAVEPOINT_SECONDS  # maximum number of seconds for the savepoint
    # Whether it has the format of the state backend: faster, but usable by this backend only.
    native: bool = False


def stop(rest: Rest, job: str, folder: str | None) -> str:
    """Stop a job with a savepoint and return its path.

    All machines of the cluster must be able to write to the folder; None stands for the cluster's
    own. Requests that Flink does not answer are repeated. Raises FlinkError when the savepoint
    fails; the job continues to run.
    """
    patient = rest.patient(SAVEPOINT_SECONDS, rest.tell)
    request = begin_stop(patient, job, folder, secrets.token_hex(16))
    path = stopped_at(patient, job, request)
    patient.wait(job, ENDED)
    patient.wait_released()
    return path


def begin_stop(
    rest: Rest,
    job: str,
    folder: str | None,
    trigger: str,
    *,
    native: bool = False,
    seconds: float = SUBMIT_SECONDS,
) -> str:
    """Request that a job be stopped with a savepoint; return the id of the request, its trigger.

    The trigger, the id of the request, is chosen in advance so that the request can be repeated.
    """
    request: dict[str, object] = {"drain": False, "triggerId": trigger}
    request["formatType"] = "NATIVE" if native else "CANONICAL"
    if folder is not None:
        request["targetDirectory"] = folder
    answer = rest.post(f"/jobs/{quote(job, safe='')}/stop", request, seconds)
    return str(answer["request-id"])


class StillSaving(NoAnswer):
    """A savepoint is not complete within its time limit; Flink continues with it."""


def stop_status(rest: Rest, job: str, request: str) -> str | None:
    """Status of a request that stops a job; None if Flink does not know the request."""
    with suppress_missing():
        answer = rest.get(f"/jobs/{quote(job, safe='')}/savepoints/{quote(request, safe='')}")
        return str(answer["status"]["id"])
    return None


def stopped_at(rest: Rest, job: str, request: str, seconds: float = SAVEPOINT_SECONDS) -> str:
    """Wait for the savepoint with which a job is being stopped, and return its path.

    Raises StillSaving when it is not complete within ``seconds``. Raises Refusal when Flink does
    not know the request. Raises FlinkError when the job cannot be saved.
    """
    path = f"/jobs/{quote(job, safe='')}/savepoints/{quote(request, safe='')}"
    deadline = time.monotonic() + seconds
    while True:
        try:
            answer: SavepointAnswer = rest.get(path)
        except Refusal as error:
            refuse_fault(error)
            raise
        if answer["status"]["id"] == "COMPLETED":
            break
        if time.monotonic() > deadline:
            raise StillSaving(
                f"the savepoint of job {job} is not complete after {seconds:g} s, and Flink goes "
                "on with it"
            )
        time.sleep(SAVE_POLL_SECONDS)
    operation = answer.get("operation") or {}
    if "location" not in operation:
        trace = str((operation.get("failure-cause") or {}).get("stack-trace", ""))
        raise FlinkError(f"job {job} cannot be saved: {root_cause(trace)}")
    return operation["location"]
