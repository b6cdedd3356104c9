"""``streamplace flink`` on jobs: apply, cancel and verify."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._flink import (
    ALLOW_NON_RESTORED,
    HOME,
    JOB,
    JSON,
    PLACEMENT,
    TIMEOUT,
    asks,
    program_of,
    show,
    submits,
    verification,
)
from streamplace.cli._output import print_json, print_line, say, waiting
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.engines.flink.rest.client import Rest


@click.command(
    "apply",
    short_help="Submit a job so that it runs where it is placed.",
    epilog="Example: streamplace flink apply job.jar --placement placement.json -- --input x.csv",
)
@submits
@PLACEMENT
@click.option("--savepoint", "saved", help="Savepoint (path or URI) that the job starts from.")
@ALLOW_NON_RESTORED
@TIMEOUT
@asks
@HOME
@JSON
def apply_(
    placement: Path,
    saved: str | None,
    allow_non_restored: bool,
    timeout: float,
    rest: "Rest",
    flink_home: Path | None,
    as_json: bool,
    **submitted: Any,
) -> None:
    """Submit JAR, unchanged, so that every operator runs on the device that it is placed on.

    ARGUMENTS, after --, are passed to the job. The command compiles two small classes that start
    the job, and needs a JDK for that. Operators for which the job sets no parallelism get the
    parallelism of the placement.
    """
    from streamplace.engines.flink.local.dist import find_flink
    from streamplace.engines.flink.move.beside_savepoints import refuse_moved
    from streamplace.engines.flink.move.state import Savepoint, left_behind
    from streamplace.engines.flink.pin.apply import apply
    from streamplace.engines.flink.pin.pinning import read_vectors
    from streamplace.engines.flink.rest.client import FINISHED, finished

    if allow_non_restored and saved is None:
        raise SettingError("--allow-non-restored needs --savepoint; add --savepoint or drop it")
    program = program_of(**submitted)
    flink, vectors = find_flink(flink_home), read_vectors(placement)
    if saved is None and (left := left_behind(rest, vectors)):
        say(f"note: the new job starts without state, but {left}")
    savepoint = None if saved is None else Savepoint(saved, allow_non_restored)
    if saved is not None:
        refuse_moved(rest, flink, saved)
    with waiting(f"submitting {program.jar.name}"):
        job = apply(rest, flink, program, vectors, savepoint=savepoint, seconds=timeout)
    if rest.job(job)["state"] == FINISHED:
        say(f"note: {finished(job)}")
    print_json({"job": job}) if as_json else print_line(job)


@click.command(
    "cancel",
    short_help="End a job, with or without saving its state.",
    epilog="Example: streamplace flink cancel --savepoint file:///var/flink/savepoints",
)
@asks
@JOB
@click.option(
    "--savepoint", "folder", help="Folder (path or URI) in which to save the job's state."
)
@click.option("--drop-state", is_flag=True, help="End the job even though its state is lost.")
@JSON
def cancel_(
    rest: "Rest", job: str | None, folder: str | None, drop_state: bool, as_json: bool
) -> None:
    """End a job and wait until its slots are free; with --savepoint, print the path of its state.

    A job that has completed checkpoints has state. Give --savepoint to save it, or --drop-state.
    """
    from streamplace.engines.flink.move.state import saved_by
    from streamplace.engines.flink.move.stopping import stop
    from streamplace.engines.flink.rest.client import FINISHED, finished
    from streamplace.engines.flink.rest.jobs import only_job

    ended, path = only_job(rest, job), None
    if rest.jobs().get(ended) == FINISHED:
        raise SettingError(f"{finished(ended)}; there is nothing to cancel")
    if folder is not None:
        with waiting("saving"):
            path = stop(rest, ended, folder)
    elif not drop_state and (saved := saved_by(rest, ended)):
        raise SettingError(f"{saved}; to cancel it without saving, give --drop-state")
    else:
        rest.cancel(ended)
    print_json({"job": ended, "savepoint": path}) if as_json else print_line(path or ended)


@click.command(
    "verify",
    short_help="Compare where a job runs with its placement.",
    epilog="Example: streamplace flink verify --rest http://localhost:8081 "
    "--placement placement.json",
)
@asks
@JOB
@PLACEMENT
@JSON
@click.pass_context
def verify_(
    context: click.Context, rest: "Rest", job: str | None, placement: Path, as_json: bool
) -> None:
    """Compare where every subtask of a job runs with a placement; exit code 1 if they differ.

    An operator differs if its subtasks run on other devices, or if there are too few or too many.
    """
    from streamplace.engines.flink.pin.pinning import read_vectors
    from streamplace.engines.flink.pin.verify import verify
    from streamplace.engines.flink.rest.jobs import only_job

    outcome = verify(rest, only_job(rest, job), read_vectors(placement))
    print_json(verification(outcome)) if as_json else show(outcome)
    context.exit(0 if outcome.fine else 1)
