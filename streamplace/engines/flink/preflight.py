"""Preflight: whether the state of a job can be saved, before it is stopped for that.

Flink fails a job whose stop cannot be saved. Where it does not restart by itself, and its
checkpoints end with it, its state is then lost.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

from streamplace.engines.flink.folder import SavepointFolder
from streamplace.engines.flink.rest import FlinkError, Refusal, Rest
from streamplace.engines.flink.savepoints import dispose, record
from streamplace.engines.flink.state import (
    Saving,
    last_checkpoint_size,
    outlives,
    stopped_at,
)


def check_saving(
    rest: Rest, folder: SavepointFolder, job: str, saving: Saving, tell: Callable[[str], None]
) -> None:
    """Raise FlinkError where a folder has no room for the state of a job.

    A trial savepoint is made and removed, if that is wanted.
    """
    folder.check_room(last_checkpoint_size(rest, job))
    if not saving.trial and _ends_for_good(rest, job):
        tell(
            f"note: if job {job} cannot be saved, Flink ends it, and its checkpoints with it; to "
            "try a savepoint first, give --trial-savepoint"
        )
    if saving.trial:
        tell(f"saving job {job} on trial")
        began = time.monotonic()
        path = _saved_on_trial(rest, folder, job, saving)
        tell(f"that took {time.monotonic() - began:.1f} s")
        with suppress(FlinkError):
            record(folder, path, job, "")
            dispose(rest, folder, path)


def _saved_on_trial(rest: Rest, folder: SavepointFolder, job: str, saving: Saving) -> str:
    """Path of a savepoint of a job that runs on."""
    request = {
        "cancel-job": False,
        "target-directory": folder.uri,
        "triggerId": secrets.token_hex(16),
        "formatType": "NATIVE" if saving.native else "CANONICAL",
    }
    answer = rest.post(f"/jobs/{quote(job, safe='')}/savepoints", request)
    return stopped_at(rest, job, str(answer["request-id"]), saving.seconds)


def _ends_for_good(rest: Rest, job: str) -> bool:
    """Whether a job that fails is gone with its state."""
    try:
        config = rest.get(f"/jobs/{quote(job, safe='')}/config")["execution-config"]
    except Refusal:
        return False
    is_final = str(config.get("restart-strategy", "")).startswith("Restart deactivated")
    return is_final and not outlives(rest, job, is_failure=True)
