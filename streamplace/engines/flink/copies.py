"""Copies: jobs that already go on from the state that another job would be started from.

Flink lets any number of jobs start from one savepoint, and each of them writes what follows it.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from streamplace.engines.flink.rest import ENDED, FlinkError, Refusal, Rest
from streamplace.engines.flink.state import restored_path
from streamplace.model.messages import quoted, shown

_MAKER = re.compile(r"/(?:([0-9a-f]{32})/chk-\d+|savepoint-([0-9a-f]{6})-[0-9a-f]+)/?$")
BEGUN = ("INITIALIZING", "CREATED")
_PREFIX = 6
"""Signs of a job's id in the name of its savepoints."""


class CopyRuns(FlinkError):
    """A job already goes on from that state, so that nothing was started."""


def refuse_copy(rest: Rest, path: str) -> None:
    """Raise CopyRuns where a job that has not ended was started from a savepoint or checkpoint.

    The same goes for a checkpoint of a job that still runs.
    """
    job = maker(path)
    live = rest.live_jobs()
    if job in live:
        raise CopyRuns(
            f"job {job} ({rest.state(job)}) has taken the checkpoint {shown(path, 300)} and still "
            "runs; cancel it before another job continues from there. Nothing was started"
        )
    for other in live:
        if same_place(path, _restored(rest, other)):
            raise _refused(other, str(rest.state(other)), path)


def refuse_other(rest: Rest, path: str, chain: Sequence[str], name: str) -> None:
    """Raise CopyRuns where a job that no move has started goes on from the state of a chain.

    A job of the same name that began after the first of the chain had ended, and has since been
    restarted from a checkpoint of its own, counts as well; so does every one of that name where
    the cluster has forgotten the first.

    Parameters
    ----------
    path
        What the next job of the chain would be started from.
    chain
        Ids of a job and of those that take its place.
    name
        Name of the job; empty where that does not matter.
    """
    states = rest.jobs()
    ended = _moment(rest, chain[0], ENDED) if chain[0] in states else None
    for other, state in states.items():
        if state in ENDED or other in chain:
            continue
        restored = _restored(rest, other)
        if same_place(path, restored) or _is_of(restored, chain):
            raise _refused(other, state, path)
        is_own = maker(restored or "") == other or (ended is None and restored is None)
        if not name or not is_own or rest.job(other)["name"] != name:
            continue
        if ended is None or _moment(rest, other, BEGUN) >= ended:
            raise CopyRuns(
                f"job {other} ({state}), which has the same name {quoted(name)}, was started "
                f"meanwhile by another command; nothing was started from {shown(path, 300)}"
            )


@contextmanager
def alone(
    rest: Rest, path: str, chain: Sequence[str], name: str, give_way: Callable[[], None]
) -> Iterator[None]:
    """Refuse another that goes on from the state, before a job is submitted in the block and after.

    Somebody may be as quick, under an id that nobody knows before.

    Parameters
    ----------
    path, chain, name
        As ``refuse_other`` has them.
    give_way
        Ends the job that was submitted in the block.
    """
    refuse_other(rest, path, chain, name)
    yield
    try:
        refuse_other(rest, path, chain, name)
    except CopyRuns:
        give_way()
        raise


def free_id(rest: Rest, path: str) -> str:
    """Id of the next job from a savepoint, the same for all commands that start one now.

    Flink takes a job of one id once, so that of two commands one is refused.
    """
    states = rest.jobs()
    for number in count():
        text = f"streamplace start {number} from {_plain(path)}"
        job = hashlib.sha256(text.encode()).hexdigest()[:32]
        if states.get(job) not in ENDED:
            return job
    raise AssertionError


def maker(path: str) -> str:
    """Id of the job that has taken a checkpoint; of one with a savepoint, its first signs.

    >>> maker("s3://b/0123456789abcdef0123456789abcdef/chk-7"), maker("/s/savepoint-012345-6789ab")
    ('0123456789abcdef0123456789abcdef', '012345')
    """
    match = _MAKER.search(path)
    return "" if match is None else match[1] or match[2]


def same_place(path: str, other: str | None) -> bool:
    """Whether two paths or URIs name one savepoint.

    >>> same_place("file:///s/savepoint-1", "/s/savepoint-1/"), same_place("s3://b/x", "s3://c/x")
    (True, False)
    """
    return other is not None and _plain(path) == _plain(other)


def _is_of(path: str | None, chain: Collection[str]) -> bool:
    """Whether one of these jobs has saved what lies at a path."""
    made_by = maker(path or "")
    return bool(made_by) and any(made_by in (job, job[:_PREFIX]) for job in chain)


def _restored(rest: Rest, job: str) -> str | None:
    """What a job was started from, if Flink tells."""
    try:
        return restored_path(rest, job)
    except Refusal:  # it takes no checkpoints, or has just gone
        return None


def _moment(rest: Rest, job: str, states: Collection[str]) -> float:
    """When a job came into one of these states, in ms; 0 where Flink does not tell."""
    timestamps = rest.job(job).get("timestamps", {})
    return max((timestamps.get(state, 0.0) for state in states), default=0.0)


def _refused(job: str, state: str, path: str) -> CopyRuns:
    return CopyRuns(
        f"job {job} ({state}) continues from {shown(path, 300)} already; nothing was "
        "started. Cancel that job first if another one shall take its place"
    )


def _plain(path: str) -> str:
    """Path without what may be written in several ways: slashes, and the scheme of files."""
    scheme, colon, rest = path.partition(":")
    if colon and scheme == "file":
        path, scheme = rest, ""
    elif colon and "/" not in scheme:
        path = rest
    else:
        scheme = ""
    return f"{scheme}:{re.sub('/+', '/', path).rstrip('/')}"
