"""Savepoints and checkpoints: their folder, a stop with a savepoint, the last state, copies.

Flink lists the checkpoints and savepoints of the jobs that it knows. It lets any number of jobs
start from one savepoint, and each copy would write its own output. A job that another user has
ended is not started again.
"""

import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, NamedTuple

from streamplace.flink.move.decision_table import Stop
from streamplace.flink.move.journal import unfinished
from streamplace.flink.rest.answers import (
    MAX_TEXT,
    CheckpointAnswer,
    CheckpointSettings,
    root_cause,
)
from streamplace.flink.rest.client import (
    ANSWER_SECONDS,
    ENDED,
    FINISHED,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    chain_of,
    chosen_id,
    job_path,
    turns,
)
from streamplace.model.defaults import SAVEPOINT_SECONDS
from streamplace.model.message_text import quoted, shown

STOPPING = "SYNC_SAVEPOINT"
"""Type of the savepoint with which a job is stopped."""
START_STATES = ("INITIALIZING", "CREATED")
RETAINED, IF_FAILED = "retain_on_cancellation", "delete_on_cancellation"
NOT_RETAINED = "no_externalized_checkpoints"
"""Flink's words for the retention of checkpoints after the end of a job."""
SAVEPOINT_FOLDERS = ("execution.checkpointing.savepoint-dir", "state.savepoints.dir")
"""Flink's settings for the folder of savepoints; the second is the older name."""
LEFT_NOTHING = "left no checkpoint or savepoint; submit it again"
_MAKER = re.compile(r"/(?:([0-9a-f]{32})/chk-\d+|savepoint-([0-9a-f]{6})-[0-9a-f]+)/?$")
_URI = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?)?(.*)", re.DOTALL)


class EndedByOthers(FlinkError):
    """Another user has cancelled or stopped a job, so it is not started again."""


class CopyRuns(FlinkError):
    """A job already continues from the state, so nothing was started."""


class CheckpointTotals(NamedTuple):
    """Numbers of completed and failed checkpoints of a job."""

    completed: int
    failed: int


@contextmanager
def suppress_missing() -> Iterator[None]:
    """Leave the block if Flink does not find a requested object.

    An error within Flink does not show that the object is missing, and raises NoAnswer.
    """
    try:
        yield
    except Refusal as error:
        if error.status >= 500:
            raise NoAnswer(str(error)) from None


def savepoint_folder(*settings: Mapping[str, str]) -> str | None:
    """Folder of savepoints in the first settings that have one; None if there is none.

    >>> savepoint_folder({}, {"state.savepoints.dir": "/old"})
    '/old'
    """
    return next((row[key] for row in settings for key in SAVEPOINT_FOLDERS if row.get(key)), None)


def stop(rest: Rest, job: str, folder: str | None) -> str:
    """Stop a job with a savepoint and return its path.

    All machines of the cluster must be able to write to the folder; None is the cluster's folder.
    Requests that Flink does not answer are repeated. Raises FlinkError when the savepoint fails;
    the job continues to run.
    """
    patient, trigger = rest.patient(SAVEPOINT_SECONDS, rest.tell), secrets.token_hex(16)
    request = begin_stop(patient, job, folder, trigger)
    path = saved_at(patient, job, request, SAVEPOINT_SECONDS)
    with suppress(FlinkError):  # the cluster of an application ends with its job
        rest.wait(job, ENDED)
        rest.wait_released()
    return path


def begin_stop(
    rest: Rest, job: str, folder: str | None, trigger: str, *, native: bool = False
) -> str:
    """Request a stop with a savepoint; return the id of the request.

    The caller chooses this id, the trigger, so that the request can be repeated.
    """
    request: dict[str, object] = {"drain": False, "triggerId": trigger}
    request["formatType"] = "NATIVE" if native else "CANONICAL"
    if folder is not None:
        request["targetDirectory"] = folder
    answer = rest.post(job_path(job, "stop"), request, ANSWER_SECONDS)
    return str(answer["request-id"])


def stop_of(rest: Rest, job: str, request: str) -> tuple[Stop, str]:
    """Result of a request that stops a job, with the path of its savepoint or its failure."""
    with suppress_missing():
        answer = rest.get(job_path(job, "savepoints", request))
        if answer["status"]["id"] != "COMPLETED":
            return Stop.UNDER_WAY, ""
        operation = answer.get("operation") or {}
        if "location" in operation:
            return Stop.SAVED, str(operation["location"])
        cause = operation.get("failure-cause") or {}
        return Stop.FAILED, root_cause(cause.get("stack-trace", ""))
    return Stop.UNKNOWN, ""


