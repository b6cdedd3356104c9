"""``streamplace flink watch``: spares for a job's devices."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._flink import HOME, JOB, PLACEMENT, TIMEOUT, asks, program_of, submits
from streamplace.cli._options import spare_inputs, writes
from streamplace.cli._output import print_line, say

if TYPE_CHECKING:
    from streamplace.engines.flink.rest import Rest
    from streamplace.engines.flink.watch import PlacedJob


@click.command(
    "watch",
    epilog="Example: streamplace flink watch job.jar --placement placement.json --spare dev-4 "
    "-- --input x.csv",
)
@submits
@JOB
@PLACEMENT
@click.option(
    "--spare",
    "spares",
    multiple=True,
    required=True,
    help="A TaskManager on which nothing is placed, and which may stand in for any that is lost; "
    "several stand in in this order.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Seconds in which a lost TaskManager may come back before a spare takes its place.",
)
@TIMEOUT
@writes("Write where the job runs to this file whenever that has changed, for verify.")
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
    """Keep a placed job running when a TaskManager is lost: a spare stands in for it.

    A placed job never moves by itself: without its TaskManager it restarts in vain, as often as its
    restart strategy allows, and fails then. This command looks at it every second. When one of its
    TaskManagers is gone for longer than --patience, the job is ended and started from its last
    checkpoint, with the spare in the place of the lost one. Its new id is printed. What was lost
    and comes back is a spare from then on. The command ends when the job does, unless that is why:
    a job that has failed is looked at until Flink has heard of all of its TaskManagers since, and
    is started again where one that was lost is back.

    JAR, its options and ARGUMENTS are what the job was submitted with: it is submitted again.
    Checkpoints must outlive it: submit it, here and before, with an execution.checkpointing.dir
    that all machines reach and with
    -D execution.checkpointing.externalized-checkpoint-retention=RETAIN_ON_CANCELLATION.
    """
    from streamplace.engines.flink.dist import find_flink
    from streamplace.engines.flink.jobs import only_job
    from streamplace.engines.flink.pinning import read_vectors
    from streamplace.engines.flink.watch import PlacedJob, Watch

    if output is not None:
        spare_inputs(output)
    vectors = read_vectors(placement)
    document = json.loads(placement.read_bytes())

    def moved(run: "PlacedJob") -> None:
        print_line(run.job)
        if output is not None:
            _write(document, run, output)

    program, flink = program_of(**submitted), find_flink(flink_home)
    watch = Watch(rest, flink, program, spares, say, moved, patience, timeout)
    try:
        watch.run(PlacedJob(only_job(rest, job), vectors))
    except KeyboardInterrupt:
        say("stopped watching; the job goes on")


def _write(document: dict[str, Any], run: "PlacedJob", output: Path) -> None:
    """Write a placement in which spares stand in for what is lost."""
    from streamplace.io.files import write_text

    assignment = document["assignment"].items()
    moved = {name: run.stand_ins.get(device, device) for name, device in assignment}
    write_text(output, json.dumps(document | {"assignment": moved}, indent=1) + "\n")
