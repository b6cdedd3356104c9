"""``streamplace flink watch``: spares for lost devices of a job."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._flink import HOME, JOB, PLACEMENT, TIMEOUT, asks, given_program, may_submit
from streamplace.cli._options import spare_inputs, writes
from streamplace.cli._output import print_line, say, say_written

if TYPE_CHECKING:
    from streamplace.engines.flink.rest.client import Rest
    from streamplace.engines.flink.watch.watch import PlacedJob


@click.command(
    "watch",
    short_help="Replace lost TaskManagers of a job by spares.",
    epilog="Example: streamplace flink watch job.jar --placement placement.json --spare dev-4 "
    "-- --input x.csv",
)
@may_submit
@JOB
@PLACEMENT
@click.option(
    "--spare",
    "spares",
    multiple=True,
    required=True,
    help="TaskManager without operators that replaces a lost one. Repeat the option for several; "
    "they are used in the given order.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Seconds to wait for a lost TaskManager before a spare takes its place.",
)
@TIMEOUT
@writes("Write the current placement to this file after every change.")
@asks
@HOME
def watch_(
    job: str | None,
    placement: Path,
    spares: tuple[str, ...],
    patience: float,
    timeout: float,
    output: Path | None,
    rest: "Rest",
    flink_home: Path | None,
    **submitted: Any,
) -> None:
    """Keep a placed job running when a TaskManager is lost: a spare replaces it.

    A placed job cannot run without its TaskManagers: Flink restarts it as often as its restart
    strategy allows, and then lets it fail. This command checks the job every second. When a
    TaskManager is lost for longer than --patience, the command ends the job and starts it from its
    last checkpoint, with a spare in place of the lost TaskManager. It prints the new id of the job.
    A TaskManager that comes back is a spare from then on.

    The command ends when the job ends. If the job fails, the command first waits until Flink knows
    which TaskManagers are alive, and starts the job again if one of them was lost.

    Give JAR, options and ARGUMENTS as the job was submitted with, for the command submits it again;
    leave them out if streamplace has submitted or moved the job on this machine.
    Checkpoints must be retained: submit the job, here and before, with an
    execution.checkpointing.dir that all machines reach and with
    -D execution.checkpointing.externalized-checkpoint-retention=RETAIN_ON_CANCELLATION.
    """
    from streamplace.engines.flink.local.dist import find_flink
    from streamplace.engines.flink.pin.pinning import read_vectors
    from streamplace.engines.flink.program.submitted import known_program
    from streamplace.engines.flink.rest.jobs import only_job
    from streamplace.engines.flink.watch.watch import PlacedJob, Watch

    if output is not None:
        spare_inputs(output)
    given = given_program(**submitted)
    vectors = read_vectors(placement)
    document = json.loads(placement.read_bytes())

    def moved(run: "PlacedJob") -> None:
        print_line(run.job)
        if output is not None:
            _write(document, run, output)

    job = only_job(rest, job)
    program, flink = given or known_program(rest, job), find_flink(flink_home)
    written = output if output is not None and output.exists() else placement
    file = str(written.resolve())
    watch = Watch(rest, flink, program, spares, say, moved, patience, timeout, file)
    try:
        watch.run(PlacedJob(job, vectors))
    except KeyboardInterrupt:
        say("stopped watching; the job keeps running")


def _write(document: dict[str, Any], run: "PlacedJob", output: Path) -> None:
    """Write a placement in which spares replace lost devices."""
    from streamplace.io.files import write_text

    assignment = document["assignment"].items()
    moved = {name: run.stand_ins.get(device, device) for name, device in assignment}
    write_text(output, json.dumps(document | {"assignment": moved}, indent=1) + "\n")
    say_written("placement", output)