def saved_at(rest: Rest, job: str, request: str, seconds: float) -> str:
    """Wait until a request that stops a job has saved it, and return the path of its savepoint.

    Raises NoAnswer when the savepoint is not complete within ``seconds``; Flink continues it.
    Raises Refusal when Flink does not know the request, and FlinkError when the savepoint fails.
    """
    for _ in turns(seconds):
        stop, text = stop_of(rest, job, request)
        if stop is Stop.UNKNOWN:
            raise Refusal(f"Flink no longer knows the request that stops job {job}")
        if stop is Stop.FAILED:
            raise FlinkError(f"job {job} cannot be saved: {text}")
        if stop is Stop.SAVED:
            return text
    raise NoAnswer(
        f"the savepoint of job {job} is not complete after {seconds:g} s, and Flink continues it"
    )


def _checkpoints_of(rest: Rest, job: str, *more: str) -> Any:
    """Flink's answer on the checkpoints of a job; empty if it takes none."""
    with suppress_missing():
        return rest.get(job_path(job, "checkpoints", *more))
    return {}


def latest(rest: Rest, job: str) -> Mapping[str, CheckpointAnswer]:
    """Last ``completed`` checkpoint, ``savepoint`` and ``restored`` state of a job."""
    rows = _checkpoints_of(rest, job).get("latest") or {}
    return {kind: row for kind, row in rows.items() if row is not None}


def checkpoint_totals(rest: Rest, job: str) -> CheckpointTotals:
    """Numbers of completed and failed checkpoints of a job; 0 if it takes none."""
    counts = _checkpoints_of(rest, job).get("counts", {})
    return CheckpointTotals(counts.get("completed", 0), counts.get("failed", 0))


def _kept(rest: Rest, job: str, rows: Mapping[str, CheckpointAnswer]) -> str | None:
    """Path of the last state that outlives a job: of its latest savepoint or checkpoint, or None.

    Flink also reports deleted savepoints, so the last checkpoint is preferred to a savepoint that
    did not stop the job.
    """
    savepoint, checkpoint = rows.get("savepoint", {}), rows.get("completed", {})
    saved, completed = path_of(savepoint), path_of(checkpoint)
    is_later = completed is None or savepoint.get("id", 0) >= checkpoint.get("id", 0)
    if saved is not None and is_later and savepoint.get("checkpoint_type", STOPPING) == STOPPING:
        return saved
    if completed is not None and (settings := checkpoint_settings(rest, job)) is not None:
        retention = retention_of(settings)
        if retention == RETAINED or (retention == IF_FAILED and rest.job(job)["state"] == "FAILED"):
            return completed
    return saved if is_later else None


def resumable(rest: Rest, job: str) -> str | None:
    """Path from which a job can continue after its end; its initial one if it saved nothing."""
    rows = latest(rest, job)
    if rows.keys() & {"savepoint", "completed"}:
        return _kept(rest, job, rows)
    return path_of(rows.get("restored", {}))


def last_kept(rest: Rest, job: str) -> str | None:
    """Path of the last state that outlives a job; None if there is none, or no such job."""
    with suppress(Refusal):
        return _kept(rest, job, latest(rest, job))
    return None


def state_clause(rest: Rest, job: str) -> str:
    """Clause on the remaining state of a job that has ended; empty if there is none."""
    path = last_kept(rest, job)
    return "" if path is None else f"; its state is in {shown(path, MAX_TEXT)}"


def stopped_with(rest: Rest, job: str) -> str | None:
    """Path of the savepoint with which a job was stopped; None if it was not stopped."""
    row = latest(rest, job).get("savepoint", {})
    return path_of(row) if row.get("checkpoint_type") == STOPPING else None


def checkpoint_settings(rest: Rest, job: str) -> CheckpointSettings | None:
    """Checkpointing settings of a job; None if it takes no checkpoints."""
    return _checkpoints_of(rest, job, "config") or None


def retention_of(settings: CheckpointSettings) -> str:
    """Retention of the checkpoints of a job, in Flink's words."""
    answer = settings["externalization"]
    if not answer["enabled"]:
        return NOT_RETAINED
    return IF_FAILED if answer["delete_on_cancellation"] else RETAINED


def path_of(row: CheckpointAnswer) -> str | None:
    """Path of a checkpoint, if it is in a file."""
    path = row.get("external_path")
    return path if path and not path.startswith("<") else None


def refuse_ended(rest: Rest, job: str) -> None:
    """Raise EndedByOthers if another user has cancelled a job, or stopped it with a savepoint."""
    state = rest.state(job)
    if is_cancelled := state in ("CANCELLING", "CANCELED"):  # Flink itself never cancels a job
        rest.wait(job, ENDED)
    elif state != FINISHED or stopped_with(rest, job) is None:
        return
    raise EndedByOthers(
        f"job {job} was {'cancelled' if is_cancelled else 'stopped'} by another user, and is not "
        f"started again{state_clause(rest, job)}"
    )


