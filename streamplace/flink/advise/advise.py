"""Advice on a running job: the cost of its machines, the cheapest machines for a rate, the change.

Machines are planned from measurements of the job; nothing is changed.
"""

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from streamplace.display.report import Brief, Detail, Part, Report, Sheet, duration, percent, some
from streamplace.errors import SettingError
from streamplace.flink.advise.equal_pods import (
    PATCH,
    SLOTS_SETTING,
    EqualPods,
    JobOnPods,
    PodPatch,
    constant_of,
    patch_commands,
    planned_pods,
)
from streamplace.flink.advise.fixed_parallelism import (
    planned_twice,
    tasks_fixed_by,
    with_loose_streams,
)
from streamplace.flink.advise.history_costs import (
    RateCost,
    costs_of_history,
    costs_sheet,
)
from streamplace.flink.advise.patch_file import SUFFIXES as PATCH_SUFFIXES
from streamplace.flink.advise.patch_file import write_patch
from streamplace.flink.cpu.charging import UNKNOWN
from streamplace.flink.decide.candidates import in_one_group
from streamplace.flink.decide.rates import JobRates
from streamplace.flink.decide.slot_assignment import mode_line
from streamplace.flink.deployment import JobDeployment
from streamplace.flink.layout import Layout
from streamplace.flink.measure.cluster import (
    FRAMING,
    MeasuredCluster,
    MeasuredDevice,
    Measurement,
    cores_of,
    finite,
    finite_ends,
)
from streamplace.flink.measure.profile import JobProfile
from streamplace.flink.measure.source_lag import SourceFlow, requested_rate, with_offered
from streamplace.flink.measure.streams import SendingCost
from streamplace.flink.move.interruption import Interruption, expected_interruptions
from streamplace.flink.operator.resource import FlinkResource
from streamplace.flink.program.program import Program
from streamplace.flink.prometheus.job_history import JobHistory
from streamplace.flink.rest.client import FlinkError, Rest
from streamplace.flink.rest.plan import FlinkTask
from streamplace.flink.rest.settings import USUAL
from streamplace.io.files import write_text
from streamplace.io.ledger import NOISE
from streamplace.model import Cluster, Problem, StreamGraph
from streamplace.model.expansion import expand
from streamplace.model.message_text import counted, listed, quoted, shown
from streamplace.model.mixins import Displayed
from streamplace.model.prediction_intervals import RateInterval
from streamplace.model.profile_trust import WRONG, extrapolation
from streamplace.model.units import Quantity, digits, format_bytes
from streamplace.model.units import mips as parsed_mips
from streamplace.objectives.registry import OBJECTIVES
from streamplace.planning.offers import Catalogue, Offer, Prices
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlannerSettings
from streamplace.planning.result import PlanResult

_NUMBER = re.compile(r"-\d+\Z")
"""End of the name of one of several machines of an offer, as in ``small-0``."""
FOLDER = Path("plan")
"""Folder of a plan in commands if none is named."""


@dataclass(frozen=True, slots=True)
class CurrentMachine:
    """A TaskManager as a machine."""

    name: str
    size: str  # its cores, speed and memory, in words
    offer: str | None  # name of the matching offer; None if there is none
    subtasks: int  # number of subtasks of the job that run there


@dataclass(frozen=True, slots=True)
class CurrentMachines:
    """The TaskManagers of a cluster, and their cost."""

    machines: tuple[CurrentMachine, ...]
    # Price per hour of all machines with an offer; without offers, the number of machines.
    cost: float
    is_priced: bool = True  # whether there are offers

    @property
    def counts(self) -> dict[str, int]:
        """Number of machines of each offer."""
        return Counter(machine.offer for machine in self.machines if machine.offer is not None)

    @property
    def unmatched(self) -> list[CurrentMachine]:
        """TaskManagers without a matching offer."""
        return [machine for machine in self.machines if machine.offer is None]

    @property
    def has_cost(self) -> bool:
        """Whether an offer matches a TaskManager."""
        return self.is_priced and len(self.unmatched) < len(self.machines)


