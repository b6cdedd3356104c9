"""Beginnings of moves: how other commands recognise on the cluster that a job is being moved.

The sign of a move is the jar with which it writes its journal, whatever the folder of that journal.
If two commands stopped a job at once, both moves could fail.
"""

from streamplace.engines.flink.move.copies import CopyRuns, refuse_other
from streamplace.engines.flink.move.folder import SavepointFolder
from streamplace.engines.flink.move.holder import Holder
from streamplace.engines.flink.move.journal import Journal, MoveUnderWay
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import ENDED, Rest

BEGIN_SECONDS = 120.0
"""Seconds within which a move stops its job, after the upload of its jar."""


def jar_name(journal: Journal) -> str:
    """Name of the jar by which other commands recognise a move."""
    return f"{_prefix(journal.job)}{journal.trigger}-{journal.holder.mark}.jar"


def check_first(folder: SavepointFolder, journal: Journal) -> None:
    """Raise MoveUnderWay if another command has begun to move the job, with any folder."""
    own_name = jar_name(journal)
    jars = folder.rest.get("/jars")["files"]
    own = min((j["uploaded"], j["id"]) for j in jars if j["name"] == own_name)
    for jar in jars:
        name, is_first = jar["name"], (jar["uploaded"], jar["id"]) < own
        if not _is_of_other(name, journal.job, own_name):
            continue
        is_recent = own[0] - jar["uploaded"] < 1000 * BEGIN_SECONDS
        if is_first and is_recent:
            raise MoveUnderWay(
                f"job {journal.job} is being moved by another command, which has begun "
                f"{(own[0] - jar['uploaded']) / 1000:.1f} s before; look again in two minutes"
            )


def goes_on(rest: Rest, folder: SavepointFolder, job: str, path: str) -> str | None:
    """How a job that another user stopped continues; None if there is no sign that it does."""
    for one, state in chain_states(rest, job).items():
        if state not in ENDED:
            return f"and continues as job {one} ({state})"
    try:
        refuse_other(rest, path, [job], "")
    except CopyRuns as copy:
        return f"and {str(copy).partition(';')[0]}"
    if any(_is_of_other(j["name"], job, folder.jar.name) for j in rest.get("/jars")["files"]):
        return "and another command is moving it"
    return None


def _is_of_other(name: str, job: str, own_name: str) -> bool:
    """Whether a jar belongs to another move of a job whose command may still run."""
    if not name.startswith(_prefix(job)) or name == own_name:
        return False
    return Holder.may_run(name.removesuffix(".jar").rpartition("-")[2])


def _prefix(job: str) -> str:
    return f"streamplace-move-{job}-"