def refuse_moved(path: str) -> None:
    """Raise CopyRuns if a savepoint or checkpoint belongs to an unfinished move."""
    for journal in unfinished():
        if _is_made_by(path, chain_of(journal.job)) or same_place(path, journal.savepoint):
            raise CopyRuns(
                f"{shown(path, MAX_TEXT)} belongs to a move of job {journal.job} that has not "
                f"finished; nothing was started. Finish the move with: {journal.resume_by}"
            )


def refuse_copy(rest: Rest, path: str, chain: Sequence[str] = (), name: str = "") -> None:
    """Raise CopyRuns if a job that has not ended was started from a state, or has taken it.

    For the state of a moved job, ``chain`` is that job with its successors, and ``name`` is their
    name. Other jobs, which no move has started, are then refused as well if they were started after
    the first job of the chain had ended, from

    - any state of the chain;
    - a state that Flink no longer reports, because the job has restarted from a checkpoint of its
      own; it is recognised by the name of the chain.

    If the cluster has forgotten the first job, every other job counts as started later.
    """
    states, taken_by = rest.jobs(), maker(path)
    ended = _moment(rest, chain[0], ENDED) if chain and chain[0] in states else None
    for other, state in states.items():
        if state in ENDED or other in chain:
            continue
        if other == taken_by:
            raise _copy_runs(other, state, f"has taken the checkpoint {shown(path, MAX_TEXT)}")
        restored = path_of(latest(rest, other).get("restored", {}))
        if same_place(path, restored):
            raise _copy_runs(other, state, f"continues from {shown(path, MAX_TEXT)} already")
        is_of_chain = restored is not None and _is_made_by(restored, chain)
        is_hidden = maker(restored or "") == other or (ended is None and restored is None)
        if not is_of_chain and not (chain and is_hidden and rest.job(other)["name"] == name):
            continue
        if ended is not None and 0 < _moment(rest, other, START_STATES) < ended:
            continue
        if is_of_chain:
            path = restored or path
            raise _copy_runs(other, state, f"continues from {shown(path, MAX_TEXT)} already")
        same = f"has the same name {quoted(name)}, was started meanwhile"
        raise _copy_runs(other, state, f"{same}, and may continue from {shown(path, MAX_TEXT)}")


def _copy_runs(job: str, state: str, why: str) -> CopyRuns:
    return CopyRuns(
        f"job {job} ({state}) {why}; nothing was started. Cancel that job first to replace it"
    )


def _moment(rest: Rest, job: str, states: Collection[str]) -> float:
    """Time at which a job entered one of these states, in ms; 0 if Flink does not report it."""
    timestamps = rest.job(job).get("timestamps", {})
    return max((timestamps.get(state, 0.0) for state in states), default=0.0)


def free_ids(rest: Rest, path: str) -> Iterator[str]:
    """Ids for the next job from a savepoint, in order; all commands choose the same ids.

    Flink accepts every id once, so it refuses one of two simultaneous commands. It also refuses the
    ids of jobs that ended long ago, which it does not list.
    """
    states, (scheme, host, plain) = rest.jobs(), _parts(path)
    place = f"{'' if scheme == 'file' else scheme}:{host}{plain}"
    ids = (chosen_id(f"start {number} from {place}") for number in count())
    return (job for job in ids if states.get(job) not in ENDED)


def maker(path: str) -> str:
    """Id of the job that took a checkpoint; for a savepoint, the first digits of the id.

    >>> maker("s3://b/0123456789abcdef0123456789abcdef/chk-7"), maker("/s/savepoint-012345-6789ab")
    ('0123456789abcdef0123456789abcdef', '012345')
    """
    match = _MAKER.search(path)
    return "" if match is None else match[1] or match[2]


def _is_made_by(path: str, chain: Collection[str]) -> bool:
    """Whether one of these jobs made the savepoint or checkpoint at a path."""
    digits = maker(path)
    return bool(digits) and any(job.startswith(digits) for job in chain)


def same_place(path: str, other: str | None) -> bool:
    """Whether two paths or URIs may refer to the same savepoint.

    A missing scheme or host may be the default of the cluster.

    >>> same_place("file:///s/savepoint-1", "/s/savepoint-1/"), same_place("s3://b/x", "s3://c/x")
    (True, False)
    >>> same_place("hdfs:///s/savepoint-1", "hdfs://name:8020/s/savepoint-1")
    True
    """
    if other is None:
        return False
    *place, plain = _parts(path)
    *other_place, other_plain = _parts(other)
    pairs = zip(place, other_place, strict=True)
    return plain == other_plain and all(a == b or "" in (a, b) for a, b in pairs)


def _parts(path: str) -> tuple[str, str, str]:
    """Scheme, host and path of a path or URI; the path has no duplicate slashes."""
    scheme, host, plain = _URI.findall(path)[0]
    return scheme, host, re.sub("/+", "/", plain).rstrip("/")
