"""Files beside a savepoint: journals of unfinished moves, and records of finished ones.

A job that is started from the savepoint would be a second copy once the move is finished.
"""

from contextlib import suppress

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.copies import CopyRuns, same_place
from streamplace.engines.flink.move.folder import SavepointFolder, folder_uri, savepoint_folder
from streamplace.engines.flink.move.journal import unfinished
from streamplace.engines.flink.move.leftovers import left_savepoints
from streamplace.engines.flink.move.saved_files import concerns
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import ENDED, FlinkError, NoAnswer, Rest
from streamplace.errors import SettingError
from streamplace.model.messages import shown


def refuse_moved(rest: Rest, flink: Flink, path: str) -> None:
    """Raise CopyRuns if a savepoint or checkpoint belongs to an unfinished move, or its job runs.

    Folders that the JobManager cannot list contain no journals.
    """
    folders = [path.rstrip("/").rpartition("/")[0]]
    with suppress(SettingError):
        folders.append(folder_uri(rest, None))
    with savepoint_folder(rest, flink, folders[0]) as access:
        for uri in dict.fromkeys(folders):
            try:
                _refuse_in(rest, SavepointFolder(rest, uri, access.jar), path)
            except (CopyRuns, NoAnswer):
                raise
            except FlinkError:
                continue


def _refuse_in(rest: Rest, folder: SavepointFolder, path: str) -> None:
    """Raise CopyRuns if a folder contains a move that a savepoint belongs to."""
    for journal in unfinished(folder):
        if concerns(journal, path):
            raise CopyRuns(
                f"{shown(path, 300)} belongs to a move of job {journal.job} that has not finished; "
                f"nothing was started. Finish the move with: "
                f"{journal.resume_by or 'streamplace flink move JAR --resume'}"
            )
    for left in left_savepoints(folder):
        if same_place(left.path, path):
            for job, state in chain_states(rest, left.job).items():
                if state not in ENDED:
                    raise CopyRuns(
                        f"job {job} ({state}) continues from {shown(path, 300)} already; nothing "
                        "was started"
                    )
