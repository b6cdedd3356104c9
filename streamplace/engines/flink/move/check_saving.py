"""Check that the state of a job can be saved, before the job is stopped for that.

If saving fails, Flink fails the job. If the job then does not restart by itself, and its
checkpoints are deleted with it, its state is lost.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

from streamplace.engines.flink.move.folder import SavepointFolder
from streamplace.engines.flink.move.leftovers import dispose, record
from streamplace.engines.flink.move.state import last_checkpoint, outlives
from streamplace.engines.flink.move.stopping import Saving, stopped_at
from streamplace.engines.flink.rest.client import FlinkError, Refusal, Rest

STRATEGY = ("restart-strategy.type", "restart-strategy")
"""Flink's settings for the restart strategy of jobs; the second is the older name."""
NEVER = ("none", "off", "disable")
"""Strategies by which a job that fails is not restarted."""


def check_saving(
    rest: Rest, folder: SavepointFolder, job: str, saving: Saving, tell: Callable[[str], None]
) -> None:
    """Raise FlinkError if the folder has too little space for the state of a job.

    If wanted, a trial savepoint is created and removed.
    """
    folder.check_room(last_checkpoint(rest, job).get("state_size", 0))
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
    """Create a savepoint of a job that continues to run, and return its path."""
    request = {
        "cancel-job": False,
        "target-directory": folder.uri,
        "triggerId": secrets.token_hex(16),
        "formatType": "NATIVE" if saving.native else "CANONICAL",
    }
    answer = rest.post(f"/jobs/{quote(job, safe='')}/savepoints", request)
    return stopped_at(rest, job, str(answer["request-id"]), saving.seconds)


def _ends_for_good(rest: Rest, job: str) -> bool:
    """Whether a job that fails is not restarted and loses its state."""
    try:
        config = rest.get(f"/jobs/{quote(job, safe='')}/config")["execution-config"]
    except Refusal:
        return False
    strategy = str(config.get("restart-strategy", ""))
    is_final = strategy.startswith("Restart deactivated")
    if strategy.startswith("Cluster level default"):  # the job itself does not name one
        settings = rest.settings()
        named = (settings[key] for key in STRATEGY if key in settings)
        is_final = next(named, "").lower() in NEVER
    return is_final and not outlives(rest, job, is_failure=True)
