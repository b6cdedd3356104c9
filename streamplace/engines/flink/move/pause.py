"""The pause of a job that is moved, in seconds: expected and measured."""

from contextlib import suppress
from urllib.parse import quote

from streamplace.engines.flink.move.queues import draining_seconds
from streamplace.engines.flink.move.state import last_checkpoint_seconds, latest_checkpoints
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.plan import JobPlan

START_SECONDS = 1.0
"""Seconds from the savepoint of a small job until it runs again (docs/how-to/flink-moves.md)."""


def expected_pause(rest: Rest, job: str, plan: JobPlan | None = None) -> float:
    """Seconds for which a move is expected to stop a job, whose plan may have been read already."""
    stopping = max(last_checkpoint_seconds(rest, job), draining_seconds(rest, job, plan))
    return START_SECONDS + stopping


def pause_of(rest: Rest, old: str, new: str) -> float | None:
    """Seconds from the savepoint of a job to the moment when all of its successor ran.

    None if Flink does not report them. The answers of its REST interface may arrive much later, so
    the time that the command waits is no measure of the pause.
    """
    with suppress(FlinkError):
        began, ended = _saved(rest, old), _ran(rest, new)
        if began and ended >= began:
            return (ended - began) / 1000
    return None


def _saved(rest: Rest, job: str) -> float:
    """Time at which the sources of a job were stopped, in ms; 0 if unknown."""
    row = latest_checkpoints(rest, job).get("savepoint")
    return 0.0 if row is None else float(row.get("trigger_timestamp", 0))


def _ran(rest: Rest, job: str) -> float:
    """Time at which the last subtask of a job began to run, in ms; 0 if unknown."""
    root = f"/jobs/{quote(job, safe='')}/vertices"
    answers = [
        rest.get(f"{root}/{quote(vertex['id'], safe='')}/subtasktimes")["subtasks"]
        for vertex in rest.job(job)["vertices"]
    ]
    moments = [row["timestamps"].get("RUNNING", 0.0) for rows in answers for row in rows]
    return max(moments, default=0.0)
