"""Plan the cheapest machines for a rate from measurements of a running job; nothing is changed."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streamplace.engines.flink.advise.advice import (
    Advice,
    OperatorLoad,
    notes_on_busiest,
    notes_on_copies,
    notes_on_streams,
)
from streamplace.engines.flink.advise.current_machines import (
    FOLDER,
    CurrentMachines,
    change_commands,
    current_machines,
    given_sending,
    left_for_operators,
    used_machines,
)
from streamplace.engines.flink.advise.unknowns import unknowns
from streamplace.engines.flink.cpu.task_cpu import BUSY, MEASURED, OF_PROCESS, SHARED, UNKNOWN
from streamplace.engines.flink.decide.layouts import in_one_group
from streamplace.engines.flink.measure.cluster import (
    HEADROOM,
    MeasuredCluster,
    fast_enough,
    is_pinnable,
    measured_cluster,
)
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.placed_subtasks import capacity
from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.engines.flink.measure.sending_cost import SendingCost
from streamplace.engines.flink.measure.sources import (
    SourceFlow,
    asked_rate,
    check_rate,
    with_offered,
)
from streamplace.engines.flink.measure.steady import (
    GARBAGE_TIME,
    PATIENCE_SECONDS,
    Warmth,
    check_garbage,
    warm_profile,
)
from streamplace.engines.flink.move.interruption import expected_interruption
from streamplace.engines.flink.program.fixed import fixed_parts, with_loose_streams
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submitted import known_program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.job_ids import other_jobs
from streamplace.engines.flink.rest.settings import is_adaptive
from streamplace.errors import SettingError
from streamplace.io.ledger import NOISE, errors_for
from streamplace.model.cluster import Cluster
from streamplace.model.graph import CONSISTENCY, StreamGraph
from streamplace.model.intervals import PredictionErrors
from streamplace.model.messages import listed
from streamplace.model.trust import WRONG, check_trust
from streamplace.model.units import Quantity, bandwidth_bps
from streamplace.model.units import mips as parsed_mips
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue
from streamplace.planning.planner import planned
from streamplace.planning.problem import USUAL_BUDGET, PlanSettings
from streamplace.planning.result import PlanResult

CPU_WORDS = {
    MEASURED: "CPU time of threads",
    SHARED: "CPU time of threads of one name",
    OF_PROCESS: "CPU time of TaskManagers",
    BUSY: "busy time",
    UNKNOWN: "nothing",
}


@dataclass(frozen=True, slots=True)
class AdviceSettings:
    """How a job is measured, and how machines are planned."""

    # Speed of a core of the TaskManagers and bandwidth of a link, which Flink does not measure; the
    # bandwidth is assumed if it is not given.
    mips: str = "2500 MIPS"
    bandwidth: str | None = None
    seconds: float = 10.0  # length of each of two windows, whose rates must agree
    headroom: float = HEADROOM  # share of the CPU and network cards of offers that stays free
    # Random seed and budget of the search for a plan.
    seed: int = 0
    budget: Budget = USUAL_BUDGET
    # Folder that the plan will be written to, for the commands that change the job.
    folder: str = FOLDER
    patience: float = PATIENCE_SECONDS  # maximum number of seconds to wait until it is steady
    # Whether a profile is used although its model contradicts the measured rate.
    trust_profile: bool = False
    # Program of the job; by default the one that streamplace submitted.
    program: Program | None = None
    # Probability with which the plan should carry the rate; 0 ignores errors of prediction.
    confidence: float | None = None
    # TaskManager → speed of its network card, "" for all; others are measured or assumed.
    cards: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        PlanSettings(self.headroom)  # refuses what no plan can have


class _Reading(NamedTuple):
    """Measurements of a job and its cluster.

    Sources emit the rates of ``measured``, and are offered those of ``graph``. The TaskManagers in
    ``sizes`` share a machine evenly, as those that are bought; in ``cluster``, none has less than
    it uses now, and in ``here``, they also lack the CPU that other jobs take. The cost of remote
    tuples in ``sending`` is that on a whole core; None if it is not measured.
    """

    job: str
    seen: JobProfile
    measured: StreamGraph
    graph: StreamGraph
    flow: SourceFlow
    sizes: MeasuredCluster
    cluster: MeasuredCluster
    here: MeasuredCluster
    sending: SendingCost | None
    java: float
    outage: float


def advise(
    rest: Rest,
    job: str,
    rate: Quantity,
    machines: Catalogue | Cluster | None,
    settings: AdviceSettings,
    tell: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Measure a running job, and plan the cheapest machines for a rate.

    Parameters
    ----------
    rate
        Tuples/s of all sources together, or a multiple such as ``"2x"`` of what they are offered.
    machines
        Offers, or existing machines; None stands for the TaskManagers.
    tell
        Function that receives a message after every window in which the job is watched.

    Raises
    ------
    UnsteadyJob
        While its rate changes, or garbage collection dominates.
    FlinkError, ProblemError, SettingError
        When the job does not run, its profile contradicts itself, no machines carry the rate, or a
        setting is wrong.
    """
    check_rate(rate)
    reading = _read(rest, job, settings, tell)
    asked = asked_rate(rate, reading.flow)
    warning = check_trust(reading.graph, trusts=settings.trust_profile)
    factor = _correction(reading.seen, _carried(reading.measured, reading))
    graph = _scaled(reading.graph, factor).at_rate(asked)
    kept = _kept(rest, reading, settings.program)
    graph = with_loose_streams(graph, kept.loose)
    errors = errors_for(graph, settings.confidence)
    current, plan = _planned(graph, reading, machines, kept.operators, settings, errors)
    carried, cost = _carried(graph, reading), reading.cluster.sending
    return Advice(
        job=job,
        name=reading.seen.name,
        rate=asked,
        flow=reading.flow,
        current=current,
        carried=carried,
        operators=_operator_loads(reading.seen, plan),
        plan=plan,
        outage=reading.outage,
        commands=()
        if _is_enough(current, carried, plan, reading)
        else change_commands(
            rest,
            job,
            reading.seen.tasks,
            current,
            plan,
            settings.folder,
            kept.is_remembered,
        ),
        folder=settings.folder,
        notes=(*_notes(rest, reading, machines, plan), *_note_on(factor), kept.note),
        warning=warning,
        unknowns=tuple(unknowns(plan, reading.seen, given_sending(machines) or cost)),
    )


