"""Plan the cheapest machines for a rate from measurements of a running job; nothing is changed."""

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from streamplace.engines.flink.advise.advice import (
    FOLDER,
    Advice,
    CurrentMachine,
    CurrentMachines,
    OperatorLoad,
)
from streamplace.engines.flink.cpu.task_cpu import BUSY, MEASURED, OF_PROCESS, SHARED, UNKNOWN
from streamplace.engines.flink.decide.layouts import in_one_group
from streamplace.engines.flink.decide.rates import JobRates
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import (
    FRAMING,
    HEADROOM,
    MeasuredCluster,
    MeasuredDevice,
    fast_enough,
    is_pinnable,
    measured_cluster,
)
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.measurement import Measurement
from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.engines.flink.measure.sources import asked_rate, check_rate, with_offered
from streamplace.engines.flink.measure.steady import (
    GARBAGE_TIME,
    PATIENCE_SECONDS,
    check_garbage,
    steady_profile,
)
from streamplace.engines.flink.measure.streams import MESSAGE_COST, SendingCost
from streamplace.engines.flink.move.interruption import expected_interruption
from streamplace.engines.flink.program.fixed import fixed_parts, with_loose_streams
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submitted import known_program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.job_ids import other_jobs
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.engines.flink.rest.settings import is_adaptive, is_reactive, shown_settings
from streamplace.errors import SettingError
from streamplace.io.ledger import NOISE, errors_for
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.intervals import RateInterval
from streamplace.model.messages import counted, listed, quoted
from streamplace.model.trust import WRONG
from streamplace.model.units import Quantity, bandwidth_bps, digits, format_bytes
from streamplace.model.units import mips as parsed_mips
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer, Prices
from streamplace.planning.planner import planned
from streamplace.planning.problem import USUAL_BUDGET, PlanSettings
from streamplace.planning.result import PlanResult

ALIKE = 0.01
"""Speeds with a smaller relative difference are equal."""
NOTABLE = 0.01
"""Least share of the CPU of a plan that its own parallelism changes for it to be planned again."""
BY_NAME, BY_SIZE = "name", "size"
_NUMBERED = re.compile(r"-\d+")
REACTIVE = (
    "# the cluster runs in reactive mode: the job takes all slots, and Flink refuses to change the "
    "numbers of its subtasks"
)

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
    # Program of the job; by default the one that streamplace submitted.
    program: Program | None = None
    # TaskManager → speed of its network card, "" for all; others are measured or assumed.
    cards: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        PlanSettings(self.headroom)  # refuses what no plan can have


