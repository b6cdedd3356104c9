"""Shared options of the commands on a running Flink, and output of their results."""

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamplace.cli._options import DEFAULTS, FILE, with_each
from streamplace.cli._output import console, print_table
from streamplace.errors import SettingError
from streamplace.model.report import by_device

if TYPE_CHECKING:
    from streamplace.engines.flink.pin.verify import Verification
    from streamplace.engines.flink.program.program import Program

F = TypeVar("F", bound=Callable[..., Any])
JOB = click.option("--job", help="Id of the job. It is needed only where several jobs run.")
PLACEMENT = click.option(
    "--placement",
    type=FILE,
    required=True,
    help="Placement of the job's operators or subtasks (JSON).",
)
MIPS = click.option(
    "--mips", default=DEFAULTS["mips"], show_default=True, help="Speed of a core of the devices."
)
BANDWIDTH = click.option(
    "--bandwidth",
    help="Bandwidth between each two TaskManagers, which Flink does not measure. What one "
    "TaskManager sends to, or receives from, all others together is limited by its network card.  "
    f"[default: {DEFAULTS['bandwidth']}, or the speed of the fastest network card if it is more]",
)
KNOWN_CLUSTER = click.option(
    "--cluster",
    "cluster_file",
    type=FILE,
    help="Cluster file (TOML) of the devices.  [default: measure them]",
)
NIC = click.option(
    "--nic",
    multiple=True,
    metavar="[NAME=]SPEED",
    help="Speed of the network card of a TaskManager, or of all without a name, such as '1 Gbps'. "
    "May be repeated.  [default: the link speed where this machine knows it, else that of the "
    "links between TaskManagers]",
)
SECONDS = click.option(
    "--seconds",
    type=click.FloatRange(2, 3600),
    default=10.0,
    show_default=True,
    help="Seconds for which the cluster is watched.",
)
WINDOW = click.option(
    "--seconds",
    type=click.FloatRange(2, 3600),
    default=5.0,
    show_default=True,
    help="Length of each window in which the job is watched. It takes several until the job is "
    "steady.",
)
PATIENCE = click.option(
    "--patience",
    type=click.FloatRange(0, 86_400),
    default=120.0,
    show_default=True,
    help="Seconds for which the job is watched at most until its rate and its CPU per tuple are "
    "steady. The intervals of a job that is not steady by then are wider.",
)
HOME = click.option(
    "--flink-home",
    type=FILE,
    help="Folder of a Flink installation, whose libraries are used.  [default: $FLINK_HOME, or "
    "what pip or 'flink fetch' has installed]",
)
TIMEOUT = click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=120.0,
    show_default=True,
    help="Seconds within which every subtask must run, with its state restored.",
)
ALLOW_NON_RESTORED = click.option(
    "--allow-non-restored",
    is_flag=True,
    help="Drop state of the savepoint that belongs to no operator of the job.",
)
UNCOUNTED = (
    "the placement does not say how many subtasks its operators have, so they were not counted; "
    "a placement that 'streamplace place' writes does"
)


def check_nic(nic: Collection[str], described: Mapping[str, object]) -> None:
    """Raise SettingError for speeds of network cards beside an option that describes machines."""
    for option, value in described.items():
        if nic and value is not None:
            raise SettingError(
                f"--nic is for TaskManagers that are measured; drop {option} or --nic"
            )


def asks(function: F) -> F:
    """Options for Flink's REST interface, passed on as ``rest``."""

    @wraps(function)
    def call(
        *arguments: Any,
        url: str,
        cacert: Path | None,
        cert: Path | None,
        key: Path | None,
        authorization: Path | None,
        **options: Any,
    ) -> Any:
        from streamplace.engines.flink.rest.client import Rest
        from streamplace.engines.flink.rest.transport import Access, read_authorization

        access = Access(cacert, cert, key, read_authorization(authorization))
        return function(*arguments, rest=Rest(url, access=access), **options)

    answer: Any = call
    asking: F = with_each(
        answer,
        click.option(
            "--authorization",
            type=FILE,
            help="File with 'Bearer TOKEN' or 'NAME:PASSWORD'.  "
            "[default: $STREAMPLACE_FLINK_AUTHORIZATION]",
        ),
        click.option(
            "--key", type=FILE, help="Key of the certificate (PEM), if --cert does not contain it."
        ),
        click.option("--cert", type=FILE, help="Client certificate (PEM)."),
        click.option(
            "--cacert",
            type=FILE,
            help="Certificates that the server's certificate is checked against (PEM).",
        ),
        click.option(
            "--rest",
            "url",
            default="http://localhost:8081",
            show_default=True,
            help="Address of Flink's REST interface.",
        ),
    )
    return asking