def _correction(seen: JobProfile, carried: float | None) -> float:
    """Factor of all costs with which the present layout carries what was measured; 1 if unknown.

    After a plan is carried out, advice on the job that runs there corrects the plan in this way.
    The factor is known if the sources are held back. A model that is further off than profiles may
    be is not corrected: something else limits the job.
    """
    observed = sum(seen.tuples[source.id] for source in seen.sources)
    if carried is None or not math.isfinite(carried) or not observed or not seen.is_limited:
        return 1.0
    factor = carried / observed
    return factor if 1 - WRONG <= factor <= 1 + WRONG else 1.0


def _scaled(graph: StreamGraph, factor: float) -> StreamGraph:
    """Return the graph whose operators and streams take so many times the CPU per tuple."""
    streams = replace(graph.streams, ipt=factor * graph.streams.ipt)
    operators = replace(graph.operators, ipt=factor * graph.operators.ipt)
    return replace(graph, streams=streams).with_operators(operators)


def _note_on(factor: float) -> Iterator[str]:
    """Note on costs that were scaled, if that is more than noise."""
    if abs(factor - 1) > NOISE:
        yield (
            f"the sources are held back at {1 / factor:.0%} of what the model says of the present "
            f"layout, so all costs count {factor:.2f} times"
        )


def _read(rest: Rest, job: str, settings: AdviceSettings, tell: Callable[[str], None]) -> _Reading:
    """Measure a job, provided that it runs steadily."""
    speed = parsed_mips(settings.mips)
    bandwidth_bps(settings.bandwidth or 0.0)  # a wrong one is refused before minutes have passed
    warmth = Warmth(settings.seconds, settings.patience)
    seen = warm_profile(rest, job, warmth, (GARBAGE_TIME,), tell)
    check_garbage(seen.managers)
    flow = seen.flow
    managers = rest.task_managers()
    measured = measured_graph(seen, speed)
    graph = with_offered(measured, flow)
    if all(map(is_pinnable, managers)):
        graph = in_one_group(graph)  # a placement defines its own
    java, sending = seen.java, seen.sending
    given = (rest, settings.mips, settings.bandwidth)
    sizes = measured_cluster(*given)
    cluster = measured_cluster(*given, java, sending, cards=settings.cards, used=seen.used)
    here = cluster
    seen.doubts.extend(cluster.notes)
    if seen.present is not None:
        layout, beside = seen.present.devices, seen.present.beside
        if beside:
            here = measured_cluster(*given, java, sending, beside, settings.cards, seen.used)
        cluster, raised = fast_enough(cluster, measured, layout, seen.shares)
        here, _ = fast_enough(here, measured, layout, seen.shares)
        seen.doubts.extend([raised] if raised else [])
    taken = ((java or 0.0) + (sending.fixed if sending else 0.0)) * speed
    pause = expected_interruption(rest, job, (seen.name, [*seen.tasks], [*seen.edges])).value
    return _Reading(job, seen, measured, graph, flow, sizes, cluster, here, sending, taken, pause)


class _Kept(NamedTuple):
    """Operators that keep their parallelism, with a note that says why.

    Streams in ``loose`` are forwarded only while both ends have equally many subtasks.
    """

    operators: frozenset[str]
    note: str
    is_remembered: bool = False
    loose: frozenset[tuple[str, str]] = frozenset()