class _Reading(NamedTuple):
    """Measurements of a job and its cluster.

    The TaskManagers in ``sizes`` share a machine evenly, as those that are bought; in ``cluster``,
    none has less than it uses now. The cost of remote tuples in ``sending`` is that on a whole
    core; None if it is not measured.
    """

    job: str
    seen: JobProfile
    graph: StreamGraph  # at the rates that its sources are offered
    rates: JobRates | None  # predicts layouts of the job; None if it is unknown where it runs
    sizes: MeasuredCluster
    cluster: MeasuredCluster
    sending: SendingCost | None
    java: float  # MIPS that Java itself takes of each TaskManager


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
        When the job does not run, no machines carry the rate, or a setting is wrong.
    """
    check_rate(rate)
    reading = _read(rest, job, settings, tell)
    seen, flow = reading.seen, reading.seen.flow
    asked = asked_rate(rate, flow)
    kept = _kept(rest, reading, settings.program)
    graph, told = _at_measured_costs(reading)
    graph = with_loose_streams(graph.at_rate(asked), kept.loose)
    errors = errors_for(graph)
    usual = PlanSettings(
        keep_parallelism=kept.operators, seed=settings.seed, budget=settings.budget, errors=errors
    )
    current, plan = _planned(graph, reading, machines, usual, settings)
    carried = _carried(reading, plan)
    is_enough = (
        carried is not None
        and max(carried.low, min(flow.rate, carried.value)) >= asked
        and not current.unmatched
        and current.cost <= plan.cost
    )
    change = () if is_enough else change_commands(
        rest, job, seen.tasks, current, plan, settings.folder, kept.is_remembered
    )  # fmt: skip
    return Advice(
        job,
        seen.name,
        asked,
        flow,
        current,
        carried,
        _operator_loads(seen, plan),
        plan,
        expected_interruption(rest, job, (seen.name, [*seen.tasks], [*seen.edges])).value,
        change,
        (*_notes(rest, reading, machines, plan), *told, kept.note),
        settings.folder,
    )


def _read(rest: Rest, job: str, settings: AdviceSettings, tell: Callable[[str], None]) -> _Reading:
    """Measure a job, provided that it runs steadily."""
    speed = parsed_mips(settings.mips)
    bandwidth_bps(settings.bandwidth or 0.0)  # a wrong one is refused before minutes have passed
    seen = steady_profile(rest, job, settings.seconds, settings.patience, (GARBAGE_TIME,), tell)
    check_garbage(seen.managers)
    managers = rest.task_managers()
    measured, flow = measured_graph(seen, speed), seen.flow
    java, sending = seen.java, seen.sending
    given = (rest, settings.mips, settings.bandwidth)
    sizes = measured_cluster(*given)
    cluster = measured_cluster(*given, java, sending, cards=settings.cards, used=seen.used)
    seen.doubts.extend(cluster.notes)
    rates = None
    if seen.present is not None:
        here, layout = cluster, Layout(seen.present.devices)
        if beside := seen.present.beside:  # the CPU of other jobs
            here = measured_cluster(*given, java, sending, beside, settings.cards, seen.used)
        cluster, raised = fast_enough(cluster, measured, layout, seen.shares)
        here, _ = fast_enough(here, measured, layout, seen.shares)
        seen.doubts.extend([raised] if raised else [])
        devices, used = here.cluster(), layout.devices
        if used <= {*devices.devices.name}:  # ended subtasks may have run on one that has left
            whole = Measurement(
                measured, devices, seen.is_limited, (), seen.shares, seen.held_back, flow=flow
            )
            rates = JobRates(whole, layout, flow.rate)  # of all sources together
    graph = with_offered(measured, flow)
    if all(map(is_pinnable, managers)):
        graph = in_one_group(graph)  # a placement defines its own
    taken = ((java or 0.0) + (sending.fixed if sending else 0.0)) * speed
    return _Reading(job, seen, graph, rates, sizes, cluster, sending, taken)


def _at_measured_costs(reading: _Reading) -> tuple[StreamGraph, list[str]]:
    """Graph with costs at which the present layout carries what was measured, and a note on them.

    They are known if the sources are held back, or if the model says that it carries less. A model
    that is further off than profiles may be is not corrected: something else limits the job.
    """
    graph, rates = reading.graph, reading.rates
    factor = 1.0 if rates is None else float(rates.factors[0])
    if not 1 - WRONG <= factor <= 1 + WRONG:
        return graph, [
            f"the present layout carries {1 / factor:.0%} of what the model says, so what the plan "
            "carries may be further off than is told"
        ]
    operators = replace(graph.operators, ipt=factor * graph.operators.ipt)
    streams = replace(graph.streams, ipt=factor * graph.streams.ipt)
    told = (
        f"the present layout carries {1 / factor:.0%} of what the model says, so all costs count "
        f"{factor:.2f} times"
    )
    scaled = replace(graph, streams=streams).with_operators(operators)
    return scaled, [told] if abs(factor - 1) > NOISE else []


def _carried(reading: _Reading, plan: PlanResult) -> RateInterval | None:
    """Tuples/s that the job carries where it runs: measured if it is held back, else predicted."""
    if reading.rates is None:
        return None
    rate = reading.rates.of(reading.rates.present)
    if reading.seen.is_limited or plan.errors is None or not math.isfinite(rate):
        return RateInterval(rate, rate, rate)
    return plan.errors.interval(rate)


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
    usual: PlanSettings,
    settings: AdviceSettings,
) -> tuple[CurrentMachines, PlanResult]:
    """Current machines, and the plan for a graph at its rate.

    What a subtask takes at any rate is there for each subtask of the plan. So the job is planned
    again if the numbers of subtasks change that by much.
    """
    present = reading.seen.present
    placed = {} if present is None else present.devices
    subtasks = Counter(device for devices in placed.values() for device in devices)
    given: Catalogue | Cluster
    if isinstance(machines, Catalogue):
        current = current_machines(reading.sizes, machines, subtasks)
        shared, speed = replace(machines, slot_sharing=True), parsed_mips(settings.mips)
        given = left_for_operators(shared, reading.java, reading.sending, speed)
        usual = replace(usual, headroom=settings.headroom)
    else:
        current = used_machines(reading.sizes, subtasks)
        given = reading.cluster.cluster() if machines is None else machines
    plan = planned(graph, given, usual)
    operators = graph.operators
    number = np.array([plan.parallelism[name] for name in operators.name], np.float64)
    constant = operators.constant * number / operators.parallelism
    work = 1e-6 * graph.charged_ipt * graph.input_rate + constant
    if abs(constant - operators.constant).sum() > NOTABLE * work.sum():
        plan = planned(graph.with_operators(replace(operators, constant=constant)), given, usual)
    return current, plan


def _operator_loads(seen: JobProfile, plan: PlanResult) -> tuple[OperatorLoad, ...]:
    fixed = seen.constant
    return tuple(
        OperatorLoad(
            task.name,
            max(0.0, seen.cpu[task.id].cores - fixed[task.id]) / tuples
            if (tuples := seen.tuples[task.id])
            else 0.0,
            fixed[task.id],
            CPU_WORDS[seen.cpu[task.id].source],
            task.parallelism,
            plan.parallelism[task.name],
            int(plan.graph.operators.max_parallelism[plan.graph.operators.index(task.name)]),
        )
        for task in seen.tasks
    )


def _notes(
    rest: Rest, reading: _Reading, machines: Catalogue | Cluster | None, plan: PlanResult
) -> Iterator[str]:
    """Notes on missing measurements, and on what the advice leaves out."""
    seen, cluster, graph = reading.seen, reading.cluster, reading.graph
    yield from seen.doubts
    if cluster.java is None:
        yield "what Java itself takes of each TaskManager is not measured and left out"
    if machines is None and cluster.unmeasured_sending:
        yield cluster.unmeasured_sending
    elif cluster.sending.is_assumed and not _gives_sending(machines):
        kind = "offers" if isinstance(machines, Catalogue) else "machines"
        yield (
            "what sending a tuple to another TaskManager costs is not measured and left out; to "
            f"have it counted, give overhead in the file of {kind}"
        )
    if MESSAGE_COST in graph.attributes:
        yield f"what a message between subtasks costs is {graph.attributes[MESSAGE_COST]}"
    yield from _notes_on_busiest(plan, seen)
    if receivers := seen.copied_to:
        yield (
            "every subtask that receives a broadcast stream gets a copy of each tuple, so the plan "
            f"keeps the parallelism of {listed(sorted(receivers))}"
        )
    if others := other_jobs(rest, reading.job):
        yield f"the plan is for this job alone, and the jobs {listed(others)} share its machines"


def _notes_on_busiest(plan: PlanResult, seen: JobProfile) -> Iterator[str]:
    """Notes on operators whose busiest subtask fills a core before the plan is full.

    The plan divides tuples as Flink divides keys that are all alike, because it is not known how
    popular keys would be divided among other numbers of subtasks.

    A subtask that reads a share of the operator's tuples is full at the multiple of the rate

        (speed of a core - constant part) / (share · instructions per second at the rate)
    """
    graph = plan.graph
    speed = 1e6 * float(plan.cluster.devices.speed.max())
    for name, parts in seen.shares.items():
        row = graph.operators.index(name)
        subtasks = float(graph.operators.parallelism[row])
        needed = max(parts) * float(graph.charged_ipt[row] * graph.input_rate[row])
        free = speed - 1e6 * float(graph.charged_constant[row]) / subtasks
        if needed and (full := plan.rate * max(0.0, free) / needed) < plan.carries:
            yield (
                f"one subtask of {quoted(name)} gets {max(parts):.0%} of its tuples, which the "
                "plan leaves out: if it stays so, that subtask fills the fastest core of the plan "
                f"at {digits(full)} tuples/s of all sources, however many machines there are"
            )


def current_machines(
    cluster: MeasuredCluster, catalogue: Catalogue, subtasks: Mapping[str, int]
) -> CurrentMachines:
    """Find the offer of each TaskManager.

    It is the offer after which the TaskManager is named (``small``, ``small-0``), else the cheapest
    one with the same number of cores, the same speed, and at least the same memory.
    """
    machines = tuple(
        _machine(device, catalogue.offers, subtasks.get(device.name, 0))
        for device in cluster.devices
    )
    numbers = [
        sum(machine.offer == offer.name for machine in machines) for offer in catalogue.offers
    ]
    return CurrentMachines(machines, Prices.of(catalogue).per_hour(numbers))


def _machine(device: MeasuredDevice, offers: Sequence[Offer], subtasks: int) -> CurrentMachine:
    named = [offer.name for offer in offers if _is_named_after(device.name, offer.name)]
    equal = sorted((o for o in offers if _is_alike(device, o)), key=lambda offer: offer.price)
    if named:
        return CurrentMachine(device.name, _size(device), max(named, key=len), BY_NAME, subtasks)
    offer = equal[0].name if equal else None
    return CurrentMachine(device.name, _size(device), offer, BY_SIZE if equal else "", subtasks)


def _is_named_after(device: str, offer: str) -> bool:
    rest = device.removeprefix(offer)
    return device == offer or (rest != device and _NUMBERED.fullmatch(rest) is not None)


def _is_alike(device: MeasuredDevice, offer: Offer) -> bool:
    return (
        offer.cores == device.cores
        and math.isclose(float(offer.mips), parsed_mips(device.mips), rel_tol=ALIKE)
        and float(offer.memory) >= (device.memory or 0)
    )


def _size(device: MeasuredDevice) -> str:
    size = f"{counted(device.cores, 'core')} of {parsed_mips(device.mips):g} MIPS"
    return size if device.memory is None else f"{size}, {format_bytes(device.memory)}"


def _gives_sending(machines: Catalogue | Cluster | None) -> bool:
    """Whether machines state the cost of remote tuples."""
    if isinstance(machines, Catalogue):
        return machines.handles
    return machines is not None and bool(machines.overhead_s or machines.overhead_s_per_byte)


def left_for_operators(
    catalogue: Catalogue, java: float, sending: SendingCost | None, speed: float
) -> Catalogue:
    """Return the offers without the CPU of Java itself and the bandwidth of packet headers.

    Java uses ``java`` MIPS of each machine. The cost of remote tuples is the measured one, if any,
    unless the offers contain it; it was measured on cores of ``speed`` MIPS, and holds for the mean
    of the offers.
    """
    offers = tuple(_left(offer, java) for offer in catalogue.offers)
    if catalogue.handles or sending is None:
        return replace(catalogue, offers=offers)
    cost = sending.slower(speed / mean(float(offer.mips) for offer in catalogue.offers)).rounded()
    return replace(
        catalogue, offers=offers, overhead=cost.per_tuple, overhead_per_byte=cost.per_byte
    )


def _left(offer: Offer, java: float) -> Offer:
    reserved = float(offer.reserved) + java
    if reserved >= float(offer.mips) * offer.cores:
        raise FlinkError(
            f"Java itself takes {java:.4g} MIPS of each machine, which leaves nothing of offer "
            f"{quoted(offer.name)} for operators; remove the offer"
        )
    egress, ingress = float(offer.egress) / (1 + FRAMING), float(offer.ingress) / (1 + FRAMING)
    return replace(offer, reserved=reserved, egress=egress, ingress=ingress)


def used_machines(cluster: MeasuredCluster, subtasks: Mapping[str, int]) -> CurrentMachines:
    """TaskManagers that run subtasks of a job, each as a machine of cost 1."""
    machines = tuple(
        CurrentMachine(device.name, _size(device), device.name, "", subtasks[device.name])
        for device in cluster.devices
        if subtasks.get(device.name)
    )
    return CurrentMachines(machines, float(len(machines)), is_priced=False)


def change_commands(
    rest: Rest,
    job: str,
    tasks: Sequence[FlinkTask],
    current: CurrentMachines,
    plan: PlanResult,
    folder: str = FOLDER,
    is_remembered: bool = False,
) -> tuple[str, ...]:
    """Commands, line by line; comments say which machines to start first and to stop at the end.

    ``is_remembered`` says whether ``flink move`` knows the program of the job.
    """
    changes = _machine_changes(current.counts, plan.machines) if current.is_priced else {}
    starts = [f"# first start {number} × {name}" for name, number in changes.items() if number > 0]
    stops = [f"# then stop {-number} × {name}" for name, number in changes.items() if number < 0]
    if is_adaptive(rest, rest.job(job)):
        reactive = is_reactive(shown_settings(rest) or {})
        rescaling = REACTIVE if reactive else _rescaling(rest, job, tasks, plan.parallelism)
        return (*starts, _slot_line(current, plan), rescaling, *stops)
    return (*starts, *_restart(rest, job, current, plan, folder, is_remembered), *stops)


def _restart(
    rest: Rest,
    job: str,
    current: CurrentMachines,
    plan: PlanResult,
    folder: str,
    is_remembered: bool,
) -> Iterator[str]:
    """Commands that stop a job with a savepoint and start it again from there."""
    address, written = shlex.quote(urlsplit(rest.url).netloc), folder.rstrip("/")
    numbers = set(plan.parallelism.values())
    if len(numbers) == 1:
        yield from (
            _slot_line(current, plan),
            f"flink stop -m {address} --savepointPath SAVEPOINTS {job}",
            f"flink run -d -m {address} -c ENTRY_CLASS -s SAVEPOINT -p {numbers.pop()} JAR "
            "ARGUMENTS",
            "# or, with every subtask where the plan has it:",
        )
    where = f"--rest {shlex.quote(rest.url)} --job {job}"
    cluster, placement = (
        shlex.quote(f"{written}/{name}") for name in ("cluster.toml", "placement.json")
    )
    yield f"streamplace flink config --cluster {cluster} --subtasks -o config/"
    to = f"--placement {placement} --savepoints SAVEPOINTS"
    if is_remembered:
        yield f"streamplace flink move {where} {to}"
    else:
        yield f"streamplace flink move JAR {where} --entry-class ENTRY_CLASS {to} -- ARGUMENTS"


def _slot_line(current: CurrentMachines, plan: PlanResult) -> str:
    """Comment with the number of slots that TaskManagers need if Flink places the subtasks."""
    slots = plan.slots.machines
    if not current.is_priced:
        return f"# taskmanager.numberOfTaskSlots: at least {max(slots.values())}"
    each = ", ".join(f"{number} on {name}" for name, number in slots.items())
    return f"# taskmanager.numberOfTaskSlots: at least {each}"


def _machine_changes(now: Mapping[str, int], planned: Mapping[str, int]) -> dict[str, int]:
    """Number of machines of each type to start, or to stop if negative."""
    return {
        name: planned.get(name, 0) - now.get(name, 0) for name in dict.fromkeys((*planned, *now))
    }


def _rescaling(
    rest: Rest, job: str, tasks: Sequence[FlinkTask], parallelism: Mapping[str, int]
) -> str:
    """Request that makes the adaptive scheduler change the parallelism of a running job."""
    wanted = {
        task.id: {"parallelism": {"lowerBound": 1, "upperBound": parallelism[task.name]}}
        for task in tasks
    }
    url = shlex.quote(f"{rest.url}/jobs/{job}/resource-requirements")
    document = shlex.quote(json.dumps(wanted))
    return f"curl -X PUT {url} -H 'Content-Type: application/json' -d {document}"
