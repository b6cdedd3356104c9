"""Others: jobs that other users or commands start from the state of a move, cancel, or stop.

Flink lets any number of jobs start from one savepoint, and each of them would write its own output.
What another user has ended is not started again.
"""

import hashlib
import re
from collections.abc import Collection, Sequence
from itertools import count

from streamplace.engines.flink.move.journal import MoveUnderWay, unfinished
from streamplace.engines.flink.move.saving import restored_path, state_clause, stopped_with
from streamplace.engines.flink.rest.client import ENDED, FINISHED, FlinkError, Rest, chain_of
from streamplace.model.messages import quoted, shown

_MAKER = re.compile(r"/(?:([0-9a-f]{32})/chk-\d+|savepoint-([0-9a-f]{6})-[0-9a-f]+)/?$")
_URI = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?)?(.*)", re.DOTALL)
BEGUN = ("INITIALIZING", "CREATED")
CANCELLED = frozenset({"CANCELLING", "CANCELED"})
"""Flink itself never cancels a job."""


class EndedByOthers(FlinkError):
    """Another user has cancelled or stopped a job, so it is not started again."""


class CopyRuns(FlinkError):
    """A job already continues from that state, so nothing was started."""


def refuse_ended(rest: Rest, job: str) -> None:
    """Raise EndedByOthers if another user has cancelled a job, or stopped it with a savepoint."""
    state = rest.state(job)
    if state in CANCELLED:
        rest.wait(job, ENDED)
        raise EndedByOthers(
            f"job {job} was cancelled by another user, and is not started again"
            f"{state_clause(rest, job)}"
        )
    if state == FINISHED and (path := stopped_with(rest, job)) is not None:
        raise EndedByOthers(
            f"job {job} was stopped by another user, and is not started again; its state is in "
            f"{shown(path, 300)}"
        )


def moved_by_others(job: str, later: str) -> MoveUnderWay:
    """Error about a job that another command has moved, so that it continues as a later one."""
    return MoveUnderWay(
        f"job {job} was moved by another command meanwhile, and continues as job {later}; this "
        "command started nothing"
    )


def refuse_moved(path: str) -> None:
    """Raise CopyRuns if a savepoint or checkpoint belongs to an unfinished move."""
    for journal in unfinished():
        if _is_of(path, chain_of(journal.job)) or same_place(path, journal.savepoint):
            raise CopyRuns(
                f"{shown(path, 300)} belongs to a move of job {journal.job} that has not finished; "
                f"nothing was started. Finish the move with: {journal.resume_by}"
            )


def refuse_copy(rest: Rest, path: str) -> None:
    """Raise CopyRuns if a job that has not ended was started from a savepoint or checkpoint.

    The same applies to a checkpoint of a job that is still running.
    """
    job = maker(path)
    live = {one: state for one, state in rest.jobs().items() if state not in ENDED}
    if job in live:
        raise CopyRuns(
            f"job {job} ({live[job]}) has taken the checkpoint {shown(path, 300)} and has not "
            "ended; cancel it before another job continues from there. Nothing was started"
        )
    for other, state in live.items():
        if same_place(path, restored_path(rest, other)):
            raise _refused(other, state, path)


def refuse_other(rest: Rest, path: str, chain: Sequence[str], name: str) -> None:
    """Raise CopyRuns if a job that no move has started continues from the state of a chain.

    The chain is a job with its successors, the next of which would be started from ``path``, and
    ``name`` is their name. Others were started from

    - this path;
    - any state of the chain, after its first job had ended: one that began from an earlier
      savepoint while that ran is a job of its own;
    - a state that Flink does not tell any more, since they have restarted from a checkpoint of
      their own: they have the name of the chain, and began after its first job had ended.

    If the cluster has forgotten the first job, every other one counts as begun later.
    """
    states = rest.jobs()
    ended = _moment(rest, chain[0], ENDED) if chain[0] in states else None
    for other, state in states.items():
        if state in ENDED or other in chain:
            continue
        restored = restored_path(rest, other)
        if same_place(path, restored):
            raise _refused(other, state, path)
        is_of_chain = restored is not None and _is_of(restored, chain)
        is_untold = maker(restored or "") == other or (ended is None and restored is None)
        if not is_of_chain and not (is_untold and rest.job(other)["name"] == name):
            continue
        if ended is not None and 0 < _moment(rest, other, BEGUN) < ended:
            continue
        if is_of_chain:
            raise _refused(other, state, restored or "")
        raise CopyRuns(
            f"job {other} ({state}), which has the same name {quoted(name)}, was started "
            f"meanwhile by another command; nothing was started from {shown(path, 300)}"
        )


def free_id(rest: Rest, path: str, refused: Collection[str] = ()) -> str:
    """Id of the next job from a savepoint, the same for all commands that start one now.

    Flink accepts every id once, so one of two simultaneous commands is refused. It does not list
    jobs that ended long ago, whose ids it has ``refused``.
    """
    states, (scheme, host, plain) = rest.jobs(), _parts(path)
    place = f"{'' if scheme == 'file' else scheme}:{host}{plain}"
    for number in count():
        text = f"streamplace start {number} from {place}"
        job = hashlib.sha256(text.encode()).hexdigest()[:32]
        if states.get(job) not in ENDED and job not in refused:
            return job
    raise AssertionError


def maker(path: str) -> str:
    """Id of the job that took a checkpoint, or the first digits of the id in a savepoint's name.

    >>> maker("s3://b/0123456789abcdef0123456789abcdef/chk-7"), maker("/s/savepoint-012345-6789ab")
    ('0123456789abcdef0123456789abcdef', '012345')
    """
    match = _MAKER.search(path)
    return "" if match is None else match[1] or match[2]


def same_place(path: str, other: str | None) -> bool:
    """Whether two paths or URIs may refer to the same savepoint.

    A scheme or a host that one of them lacks may be the default of the cluster.

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
    return plain == other_plain and all(one == two or "" in (one, two) for one, two in pairs)


def _is_of(path: str, chain: Collection[str]) -> bool:
    """Whether the savepoint or checkpoint at a path belongs to one of these jobs."""
    made_by = maker(path)
    return bool(made_by) and any(job.startswith(made_by) for job in chain)


def _moment(rest: Rest, job: str, states: Collection[str]) -> float:
    """Time at which a job entered one of these states, in ms; 0 if Flink does not report it."""
    timestamps = rest.job(job).get("timestamps", {})
    return max((timestamps.get(state, 0.0) for state in states), default=0.0)


def _refused(job: str, state: str, path: str) -> CopyRuns:
    return CopyRuns(
        f"job {job} ({state}) continues from {shown(path, 300)} already; nothing was started. "
        "Cancel that job first if another one shall take its place"
    )


def _parts(path: str) -> tuple[str, str, str]:
    """Scheme, host and path of a path or URI; the path has no duplicate slashes."""
    scheme, host, plain = _URI.findall(path)[0]
    return scheme, host, re.sub("/+", "/", plain).rstrip("/")
