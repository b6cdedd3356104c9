"""State on files: savepoints and checkpoints of the jobs of a move, which Flink may not know.

They are listed where this machine reaches their folder, on a file system that it shares with the
JobManager.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from streamplace.engines.flink.move.copies import CopyRuns, maker, same_place
from streamplace.engines.flink.move.journal import Journal, MoveStore
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.job_ids import chain_of
from streamplace.errors import SettingError
from streamplace.model.messages import shown

FOLDER_SETTINGS = ("execution.checkpointing.savepoint-dir", "state.savepoints.dir")
"""Flink's settings for the folder of savepoints; the second is the older name."""


class SavedState(NamedTuple):
    """A complete savepoint or checkpoint."""

    path: str  # path of the savepoint or checkpoint
    job: str  # the job that saved it
    at: float  # time of its completion, in s

    @property
    def words(self) -> str:
        """Clause on its kind and path."""
        kind = "checkpoint" if "/chk-" in self.path else "savepoint"
        return f"the last complete {kind} is {self.path}"


def folder_uri(rest: Rest, given: str | None, settings: Mapping[str, str] | None = None) -> str:
    """Folder of savepoints: the one given, else that of the job's or the cluster's settings.

    Raises SettingError when no folder is known.
    """
    own, cluster = settings or {}, {} if given else rest.settings()
    named = (place[key] for place in (own, cluster) for key in FOLDER_SETTINGS if place.get(key))
    uri = given or next(named, None)
    if uri is None:
        raise SettingError(
            "the cluster has no folder for savepoints (execution.checkpointing.savepoint-dir); "
            "name one with --savepoints"
        )
    return uri


def last_on_files(journal: Journal) -> SavedState | None:
    """Last complete state of any job of a move; None if there is none that this machine reaches.

    The jobs ran one after another, so the state of a later job is newer. Savepoints of the first
    job that are older than the move are ignored, because they may be much older.
    """
    began = journal.began.timestamp()
    for job in reversed(chain_of(journal.job)):
        states = [
            state
            for state in _complete(journal.folder, f"savepoint-{job[:6]}-", job)
            if job != journal.job or state.at >= began
        ]
        if journal.checkpoints is not None:
            states += _complete(f"{journal.checkpoints.rstrip('/')}/{job}", "chk-", job)
        if states:
            return max(states, key=lambda state: state.at)
    return None


def _complete(uri: str, prefix: str, job: str) -> Iterator[SavedState]:
    """Complete savepoints or checkpoints of a job in a folder."""
    scheme, colon, path = uri.partition(":")
    if colon and scheme != "file":
        return
    folder = Path(unquote(path.removeprefix("//")) if colon else uri)
    try:
        for place in folder.iterdir():
            written = place / "_metadata"  # Flink writes it last
            if place.name.startswith(prefix) and written.exists():
                at = written.stat().st_mtime
                yield SavedState(f"{uri.rstrip('/')}/{place.name}", job, at)
    except OSError:  # this machine does not reach the folder
        return


def last_path(journal: Journal) -> str | None:
    """Path of the last complete state of a move: of a newer one on files, else from the journal."""
    state = last_on_files(journal)
    if state is None or (journal.savepoint is not None and state.job == journal.job):
        return journal.savepoint
    return state.path


def concerns(journal: Journal, path: str) -> bool:
    """Whether a savepoint or checkpoint belongs to the jobs of a move."""
    made_by = maker(path)
    of_chain = bool(made_by) and any(job.startswith(made_by) for job in chain_of(journal.job))
    return of_chain or (journal.savepoint is not None and same_place(path, journal.savepoint))


def refuse_moved(path: str) -> None:
    """Raise CopyRuns if a savepoint or checkpoint belongs to an unfinished move."""
    for journal in MoveStore.usual().unfinished():
        if concerns(journal, path):
            raise CopyRuns(
                f"{shown(path, 300)} belongs to a move of job {journal.job} that has not finished; "
                f"nothing was started. Finish the move with: {journal.resume_by}"
            )