@dataclass(frozen=True, slots=True, eq=False)
class Advice(Displayed):
    """Cost of a running job, and the cheapest machines for a rate."""

    job: str  # its id
    name: str
    deployment: JobDeployment  # decides on the commands
    rate: float  # requested rate in tuples/s
    flow: SourceFlow  # present rates and lag of the sources
    cpu: str  # source of the CPU of operators, and its possible error
    current: CurrentMachines
    # Tuples/s that the present layout carries: measured if the sources are held back, otherwise
    # predicted.
    carried: RateInterval
    plan: PlanResult  # the cheapest plan that was found, with its bound
    interruption: Interruption  # seconds for which changing stops the job
    # Shell commands that change the job, line by line; empty if nothing should change.
    commands: tuple[str, ...]
    # Sentences on missing measurements and on costs that the advice leaves out.
    notes: tuple[str, ...]
    folder: Path  # folder in which the commands expect the files of the plan
    patch: PodPatch | None = None  # of the FlinkDeployment, if it should change
    history: str = ""  # summary of the history of the job, if that was measured
    costs: tuple[RateCost, ...] = ()  # costs of machines for the rates in that history

    def write(self, output: str | PathLike[str]) -> str:
        """Write plan and patch into a folder, or the report (.html) or the patch (.yaml) alone.

        Returns a description of the written files; it is empty if the patch changes nothing.
        """
        if Path(output).suffix in PATCH_SUFFIXES:
            if self.patch is None or not self.patch.changes:
                return ""
            write_patch(self.patch, Path(output))
            return "patch"
        written = self.plan.write(output)
        if self.patch is None or Path(output).suffix == ".html":
            return written
        write_text(Path(output) / PATCH, str(self.patch))
        return f"{written}, {PATCH}"

    @property
    def gain(self) -> float:
        """Cost per hour of today's machines less that of the plan."""
        return self.current.cost - self.plan.cost

    @property
    def catch_up(self) -> float | None:
        """Seconds in which the plan drains the backlog after the change; None if it never does.

        It counts with the rate that the plan carries with its confidence.
        """
        at_least = self.plan.at_least
        spare = (self.plan.carries if at_least is None else at_least) - self.rate
        backlog = self.interruption.value * self.rate + (self.flow.pending or 0.0)
        return backlog / spare if spare > 0 else None

    @property
    def survives(self) -> float:
        """Share of the rate that the plan carries after the loss of any one TaskManager."""
        plan = self.plan
        problem = Problem(expand(plan.graph).graph, plan.cluster, known=plan.placement)
        return OBJECTIVES["survives"].value(problem, plan.placement)

    def report(self) -> Report:
        """Return a report of one screen, with tables, commands and notes as details."""
        commands = (f"  {command}" for command in self.commands)
        return Report((*self.summary().parts, *commands), self.name)

    def summary(self) -> Report:
        """Report without commands, which a terminal must not break into lines."""
        parts: list[Part] = [
            *([f"{self.history}."] if self.history else []),
            *_sources(self.flow),
            f"CPU per operator: {self.cpu}.",
            *_today(self),
            Detail(_machines(self.current)),
            *_plan(self.plan),
            *([costs_sheet(self.costs)] if self.costs else []),
            Detail(
                "After the loss of any one TaskManager of the plan, the others carry "
                f"{percent(self.survives)} of the rate, if they have the slots and get no "
                "replacement."
            ),
            *(Detail(f"note: {note}") for note in self.notes),
            *_change(self),
        ]
        return Report(tuple(parts), self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the advice as a JSON document."""
        return {
            "job": self.job,
            "name": self.name,
            "deployment": self.deployment.to_json(),
            "rate": self.rate,
            "observed": self.flow.rate,
            "offered": self.flow.offered,
            "sources": [
                {
                    "name": source.name,
                    "observed": source.rate,
                    "pending": source.pending,
                    "growth": source.growth,
                    "back_pressured": source.back_pressured,
                    "behind": source.why,
                    "offered": source.offered,
                }
                for source in self.flow.sources.values()
            ],
            "cpu": self.cpu,
            "history": self.history or None,
            "costs": [cost._asdict() for cost in self.costs],
            "current": {
                "cost": self.current.cost,
                "machines": self.current.counts,
                "carried": finite(self.carried.value),
                "interval": finite_ends(self.carried),
                "taskmanagers": [asdict(machine) for machine in self.current.machines],
            },
            "priced": self.current.is_priced,
            "plan": self.plan.to_json(),
            "survives": self.survives,
            "gain": self.gain,
            "interruption": self.interruption.value,
            "catch_up": self.catch_up,
            "commands": list(self.commands),
            "patch": None if self.patch is None else self.patch.document,
            "notes": list(self.notes),
        }


def _sources(flow: SourceFlow) -> Iterator[Part]:
    """Rates and lag of the sources: all together, and each as a detail."""
    sources = [*flow.sources.values()]
    if len(sources) == 1:
        yield _source(f"Source {sources[0].name}", sources[0])
        return
    yield _source(f"{len(sources)} sources", flow)
    yield from (Detail(_source(f"Source {source.name}", source)) for source in sources)


def _source(name: str, flow: SourceFlow) -> str:
    text = f"{name}: {digits(flow.rate)} tuples/s emitted"
    offered = flow.offered
    text += f", {'an unknown rate' if offered is None else digits(offered)} offered"
    if flow.why is not None:
        text += f" ({flow.why})"
    return f"{text}." if flow.pending is None else f"{text}; {flow.lag}."


def _today(advice: Advice) -> Iterator[str]:
    current = advice.current
    if current.has_cost:
        number = len(current.machines) - len(current.unmatched)
        text = f"Today: {counted(number, 'machine')} that cost {current.cost:g} per hour"
    else:
        text = f"Today: {counted(len(current.machines), 'machine')} that run the job"
    low, value, high = map(digits, advice.carried)
    if not math.isfinite(advice.carried.value):
        text += "; it carries any rate there, as far as is known"
    elif advice.carried.low == advice.carried.high:
        text += f"; it carries {value} tuples/s there (measured)"
    else:
        text += f"; it carries {value} tuples/s there ({low} to {high})"
    yield f"{text}."
    if current.unmatched:
        names = some([machine.name for machine in current.unmatched], separator=", ", most=3)
        yield (
            f"No offer has the cores, speed and memory of {names}, so the cost leaves out "
            f"{counted(len(current.unmatched), 'TaskManager')}; add offers, or mips in --settings."
        )


def _machines(current: CurrentMachines) -> Sheet:
    rows = tuple(
        (
            machine.name,
            machine.size,
            (machine.offer if current.is_priced else None) or "—",
            str(machine.subtasks),
        )
        for machine in current.machines
    )
    return Sheet(("TaskManager", "size", "offer", "subtasks"), rows)


def _plan(plan: PlanResult) -> Iterator[Part]:
    """The machines, the cost and the rate of a plan; the rest of its report as details."""
    sentences = 0
    for part in plan.report().parts:
        if isinstance(part, str):
            sentences += 1
            yield part if sentences <= 2 else Detail(part)
        elif not (isinstance(part, Brief) and isinstance(part.part, str)):
            yield part


def _change(advice: Advice) -> Iterator[str]:
    if advice.current.has_cost:
        yield _gain(advice)
    if not advice.commands:
        yield "Today's machines carry the rate and cost no more than the plan: change nothing."
        return
    text = f"Changing stops the job once, for {advice.interruption}"
    if advice.catch_up is None:
        yield f"{text}; the backlog cannot be drained at this rate."
    else:
        yield f"{text}; the backlog is drained in {duration(advice.catch_up)}."
    end = "" if advice.folder.suffix in PATCH_SUFFIXES else "/"
    yield f"To change it, with the files that -o {advice.folder}{end} writes:"


def _gain(advice: Advice) -> str:
    today = f"Today's machines cost {advice.current.cost:g} per hour"
    today += ", without those of no offer" if advice.current.unmatched else ""
    if math.isclose(advice.current.cost, advice.plan.cost):
        return f"{today}, as much as the plan."
    if advice.gain > 0:
        return f"{today}; the plan saves {advice.gain:.6g} per hour."
    return f"{today}; the plan costs {-advice.gain:.6g} per hour more."


class MeasuredJob(NamedTuple):
    """A profiled running job, and its TaskManagers."""

    id: str
    profile: JobProfile
    graph: StreamGraph
    cluster: MeasuredCluster  # TaskManagers with the CPU that other jobs leave
    # The same TaskManagers without other jobs, as a plan buys them; TaskManagers that share a
    # machine have equal parts of it.
    alone: MeasuredCluster
    deployment: JobDeployment


def advise(
    rest: Rest,
    job: MeasuredJob,
    rate: Quantity,
    machines: Catalogue | Cluster | None,
    settings: PlannerSettings,
    program: Program | None,
    folder: Path,
    history: JobHistory | None,
    *,
    has_costs: bool,
) -> Advice:
    """Plan the cheapest machines for a rate of a measured job.

    ``has_costs``: whether machines for the rates of a history are planned, too.
    """
    profile, measured, cluster, flow = job.profile, job.graph, job.cluster, job.profile.flow
    deployment = job.deployment
    if unknown := [t.name for t in profile.tasks if profile.cpu[t.id].source == UNKNOWN]:
        raise FlinkError(
            f"the CPU of {listed(unknown)} is not known, because Flink does not report its busy "
            "time; run streamplace on the machines of the TaskManagers, to read their threads"
        )
    rates = _rates(profile, measured, cluster.cluster())
    target_rate = requested_rate(rate, flow)
    fixed, note = _fixed(rest, profile.tasks, program)
    graph, doubts = _at_measured_costs(with_offered(measured, flow), rates)
    if not deployment.unpinned:
        graph = in_one_group(graph)  # a placement defines its own
    graph = with_loose_streams(graph.at_rate(target_rate), fixed)
    plan_settings = replace(settings, keep_parallelism=fixed)
    if deployment.has_equal_pods:
        if isinstance(machines, Cluster):
            raise SettingError(
                "all pods of the job are alike and are started when needed, so a cluster file "
                "cannot name them; give offers"
            )
        machines = machines or pods_as_now(job.alone)
    current, on_pods = current_machines(job.alone, machines, profile), None
    offered: Catalogue | Cluster = machines or cluster.cluster()
    if isinstance(offered, Catalogue):
        shared = replace(offered, slot_sharing=True)
        speed = float(measured.attributes["mips"])
        offered = offers_for_operators(shared, profile.java, profile.sending, speed)
        if deployment.has_equal_pods:
            on_pods = JobOnPods.of(rest, deployment, _pod_memory(job, history))
    else:
        plan_settings = replace(plan_settings, headroom=0.0)

    def plan_at(rate: float, limits: PlannerSettings) -> tuple[EqualPods | None, PlanResult]:
        at_rate = graph.at_rate(rate)
        if on_pods is not None and isinstance(offered, Catalogue):
            return planned_pods(at_rate, offered, limits, on_pods, profile.shares)
        return None, _planned(at_rate, offered, limits)

    pods, plan = plan_at(target_rate, plan_settings)
    carried = _carried(rates, plan, profile)
    is_enough = (
        max(carried.low, min(flow.rate, carried.value)) >= target_rate
        and not current.unmatched
        and current.cost <= plan.cost
    )
    expected = expected_interruptions(rest, job.id, is_redeployed=deployment.restarts_cluster)
    patch = None
    if pods is not None and isinstance(rest.resource, FlinkResource):
        speed, memory = float(measured.attributes["mips"]), job.alone.devices[0].memory
        resource = rest.resource.as_run(rest)
        patch = pods.patch(resource, speed, memory, plan)
        file = folder if folder.suffix in PATCH_SUFFIXES else folder / PATCH
        change = patch_commands(resource, str(file), patch)
    else:
        change = change_commands(rest.url, job, current, plan, pods, folder)
    return Advice(
        job=job.id,
        name=profile.name,
        deployment=deployment,
        rate=target_rate,
        flow=flow,
        cpu=str(profile.origin),
        current=current,
        carried=carried,
        plan=plan,
        interruption=expected.on((), [*cores_of(plan.cluster.devices, measured).values()]),
        commands=() if is_enough else tuple(change),
        notes=(*_notes(job, machines, plan), *doubts, note),
        folder=folder,
        patch=None if is_enough else patch,
        history=str(history or ""),
        costs=costs_of_history(history, plan_at, plan_settings) if history and has_costs else (),
    )


def _pod_memory(job: MeasuredJob, history: JobHistory | None) -> float:
    """Bytes that a pod like the present ones needs; all of its memory without a history."""
    present = float(job.alone.devices[0].memory or 0)
    memory = None if history is None else history.memory
    return present if memory is None else memory.process(present)


def _rates(profile: JobProfile, graph: StreamGraph, cluster: Cluster) -> JobRates:
    """Model of the rates of a job's layouts."""
    layout = Layout(profile.present.devices)
    absent = layout.devices.difference(cluster.devices.name)
    if absent < layout.devices:  # subtasks that have ended may have run there
        layout = layout.without(absent)
    measured = Measurement(graph, cluster, profile.flow, shares=profile.shares)
    return JobRates(measured, layout, profile.flow.rate)  # of all sources together


def _at_measured_costs(graph: StreamGraph, rates: JobRates) -> tuple[StreamGraph, list[str]]:
    """Graph with costs at which the present layout carries the measured rate, and a note on them.

    Costs are scaled if the sources are held back, or if the predicted rate is below the measured
    one. Errors larger than those of profiles are not corrected, as something else limits the job.
    """
    factor = rates.cost_factor
    sentence = f"the present layout carries {1 / factor:.0%} of the predicted rate, so "
    if not 1 - WRONG <= factor <= 1 + WRONG:
        return graph, [f"{sentence}the rate of the plan may be outside of its interval"]
    is_noted = abs(factor - 1) > NOISE
    notes = [f"{sentence}all costs are multiplied by {factor:.2f}"] if is_noted else []
    return rates.at_measured_costs(graph), notes


def _carried(rates: JobRates, plan: PlanResult, profile: JobProfile) -> RateInterval:
    """Tuples/s that the job carries now: measured if it is held back, otherwise predicted."""
    rate = rates.of(rates.present)
    if profile.flow.is_limited or plan.errors is None or not math.isfinite(rate):
        return RateInterval(rate, rate, rate)
    return plan.errors.interval(rate)


def _fixed(
    rest: Rest, tasks: Sequence[FlinkTask], program: Program | None
) -> tuple[frozenset[str], str]:
    """Tasks whose parallelism the program of a job sets, and a note on them."""
    if program is None:
        note = (
            "the plan may change the parallelism of all operators; to keep the parallelism that "
            "the program sets, give its jar and arguments, as in: JAR -- ARGUMENTS"
        )
        return frozenset(), note
    fixed = tasks_fixed_by(planned_twice(rest, program), program.jar, tasks)
    names = f"{listed(sorted(fixed))}, so the plan keeps it" if fixed else "no operator"
    return fixed, f"the program of the job sets the parallelism of {names}"


def _planned(
    graph: StreamGraph, machines: Catalogue | Cluster, settings: PlannerSettings
) -> PlanResult:
    """Plan for a graph at its rate.

    Each subtask has a constant load. So the job is planned again if the numbers of subtasks in the
    plan change these loads by more than the noise.
    """
    plan, operators = planned(graph, machines, settings), graph.operators
    number = np.array([plan.parallelism[name] for name in operators.name], np.int32)
    constant = constant_of(operators, number)
    work = 1e-6 * graph.charged_ipt * graph.input_rate + constant
    if abs(constant - operators.constant).sum() <= NOISE * work.sum():
        return plan
    return planned(graph.with_operators(replace(operators, constant=constant)), machines, settings)


def _notes(
    job: MeasuredJob, machines: Catalogue | Cluster | None, plan: PlanResult
) -> Iterator[str]:
    """Notes on missing measurements and on costs that the advice omits."""
    profile, cluster, deployment = job.profile, job.cluster, job.deployment
    yield from profile.doubts
    if (far := extrapolation(job.graph, plan.rate)) is not None:
        yield far
    if cluster.java is None:
        yield "the CPU of Java itself in each TaskManager is not measured and left out"
    counts = plan.cluster.overhead_s or plan.cluster.overhead_s_per_byte
    if cluster.sending.is_assumed and machines is None:
        yield cluster.unmeasured_sending
    elif cluster.sending.is_assumed and not counts:
        kind = "offers" if isinstance(machines, Catalogue) else "machines"
        yield (
            "the cost of sending a tuple to another TaskManager is not measured and left out; to "
            f"include it, give overhead in the file of {kind}"
        )
    yield from _notes_on_busiest(plan, profile)
    if receivers := job.graph.kept_parallelism:
        yield (
            "every subtask that receives a broadcast stream gets a copy of each tuple, so the plan "
            f"keeps the parallelism of {listed(receivers)}"
        )
    if others := deployment.others:
        yield f"the plan is for this job alone, and the jobs {listed(others)} share its machines"
    is_placed_by_flink = deployment.is_unpinned and deployment.kubernetes
    has_planned_pins = is_placed_by_flink and not deployment.has_equal_pods
    if has_planned_pins and sum(plan.machines.values()) > 1:
        yield (
            "nothing can be pinned to pods that are all alike, so Flink distributes the subtasks, "
            "and the plan may carry less than in its own placement"
        )


def _notes_on_busiest(plan: PlanResult, profile: JobProfile) -> Iterator[str]:
    """Notes on operators whose busiest subtask fills a core before the plan is full.

    The plan divides tuples as Flink divides equally frequent keys, because it is unknown how Flink
    would divide the popular keys among other numbers of subtasks. A subtask that reads a share of
    the operator's tuples is full at the multiple of the rate

        (speed of its cores - constant part) / (share · instructions per second at the rate)
    """
    graph = plan.graph
    speed = 1e6 * float(plan.cluster.devices.speed.max())
    cores = int(plan.cluster.devices.cores.max())
    for name, parts in profile.shares.items():
        row = graph.operators.index(name)
        fixed = 1e6 * float(graph.charged_constant[row] / graph.operators.parallelism[row])
        needed_speed = max(parts) * float(graph.charged_ipt[row] * graph.input_rate[row])
        subtask_speed = speed * min(float(graph.operators.cores[row]), cores)
        if (
            needed_speed
            and (full := plan.rate * max(0.0, subtask_speed - fixed) / needed_speed) < plan.carries
        ):
            yield (
                f"one subtask of {quoted(name)} gets {max(parts):.0%} of its tuples, which the "
                "plan ignores: with this skew, that subtask fills the fastest core of the plan at "
                f"{digits(full)} tuples/s of all sources, whatever the number of machines"
            )


def current_machines(
    cluster: MeasuredCluster, machines: Catalogue | Cluster | None, profile: JobProfile
) -> CurrentMachines:
    """TaskManagers with their offers; without offers, those of the job, which cost 1 each."""
    subtasks = Counter(name for names in profile.present.devices.values() for name in names)

    def machine_of(device: MeasuredDevice, offer: str | None) -> CurrentMachine:
        size = f"{counted(device.cores, 'core')} of {parsed_mips(device.mips):g} MIPS"
        size += "" if device.memory is None else f", {format_bytes(device.memory)}"
        return CurrentMachine(device.name, size, offer, subtasks[device.name])

    if not isinstance(machines, Catalogue):
        in_use = tuple(machine_of(d, d.name) for d in cluster.devices if subtasks[d.name])
        return CurrentMachines(in_use, float(len(in_use)), is_priced=False)
    current = tuple(machine_of(d, _offer_of(d, machines.offers)) for d in cluster.devices)
    numbers = Counter(machine.offer for machine in current)
    cost = Prices.of(machines).per_hour([numbers[offer.name] for offer in machines.offers])
    return CurrentMachines(current, cost)


def pods_as_now(cluster: MeasuredCluster) -> Catalogue:
    """Offer of pods like the present ones, at a price of 1 each."""
    device = cluster.devices[0]
    memory = math.inf if device.memory is None else device.memory
    return Catalogue((Offer("pod", 1.0, device.mips, device.cores, memory),))


def _offer_of(device: MeasuredDevice, offers: Sequence[Offer]) -> str | None:
    """Name of the offer of a TaskManager; None if there is none.

    A TaskManager may be named after its offer (``small``, ``small-0``). Otherwise it is the
    cheapest offer with the same number of cores, the same speed, and at least the same memory.
    """
    names = (device.name, _NUMBER.sub("", device.name))
    if named := [offer.name for offer in offers if offer.name in names]:
        return max(named, key=len)
    equal = [
        offer
        for offer in offers
        if offer.cores == device.cores
        and math.isclose(float(offer.mips), parsed_mips(device.mips), rel_tol=NOISE)
        and float(offer.memory) >= (device.memory or 0)
    ]
    cheapest = min(equal, key=lambda offer: offer.price, default=None)
    return None if cheapest is None else cheapest.name


def offers_for_operators(
    catalogue: Catalogue, java: float | None, sending: SendingCost | None, speed: float
) -> Catalogue:
    """Return the offers without the CPU of Java itself and the bandwidth of packet headers.

    If the offers have no cost of sending a tuple, they get the measured cost, which is scaled from
    cores of ``speed`` MIPS to the mean speed of the offers.
    """
    java_mips = ((java or 0.0) + (sending.fixed if sending else 0.0)) * speed
    offers = []
    for offer in catalogue.offers:
        reserved = float(offer.reserved) + java_mips
        if reserved >= float(offer.mips) * offer.cores:
            raise FlinkError(
                f"Java itself takes {java_mips:.4g} MIPS of each machine, so offer "
                f"{quoted(offer.name)} has no CPU for operators; remove the offer"
            )
        cards = [float(card) / (1 + FRAMING) for card in (offer.egress, offer.ingress)]
        offers.append(replace(offer, reserved=reserved, egress=cards[0], ingress=cards[1]))
    without_java = replace(catalogue, offers=tuple(offers))
    if catalogue.handles or sending is None:
        return without_java
    cost = sending.slower(speed / mean(float(offer.mips) for offer in offers)).rounded()
    return replace(without_java, overhead=cost.per_tuple, overhead_per_byte=cost.per_byte)


def change_commands(
    url: str,
    job: MeasuredJob,
    current: CurrentMachines,
    plan: PlanResult,
    pods: EqualPods | None,
    folder: Path,
) -> Iterator[str]:
    """Commands, line by line; comments name the machines to start first and to stop at the end."""
    deployment = job.deployment
    changes = Counter(plan.machines if current.is_priced else {})
    changes.subtract(current.counts if current.is_priced else {})
    slots = plan.slots.machines
    each = ", ".join(f"{number} on {name}" for name, number in slots.items())
    numbers = ", ".join(f"{name} {number}" for name, number in plan.parallelism.items())
    at_least = each if current.is_priced else max(slots.values())
    sizes = [f"# {SLOTS_SETTING}: at least {at_least}", f"# parallelism: {numbers}"]
    if pods is not None:
        sizes = [
            f"# {SLOTS_SETTING}: {pods.slots}",
            f"# {mode_line(pods.mode)}",
            f"# parallelism: {pods.parallelism}",
        ]
    if deployment.has_autoscaler:
        yield "# first turn Flink's autoscaler off (job.autoscaler.enabled); it would undo the rest"
    place = f"--rest {shlex.quote(url)} --job {job.id}"
    if deployment.manager or (deployment.kubernetes and deployment.is_unpinned):
        yield from _kubernetes_commands(place, deployment, plan)
        yield from sizes
        return
    cluster, placement = (
        shlex.quote(str(folder / name)) for name in ("cluster.toml", "placement.json")
    )
    yield from (f"# first start {n} × {name}" for name, n in changes.items() if n > 0)
    yield from sizes
    if deployment.scheduler != USUAL:  # the adaptive one
        requests = f"{url}/jobs/{job.id}/resource-requirements"
        yield f"# Flink's autoscaler changes it, or a request to {requests}"
    else:
        yield f"streamplace flink config --cluster {cluster} --subtasks -o config/"
        if deployment.without_jars:
            where = f"--placement {placement} --cluster {cluster}"
            yield f"streamplace flink jar JAR {where} -o placed.jar"
            yield f"streamplace flink cancel {place} --savepoint SAVEPOINTS"
            yield (
                "# start it again from that savepoint with placed.jar: its class is Placed, whose "
                "first argument is the main class"
            )
        else:
            where = f"{place} --placement {placement}"
            yield f"streamplace flink move JAR {where} --savepoints SAVEPOINTS -- ARGUMENTS"
    yield from (f"# then stop {-n} × {name}" for name, n in changes.items() if n < 0)


def _kubernetes_commands(place: str, deployment: JobDeployment, plan: PlanResult) -> Iterator[str]:
    """Commands for TaskManagers that are pods of one template, to which nothing can be pinned."""
    if deployment.manager:
        on = deployment.kubernetes and f" on {shown(deployment.kubernetes)}"
        yield f"# change in the {deployment.manager}{on}:"
    else:
        yield f"streamplace flink cancel {place} --savepoint SAVEPOINTS"
        again = "the application" if deployment.is_application else "the job"
        yield f"# start {again} again from that savepoint, with:"
    machines = ", ".join(f"{number} × {name}" for name, number in plan.machines.items())
    alike = "; pods are all alike, so plan with one offer" if len(plan.machines) > 1 else ""
    yield f"# TaskManagers: {machines}{alike}"
