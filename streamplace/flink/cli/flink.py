"""``streamplace flink``: measurement, placement and checks of jobs on a running Flink."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import click
from annotated_types import Interval

from streamplace.cli._command import CommandGroup, verb
from streamplace.cli._options import ARGUMENTS, JAR, common, writes
from streamplace.cli._output import check_output, spare_inputs, spare_others
from streamplace.cli._printing import (
    print_file,
    print_json,
    print_line,
    print_report,
    say,
    say_notes,
    say_written,
    waiting,
)
from streamplace.cli._process import interruptible
from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.cli._jobs import apply_, cancel_, jar_, verify_
from streamplace.flink.cli._move import move_
from streamplace.flink.cli._watch import history_, watch_
from streamplace.flink.settings import (
    FlinkAdviseSettings,
    FlinkClusterSettings,
    FlinkProfileSettings,
    Room,
)
from streamplace.model.message_text import counted
from streamplace.settings.base import VerbSettings
from streamplace.settings.convert import ClusterFile, Count
from streamplace.settings.option import WHERE, option

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamplace.flink.advise.namespace import JobRow
    from streamplace.flink.measure.profile import JobProfile
    from streamplace.model import StreamGraph


RATES = "rates.csv"
"""File of the rates of a history."""
DEPLOYED = "deployment"
"""Attribute of a measured graph: how the job is deployed."""
PEAK = "1x"
"""Rate of a plan from a history if none is given."""
MEASURING_SECONDS = 25.0
"""Time to measure a steady job."""
CONFIG_HEAD = "# streamplace flink config: append this to conf/config.yaml of its TaskManager\n"


@click.group(
    "flink",
    cls=CommandGroup,
    short_help="Measure, place and check jobs on a running Flink cluster.",
    epilog="Example: streamplace flink local --devices 5",
)
def command() -> None:
    """Measure, place and check jobs on a running Flink cluster.

    To place a running job, measure it with 'cluster' and 'profile', place the measured graph with
    'streamplace place', move the job with 'move', and check it with 'verify'. Without a placement,
    'move' does all of this. 'fetch' and 'local' start a cluster on this machine, to try it.
    """


@verb("fetch", "Download Flink's libraries from PyPI, once.", "flink fetch", group=command)
@click.option("--version", help="Version of Flink.  [default: the one streamplace is tested with]")
def fetch(version: str | None) -> None:
    """Download Flink's libraries (230 MB) from PyPI into the user's cache folder, once."""
    from streamplace.flink.local.session import fetch_flink
    from streamplace.flink.versions import DOWNLOADED

    flink = fetch_flink(version or DOWNLOADED)
    say(f"Flink {flink.version} is in {flink.home}")


class LocalSettings(VerbSettings):
    """A cluster on this machine."""

    devices: Annotated[Count, Interval(le=64)] = option(
        "--devices N", "Number of TaskManagers.", WHERE, default=5
    )
    port: Annotated[Count, Interval(le=65_535)] | None = option(
        "--port N", "Port of the REST interface.  [default: a free one]", WHERE
    )
    flink_home: Path | None = option(
        "--flink-home FILE",
        "Folder of a Flink installation, whose libraries are used.  [default: $FLINK_HOME, or what "
        "pip or 'flink fetch' has installed]",
        WHERE,
    )


@verb(
    "local",
    "Run a Flink cluster on this machine.",
    "flink local --devices 5",
    group=command,
    settings=LocalSettings,
)
def local(settings: LocalSettings) -> None:
    """Run a session cluster on this machine, one TaskManager per device, until Ctrl-C.

    The devices are called dev-0, dev-1, …. Each takes about 250 MB of memory. The process id
    of each TaskManager is printed, so that you can try a loss with kill -9: the cluster goes on.
    """
    from streamplace.flink.local.session import check_port, find_flink, local_cluster

    port, names = settings.port, [f"dev-{i}" for i in range(settings.devices)]
    if port is not None:
        check_port(port)
    flink = find_flink(settings.flink_home)
    try:
        with interruptible():
            say(f"starting Flink {flink.version} with {len(names)} TaskManagers")
            with local_cluster(flink, names, port=port) as cluster:
                print_line(cluster.url)
                for device in cluster.devices:
                    say(f"TaskManager {device} is process {cluster.processes[device].pid}")
                say("ready; Ctrl-C stops it")
                cluster.watch(say)
    except KeyboardInterrupt:
        say("stopped")


@verb(
    "cluster",
    "Write a running cluster as a cluster file.",
    "flink cluster -o cluster.toml",
    group=command,
    settings=FlinkClusterSettings,
)
@writes("Write the cluster to this TOML file.")
def cluster_(settings: FlinkClusterSettings, output: Path | None) -> None:
    """Write a cluster file with a device for every TaskManager.

    The command watches the given job, or one that runs. For TaskManagers on this machine, it
    measures the CPU of Java itself, which is reserved, and the CPU of sending and receiving a
    tuple, and reads the CPU limits of their cgroups. Values that it cannot measure are assumed, and
    marked in the file and the output. You can edit everything in the file.
    """
    from streamplace.flink.deployment import deployment_of
    from streamplace.io.files import write_text

    engine = settings.engine()
    with waiting(f"watching for {settings.seconds:g} s"):
        measured = engine.cluster(settings.job, settings.seconds, beside=settings.beside)
    size, text = measured.cluster().n_devices, measured.as_toml()
    if measured.java is None:
        say(
            "note: the CPU of Java itself is not measured; run the command on a machine with a JDK "
            "(jcmd) and TaskManagers of a running job"
        )
    say_notes((*measured.assumptions, *measured.notes))
    if obstacle := deployment_of(engine.rest).obstacle_to_pins:
        say(f"note: {obstacle}")
    if output is None:
        print_file(text)
    else:
        write_text(output, text)
        say(f"{size} devices → {output}")


class ConfigSettings(VerbSettings):
    """Devices of a cluster, and how operators may be placed on them."""

    cluster: ClusterFile = option("--cluster FILE", "Cluster file (TOML).", WHERE)
    room: Room = option(
        "--room N",
        "Number of TaskManagers that may join later, as new-1, new-2, …, without restarts.",
        WHERE,
        default=0,
    )
    subtasks: bool = option(
        "--subtasks",
        "Allow the subtasks of an operator to be on several TaskManagers. Each file then has "
        "about 200 lines instead of 3.",
    )
    layers: Annotated[Count, Interval(le=1000)] | None = option(
        "--layers N",
        "With --subtasks: number of operators, of all jobs together, that may have unequal numbers "
        "of subtasks on one TaskManager.  [default: 32 for up to 8, 2 for 100]",
    )

    def check(self) -> None:
        """Refuse settings without a cluster."""
        super().check()
        self.check_set("cluster")


@verb(
    "config",
    "Write the settings that make TaskManagers devices.",
    "flink config --cluster cluster.toml --room 3 -o config/",
    group=command,
    settings=ConfigSettings,
)
@writes("Folder for DEVICE.yaml files.", folder=True, required=True)
def config_(settings: ConfigSettings, output: Path) -> None:
    """Write the Flink settings that make each TaskManager a device of the cluster.

    Append each file to conf/config.yaml of its TaskManager and restart the TaskManager, once. Later
    placements need no restart. With --subtasks, placements may put the subtasks of one operator on
    several TaskManagers. 'flink move' needs it for jobs that run like that. If TaskManagers may
    join later, reserve places for them with --room: a TaskManager that is started with new-1.yaml
    is the device new-1. Without a reserved place, a new TaskManager can run whole operators, but
    not single subtasks of an operator.
    """
    from streamplace.flink.pin.pinning import cluster_settings
    from streamplace.io.files import make_folder, write_texts

    assert settings.cluster is not None
    layers = settings.layers if settings.layers is not None or settings.subtasks else 0
    files = cluster_settings(settings.cluster.devices.name, settings.room, layers)
    texts = {output / name: f"{CONFIG_HEAD}{text}" for name, text in files.items()}
    spare_others(*texts)
    make_folder(output)
    write_texts(texts)
    say(f"{len(files)} files → {output}")


@verb(
    "profile",
    "Measure a running job as a graph.",
    "flink profile --rest http://localhost:8081 -o graph.json",
    group=command,
    settings=FlinkProfileSettings,
)
@common(
    "File to write: the graph (.json), or a report (.html). Of a resource of Flink's operator also "
    "a folder, for graph.json, and reporter.json and patch.json, which add the reporter; with "
    "--from a folder for graph.json and rates.csv, which 'plan --trace' reads.",
    folder=None,
)
def profile_(settings: FlinkProfileSettings, output: Path | None, as_json: bool) -> None:
    """Measure a running job: rates, selectivities, payloads, CPU per tuple and parallelism.

    The job is watched until it is steady, since a job that has just started needs more CPU.
    Operators that Flink has chained are measured and placed as one. The command lists missing
    measurements, and compares the model's prediction for the current placement with the measured
    rate. For each operator that limits the job it prints the TaskManagers, the cause, the number
    that shows it, and a remedy.

    With --from, the metrics of days in Prometheus take the place of watching: costs are fitted to
    all rates that the job had, and the graph has the highest ones.
    """
    from streamplace.display.report import Detail, Report
    from streamplace.display.sheets import operators_sheet
    from streamplace.flink.decide.hot import hot_lines, why_hot
    from streamplace.flink.deployment import deployment_of
    from streamplace.flink.engine import FlinkEngine
    from streamplace.flink.measure.measured_graph import measured_graph
    from streamplace.flink.measure.profile import steady_profile
    from streamplace.flink.operator.mounting import CONFIG_MAP, PATCH, reporter_files
    from streamplace.flink.operator.resource import FlinkResource
    from streamplace.flink.rest.client import only_job
    from streamplace.io.files import make_folder, write_texts
    from streamplace.io.graphs import graph_to_dict, write_graph
    from streamplace.model.units import digits
    from streamplace.model.units import mips as parsed_mips

    rest, speed, files = settings.client(), parsed_mips(settings.mips), dict[str, str]()
    folder = None if output is None or output.suffix else output
    if folder is not None:
        resource = rest.resource if settings.history is None else None
        files = reporter_files(resource.as_run(rest)) if isinstance(resource, FlinkResource) else {}
        spare_others(*(folder / name for name in files), keys=frozenset(("binaryData", "spec")))
        spare_others(folder / "graph.json")
        spare_others(folder / RATES, is_ours=_is_trace)
    check_output(output, is_folder=bool(files) or (folder is not None and bool(settings.history)))
    job = only_job(rest, settings.job)
    rest.running_job(job)
    deployment = str(deployment_of(rest, job))
    say(f"{DEPLOYED}: {deployment}")
    hot: Mapping[str, str] = {}
    if (history := settings.read_history(rest, job)) is None:
        with waiting(f"watching in windows of {settings.seconds:g} s"):
            profile = steady_profile(rest, job, settings.seconds, settings.patience)
            graph = measured_graph(profile, speed)
            hot = why_hot(FlinkEngine(rest, settings.mips), job, profile, graph)
    else:
        say(str(history))
        profile, files = history.profile(), {RATES: history.trace_text()}
        graph = measured_graph(profile, speed)
    graph = replace(graph, attributes={**graph.attributes, DEPLOYED: deployment, **hot})
    if folder is not None and files:
        make_folder(folder)
        output = folder / "graph.json"
        write_texts({folder / name: text for name, text in files.items()})
    if output is not None and output.suffix == ".html":
        graph.report().save(output)
    elif output is not None:
        write_graph(graph, output)
    if as_json:
        print_json(graph_to_dict(graph))
    else:
        where = "" if output is None else f" → {output}"
        say(f"{graph.n_operators} operators, {digits(graph.source_rate, 6)} tuples/s{where}")
        if any(graph.operators.about):
            print_report(Report((Detail(operators_sheet(graph.operators)),)))
    _say_profile(profile, graph)
    for line in hot_lines(hot):
        say(line)
    if folder is not None and history is None and isinstance(rest.resource, FlinkResource):
        say("to add the reporter, which measures the CPU of threads:")
        say(f"  kubectl apply --filename {quote(str(folder / CONFIG_MAP))}")
        say(f"  {rest.resource.patch_command(str(folder / PATCH))}")


def _is_trace(path: Path) -> bool:
    from streamplace.io.files import read_lines

    return next(read_lines(path), (0, b""))[1].startswith(b"time,")


def _say_profile(profile: "JobProfile", graph: "StreamGraph") -> None:
    """Print how a profile was measured, and what is missing."""
    from streamplace.model.graph import CONSISTENCY, CPU_ORIGIN

    for fact in (CPU_ORIGIN, CONSISTENCY):
        if fact in graph.attributes:
            say(f"{fact}: {graph.attributes[fact]}")
    for source in profile.flow.sources.values():
        say(f"lag of {source.name}: {source.lag}")
    say_notes(profile.doubts)


@verb(
    "advise",
    "Plan the cheapest machines for a running job.",
    "flink advise --rest http://localhost:8081 --rate 2x --offers offers.toml",
    group=command,
    settings=FlinkAdviseSettings,
)
@JAR
@ARGUMENTS
@common(
    "Folder for plan.json, graph.json, cluster.toml, placement.json, plan.svg, report.html, and "
    "patch.yaml for a FlinkDeployment; or the report (.html) or the patch (.yaml) alone, into the "
    "manifest of the resource if the file is that.",
    folder=None,
)
def advise_(
    jar: Path | None,
    arguments: tuple[str, ...],
    settings: FlinkAdviseSettings,
    as_json: bool,
    output: Path | None,
) -> None:
    """Read a running job, and plan the cheapest machines for a rate. Nothing is changed.

    The command watches the job until it is steady, or reads its history with --from, which also
    shows costs for other rates of that time. It prints the cost of the TaskManagers by the offers,
    rate and CPU of the job, the cheapest plan that carries the rate, with a proven bound, missing
    measurements, the gain of the change, and the commands for it. Without --offers and --cluster,
    the plan uses as few of the TaskManagers as possible.

    The plan keeps the parallelism that the program sets: to find it, the program's main method is
    run twice, without submitting anything. Give JAR, its options and ARGUMENTS as the job was
    submitted with; without them, the plan may change the parallelism of all operators.

    With --rest kubernetes:NAMESPACE, or with --from alone, a table has a row for every job, sorted
    by savings, and -o writes it as a page (.html).
    """
    from streamplace.flink.advise.patch_file import SUFFIXES

    if (namespace := settings.namespace) is not None:
        if jar is not None:
            raise SettingError("JAR is for one job; name its Flink by --rest, or leave JAR out")
        settings.program(None, arguments)
        _advise_all(settings, namespace, output, as_json=as_json)
        return
    folder = None if output is None or output.suffix == ".html" else output
    edits = _edits_manifest(folder, settings.rest)
    check_output(output, is_folder=folder is not None and folder.suffix not in SUFFIXES)
    program, engine = settings.program(jar, arguments), settings.engine(say)
    settings = settings.annotated(engine.rest.resource)
    job = engine.job(settings.job)
    steps = "watching the job until it is steady, then planning"
    with waiting("reading the history of the job" if settings.history else steps):
        history = settings.read_history(engine.rest, job)
        advice = engine.advise(
            job,
            settings.rate or ("" if history is None else PEAK),
            settings.offers or settings.cluster,
            settings.of_plan(),
            seconds=settings.seconds,
            program=program,
            folder=folder,
            history=history,
        )
    written = "" if output is None else advice.write(output)
    if as_json:
        print_json(advice.to_json())
    else:
        print_report(advice.summary())
        apply = [f"kubectl apply --filename {quote(str(output))}"]
        for line in apply if edits and written else advice.commands:
            print_line(f"  {line}")
        if advice.notes:
            say(f"-v shows {counted(len(advice.notes), 'note')} on missing measurements and costs")
    if output is not None and written:
        say_written(written, output)


def _edits_manifest(output: Path | None, rest: str) -> bool:
    """Whether the patch goes into the manifest of a resource; refuse to overwrite other files."""
    from streamplace.flink.advise.equal_pods import PATCH
    from streamplace.flink.advise.patch_file import SUFFIXES, check_manifest, is_manifest
    from streamplace.flink.operator.resource import named
    from streamplace.planning.result import FILES

    if output is None:
        return False
    if output.suffix not in SUFFIXES:
        files = [output / name for name in (*FILES, PATCH)]
        spare_inputs(*files)
        spare_others(*files)
        return False
    if (resource := named(rest)) is None:
        raise SettingError(
            f"-o {output} is for the patch of a FlinkDeployment; name a folder, or give --rest "
            "kubernetes:NAMESPACE/NAME"
        )
    spare_inputs(output)
    if edits := is_manifest(output):
        check_manifest(output, *resource)
    return edits


def _advise_all(
    settings: FlinkAdviseSettings, namespace: str, output: Path | None, *, as_json: bool
) -> None:
    """Print the table of all jobs of a namespace, or of all jobs in Prometheus."""
    from streamplace.flink.advise.namespace import FROM_METRICS, JobRow, NamespaceAdvice
    from streamplace.io.files import check_suffix

    if output is not None:
        check_suffix(output, "the table", ".html")
    jobs = _jobs_of_namespace(settings, namespace) if namespace else _jobs_of_metrics(settings)
    rows = []
    for i, (name, judge) in enumerate(jobs.items(), 1):
        with waiting(f"{name}, {i} of {len(jobs)}"):
            try:
                rows.append(judge())
            except StreamplaceError as error:
                rows.append(JobRow(name, str(error)))
    title = f"Namespace {namespace}" if namespace else "Jobs of Flink in Prometheus"
    unit, notes = "per hour" if settings.offers else "cores", () if namespace else (FROM_METRICS,)
    advice = NamespaceAdvice(title, rows, unit, notes)
    if output is not None:
        advice.report().save(output)
    print_json(advice.to_json()) if as_json else print_report(advice.report())
    if output is not None:
        say_written("table", output)


def _jobs_of_namespace(
    settings: FlinkAdviseSettings, namespace: str
) -> "dict[str, Callable[[], JobRow]]":
    """Resource of a namespace → function that judges its job, as for one job."""
    from streamplace.display.report import duration
    from streamplace.flink.advise.namespace import row_of_job
    from streamplace.flink.operator.api import usual_api
    from streamplace.flink.operator.resource import FlinkResource, names_in
    from streamplace.flink.prometheus.reading import jobs_in, read_history
    from streamplace.model.units import mips as parsed_mips

    names, metrics = names_in(usual_api(), namespace), settings.prometheus()
    if metrics is None:
        shortest, longest = (
            duration(seconds * len(names)) for seconds in (MEASURING_SECONDS, settings.patience)
        )
        say(
            f"{counted(len(names), 'job')}, measured one after the other: {shortest} in all, up to "
            f"{longest} if they are not steady"
        )
    elif namespace in {label for label, _ in jobs_in(*metrics)}:
        metrics = settings.prometheus(namespace)

    def judge(name: str) -> "JobRow":
        engine = settings.of_job(name).engine()
        if isinstance(engine.rest.resource, FlinkResource):
            engine.rest.resource.refuse_shared()
        limits = settings.annotated(engine.rest.resource)
        job, rate, offers = engine.job(), settings.rate or PEAK, settings.offers
        history = metrics and read_history(metrics[0], engine.rest, job, metrics[1])
        measured = engine.measured_job(job, engine.deployment(job), settings.seconds, history)
        advice, of_plan = None, limits.of_plan()
        if history is not None or measured.profile.flow.offered is not None:
            advice = engine.advise(
                job, rate, offers, of_plan, history=history, measured=measured, costs=False
            )
        return row_of_job(name, measured, history, advice, parsed_mips(settings.mips), offers)

    return {name: partial(judge, name) for name in names}


def _jobs_of_metrics(settings: FlinkAdviseSettings) -> "dict[str, Callable[[], JobRow]]":
    """Job of a Prometheus → function that judges it by metrics alone."""
    from streamplace.flink.advise.namespace import row_of_metrics
    from streamplace.flink.prometheus.reading import jobs_in, read_metrics
    from streamplace.model.units import mips as parsed_mips

    metrics = settings.prometheus()
    assert metrics is not None
    jobs = jobs_in(*metrics)
    has_several = len({namespace for namespace, _ in jobs}) > 1

    def judge(name: str, namespace: str, job: str) -> "JobRow":
        source = settings.prometheus(namespace)
        assert source is not None
        prometheus, span = source
        speed, rate = parsed_mips(settings.mips), settings.rate or PEAK
        metrics = read_metrics(prometheus, job, span)
        return row_of_metrics(name, metrics, rate, speed, settings.offers)

    names = [f"{namespace}/{job}" if has_several else job for namespace, job in jobs]
    return {name: partial(judge, name, *pair) for name, pair in zip(names, jobs, strict=True)}


for further in (apply_, jar_, move_, cancel_, verify_, watch_, history_):
    command.add_command(further)
