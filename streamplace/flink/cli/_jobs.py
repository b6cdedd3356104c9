"""``streamplace flink`` on jobs: apply, cancel, verify, and jars that pin their job."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamplace.cli._command import verb
from streamplace.cli._options import ARGUMENTS, AS_JSON, FILE, writes
from streamplace.cli._output import spare_inputs, spare_others
from streamplace.cli._printing import (
    print_json,
    print_line,
    print_report,
    say,
    say_written,
    waiting,
)
from streamplace.errors import SettingError
from streamplace.flink.settings import (
    FlinkApplySettings,
    FlinkCancelSettings,
    FlinkVerifySettings,
    Paths,
    PlacedSettings,
    Room,
)
from streamplace.settings.convert import Cluster, ClusterFile, QuantityText
from streamplace.settings.option import WHERE, option

if TYPE_CHECKING:
    from streamplace.flink.layout import Layout
    from streamplace.flink.pin.pinning import Pinning


@verb(
    "apply",
    "Submit a job so that it runs where it is placed.",
    "flink apply job.jar --placement placement.json -- --input x.csv",
    settings=FlinkApplySettings,
)
@click.argument("jar", type=FILE)
@ARGUMENTS
@AS_JSON
def apply_(
    jar: Path, arguments: tuple[str, ...], settings: FlinkApplySettings, as_json: bool
) -> None:
    """Submit JAR, unchanged, so that every operator runs on the device that it is placed on.

    ARGUMENTS, after --, are passed to the job, which small classes of streamplace start. Operators
    for which the job sets no parallelism get the parallelism of the placement.
    """
    from streamplace.flink.layout import Layout
    from streamplace.flink.pin.apply import apply
    from streamplace.flink.program.program import Savepoint
    from streamplace.flink.rest.answers import finished
    from streamplace.flink.rest.client import FINISHED

    program, rest, saved = settings.program(jar, arguments), settings.client(), settings.savepoint
    assert program is not None
    layout = Layout.read(settings.placed())
    savepoint = None if saved is None else Savepoint(saved, settings.allow_non_restored)
    with waiting(f"submitting {program.jar.name}"):
        job = apply(rest, program, layout, savepoint=savepoint, seconds=settings.timeout)
    if rest.job(job)["state"] == FINISHED:
        say(f"note: {finished(job)}")
    print_json({"job": job}) if as_json else print_line(job)


@verb(
    "cancel",
    "End a job, with or without saving its state.",
    "flink cancel --savepoint file:///var/flink/savepoints",
    settings=FlinkCancelSettings,
)
@AS_JSON
def cancel_(settings: FlinkCancelSettings, as_json: bool) -> None:
    """End a job and wait until its slots are free; with --savepoint, print the path of its state.

    A job that has completed checkpoints has state. Give --savepoint to save it, or --drop-state.
    """
    from streamplace.flink.move.savepoints import checkpoint_totals, stop, stopped_with
    from streamplace.flink.rest.answers import finished
    from streamplace.flink.rest.client import ENDED, FINISHED, only_job

    rest, path = settings.client(), None
    job = only_job(rest, settings.job)
    if (state := rest.jobs().get(job)) == FINISHED:
        saved = stopped_with(rest, job)
        why = f"job {job} was stopped; its state is in {saved}" if saved else finished(job)
        raise SettingError(f"{why}; there is nothing to cancel")
    if settings.savepoint is not None:
        with waiting("saving"):
            path = stop(rest, job, settings.savepoint)
    elif (
        not settings.drop_state
        and state not in ENDED
        and (number := checkpoint_totals(rest, job).completed)
    ):
        raise SettingError(
            f"job {job} has completed {number} checkpoints; to keep its state, give --savepoint "
            "FOLDER, and to cancel it without saving, --drop-state"
        )
    else:
        rest.cancel(job)
    print_json({"job": job, "savepoint": path}) if as_json else print_line(path or job)


@verb(
    "verify",
    "Compare where a job runs with its placement.",
    "flink verify --rest http://localhost:8081 --placement placement.json",
    settings=FlinkVerifySettings,
)
@AS_JSON
def verify_(settings: FlinkVerifySettings, as_json: bool) -> int:
    """Compare where every subtask of a job runs with a placement; exit code 1 if they differ.

    An operator differs if its subtasks run on other devices, or if there are too few or too many.
    """
    from streamplace.flink.layout import Layout
    from streamplace.flink.pin.apply import verify
    from streamplace.flink.rest.client import only_job

    placement, rest = Layout.read(settings.placed()), settings.client()
    outcome = verify(rest, only_job(rest, settings.job), placement)
    print_json(outcome.to_json()) if as_json else print_report(outcome.report())
    return 0 if outcome.fine else 1


class JarSettings(PlacedSettings):
    """A jar that pins its job, and the devices of the cluster."""

    cluster: ClusterFile = option(
        "--cluster FILE",
        "Cluster file (TOML) of all devices, including those that are not used.",
        WHERE,
    )
    room: Room = option(
        "--room N",
        "Number of TaskManagers that may join later, as given to 'flink config'.",
        WHERE,
        default=0,
    )
    entry_class: str | None = option(
        "--entry-class NAME", "Main class of the job.  [default: the jar's own]"
    )
    libraries: Paths = option(
        "--library FILE…",
        "Further jar that the job needs; it is packed into the new jar. May be repeated.",
        WHERE,
    )
    managed_memory: QuantityText = option(
        "--managed-memory QUANTITY",
        "Managed memory of each TaskManager (taskmanager.memory.managed.size).",
        default="64MiB",
    )


@verb(
    "jar",
    "Write a jar that runs a job where it is placed.",
    "flink jar job.jar --placement placement.json --cluster cluster.toml -o placed.jar",
    settings=JarSettings,
)
@click.argument("jar", type=FILE)
@writes("Write the jar to this file.", required=True, keys=frozenset())
def jar_(jar: Path, settings: JarSettings, output: Path) -> None:
    """Write a jar that runs JAR's job where it is placed, for clusters that take no uploads.

    The new jar holds JAR and small classes of streamplace. Flink runs the class Placed, whose first
    argument is the job's own main class. Use it with 'flink run' or in application mode, also where
    web.submit.enable is false. If several jobs spread operators over the same devices, only one of
    them can run from such a jar at a time, because all use the same group indexes, from 0 on;
    'apply' looks for free indexes instead.
    """
    from streamplace.flink.layout import Layout
    from streamplace.flink.program.jars import MAIN, check_jar, is_placed, placed_jar
    from streamplace.flink.program.program import Program
    from streamplace.io.files import write_bytes
    from streamplace.model.units import size_bytes

    spare_inputs(output)
    spare_others(output, is_ours=is_placed)
    layout = Layout.read(settings.placed())
    pins = _pinning(layout, settings.cluster, settings.room)
    for library in (jar, *settings.libraries):
        check_jar(library)
    entry = Program(jar, settings.entry_class).entry
    memory = int(size_bytes(settings.managed_memory) // 2**20)
    pins = replace(pins, managed=dict.fromkeys(layout.devices, memory))
    with placed_jar(jar, settings.libraries, pins) as file:
        write_bytes(output, file.read_bytes())
    say_written("jar", output)
    say(f"run it by: flink run -c {MAIN} {output} {entry} ARGUMENTS")


def _pinning(layout: "Layout", cluster: Cluster | None, room: int) -> "Pinning":
    """Pinning on an empty cluster."""
    from streamplace.flink.pin.pinning import SpreadLimits, future_devices, pinning

    if cluster is not None:
        devices = list(cluster.devices.name)
    elif layout.spread_devices:
        raise SettingError(
            "the placement assigns subtasks one by one, so Flink must know all devices of the "
            "cluster, including unused ones; give --cluster"
        )
    else:
        devices = sorted(layout.devices)
    return pinning(layout, SpreadLimits.untouched([*devices, *future_devices(devices, room)]))