def submits(function: F) -> F:
    """Options to submit a job with its JAR; ``program_of`` converts them."""
    return _submitted(function, click.argument("jar", type=FILE))


def may_submit(function: F) -> F:
    """Optional JAR and options to submit a job; ``given_program`` converts them."""
    return _submitted(function, click.argument("jar", type=FILE, required=False))


def _submitted(function: F, jar: Callable[[F], F]) -> F:
    return with_each(
        function,
        click.option(
            "--managed-memory",
            help="Managed memory that the job takes of each TaskManager at most.  [default: all]",
        ),
        click.option(
            "-p",
            "--parallelism",
            type=click.IntRange(1),
            help="Parallelism of operators for which neither the job nor the placement sets one.",
        ),
        click.option(
            "-D",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="Flink setting for this job. May be repeated.",
        ),
        click.option(
            "-C",
            "--classpath",
            "classpaths",
            multiple=True,
            help="URL of classes that all machines of the cluster can read. May be repeated.",
        ),
        click.option(
            "--library",
            "libraries",
            type=FILE,
            multiple=True,
            help="Further jar that the job needs. May be repeated.",
        ),
        click.option("--entry-class", help="Main class of the job.  [default: the jar's own]"),
        click.argument("arguments", nargs=-1),
        jar,
    )


def program_of(
    *,
    jar: Path,
    arguments: tuple[str, ...],
    entry_class: str | None,
    libraries: tuple[Path, ...],
    classpaths: tuple[str, ...],
    settings: tuple[str, ...],
    parallelism: int | None,
    managed_memory: str | None,
) -> "Program":
    """Job that the options of ``submits`` describe."""
    from streamplace.engines.flink.program.program import Program, parse_settings
    from streamplace.model.units import size_bytes

    managed = None if managed_memory is None else int(size_bytes(managed_memory) // 2**20)
    program = Program(
        jar,
        entry_class,
        arguments,
        libraries,
        classpaths,
        parse_settings(settings),
        parallelism,
        managed,
    )
    program.check()
    return program


def given_program(**submitted: Any) -> "Program | None":
    """Job that the options of ``may_submit`` describe; None without a JAR."""
    if submitted["jar"] is not None:
        return program_of(**submitted)
    if any(value not in (None, ()) for value in submitted.values()):
        raise SettingError(
            "what a job is submitted with is given together with its jar; name JAR, too, or drop "
            "the other options of the submission"
        )
    return None


def verification(outcome: "Verification") -> dict[str, Any]:
    """Convert a verification to a JSON document."""
    return {
        "ok": outcome.fine,
        "problems": list(outcome.problems),
        "uncounted": list(outcome.uncounted),
        "operators": [
            {
                "name": check.operator,
                "ok": check.fine,
                "expected": dict(check.expected),
                "actual": dict(check.actual),
            }
            for check in outcome.checks
        ],
    }


def show(outcome: "Verification") -> None:
    """Print a verification."""
    out = console()
    rows = [
        (
            check.operator,
            by_device(check.expected),
            by_device(check.actual),
            "ok" if check.fine else "differs",
        )
        for check in outcome.checks
    ]
    print_table(("operator", "expected", "actual", ""), rows)
    for problem in outcome.problems:
        out.print(f"problem: {problem}")
    if outcome.uncounted:
        out.print(f"note: {UNCOUNTED}")
    wrong = sum(not check.fine for check in outcome.checks)
    out.print(
        "Every subtask runs where it was placed."
        if outcome.fine
        else f"{wrong} of {len(outcome.checks)} operators differ."
    )