def _kept(rest: Rest, reading: _Reading, given: Program | None) -> _Kept:
    """Operators whose parallelism is set by the program of a job."""
    try:
        program = given or known_program(rest, reading.job)
        may_differ = is_adaptive(rest, rest.job(reading.job))
        fixed, loose = fixed_parts(rest, program, reading.seen.tasks, may_differ=may_differ)
    except (FlinkError, SettingError) as error:
        if given is not None:
            raise
        return _Kept(
            frozenset(),
            "the plan may change the parallelism of all operators, because it is not known for "
            f"which operators the program sets it: {error}",
        )
    note = "the program of the job sets the parallelism of "
    note += f"{listed(sorted(fixed))}, so the plan keeps it" if fixed else "no operator"
    return _Kept(fixed, note, is_remembered=given is None, loose=loose)


def _planned(
    graph: StreamGraph,
    reading: _Reading,
    machines: Catalogue | Cluster | None,
    kept: frozenset[str],
    settings: AdviceSettings,
    errors: PredictionErrors | None,
) -> tuple[CurrentMachines, PlanResult]:
    """Current machines, and the plan for a graph at its rate."""
    usual = PlanSettings(
        keep_parallelism=kept,
        seed=settings.seed,
        budget=settings.budget,
        errors=errors,
    )
    present = reading.seen.present
    placed = {} if present is None else present.devices
    subtasks = Counter(device for devices in placed.values() for device in devices)
    if isinstance(machines, Catalogue):
        current = current_machines(reading.sizes, machines, subtasks)
        shared = replace(machines, slot_sharing=True)
        speed = parsed_mips(settings.mips)
        offers = left_for_operators(shared, reading.java, reading.sending, speed)
        return current, planned(graph, offers, replace(usual, headroom=settings.headroom))
    cluster = reading.cluster.cluster() if machines is None else machines
    return used_machines(reading.sizes, subtasks), planned(graph, cluster, usual)


def _operator_loads(seen: JobProfile, plan: PlanResult) -> tuple[OperatorLoad, ...]:
    return tuple(
        OperatorLoad(
            task.name,
            seen.cpu[task.id].cores / seen.tuples[task.id] if seen.tuples[task.id] else 0.0,
            CPU_WORDS[seen.cpu[task.id].source],
            task.parallelism,
            plan.parallelism[task.name],
            task.max_parallelism,
        )
        for task in seen.tasks
    )


def _carried(graph: StreamGraph, reading: _Reading) -> float | None:
    """Tuples/s that the job can carry where it runs, by the model; None if that is unknown.

    Subtasks that have ended may have run on a TaskManager that was released since.
    """
    if reading.seen.present is None:
        return None
    placed = {name: list(devices) for name, devices in reading.seen.present.devices.items()}
    cluster, shares = reading.here.cluster(), reading.seen.shares
    if not {device for devices in placed.values() for device in devices} <= {*cluster.devices.name}:
        return None
    return graph.source_rate * capacity(graph, cluster, placed, shares)


def _is_enough(
    current: CurrentMachines, carried: float | None, plan: PlanResult, reading: _Reading
) -> bool:
    """Whether the current machines carry the rate of a plan and cost no more than the plan.

    They do if they carry it now, or at the lower end of the prediction.
    """
    least = 1.0 if plan.errors is None else plan.errors.least
    carries = (
        carried is not None and max(least * carried, min(reading.flow.rate, carried)) >= plan.rate
    )
    return carries and not current.unmatched and current.cost <= plan.cost


def _notes(
    rest: Rest, reading: _Reading, machines: Catalogue | Cluster | None, plan: PlanResult
) -> tuple[str, ...]:
    """Notes on missing measurements, and on what the advice leaves out."""
    notes = [*reading.seen.doubts]
    checked = reading.graph.attributes.get(CONSISTENCY)
    if checked is not None:
        notes.append(f"{CONSISTENCY}: {checked}")
    if reading.cluster.java is None:
        notes.append("what Java itself takes of each TaskManager is not measured and left out")
    if machines is None and reading.cluster.unmeasured_sending:
        notes.append(reading.cluster.unmeasured_sending)
    elif reading.cluster.sending.is_assumed and given_sending(machines) is None:
        kind = "offers" if isinstance(machines, Catalogue) else "machines"
        notes.append(
            "what sending a tuple to another TaskManager costs is not measured and left out; to "
            f"have it counted, give overhead in the file of {kind}"
        )
    notes.extend(notes_on_streams(reading.graph))
    notes.extend(notes_on_busiest(plan, reading.seen.shares))
    notes.extend(notes_on_copies(reading.seen.copied_to))
    if others := other_jobs(rest, reading.job):
        notes.append(
            f"the plan is for this job alone, and the jobs {listed(others)} share its machines"
        )
    return tuple(notes)
