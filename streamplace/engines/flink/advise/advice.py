"""Advice on a running job: what its machines cost, the cheapest ones for a rate, and the change."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isclose, isfinite
from typing import Any

from streamplace.display.report import Brief, Detail, Part, Report, Sheet, duration, some
from streamplace.engines.flink.measure.cluster import finite
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.interruption import Interruption
from streamplace.model.intervals import RateInterval
from streamplace.model.messages import counted, listed
from streamplace.model.objects import Displayed
from streamplace.model.units import digits
from streamplace.planning.result import PlanResult

FOLDER = "plan"
"""Folder of a plan in commands if -o names none."""


@dataclass(frozen=True, slots=True)
class OperatorLoad:
    """CPU and parallelism of an operator, now and in the plan."""

    name: str
    cpu: float  # core seconds per tuple; 0 if none passed
    fixed: float  # cores at any rate
    source: str  # how the CPU was measured
    # Number of its subtasks, now and in the plan.
    parallelism: int
    planned: int
    max_parallelism: int  # most subtasks that can have work; 0 if that is unknown


@dataclass(frozen=True, slots=True)
class CurrentMachine:
    """A TaskManager as a machine."""

    name: str
    size: str  # its cores, speed and memory, in words
    offer: str | None  # name of the matching offer; None if there is none
    by: str  # property by which the offer was recognised
    subtasks: int  # number of subtasks of the job that run there


@dataclass(frozen=True, slots=True)
class CurrentMachines:
    """The TaskManagers of a cluster."""

    machines: tuple[CurrentMachine, ...]
    # Price per hour of all machines with an offer; without offers, the number of machines.
    cost: float
    is_priced: bool = True  # whether there are offers

    @property
    def counts(self) -> dict[str, int]:
        """Number of machines of each offer."""
        names = [machine.offer for machine in self.machines if machine.offer is not None]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    @property
    def unmatched(self) -> list[CurrentMachine]:
        """TaskManagers without a matching offer."""
        return [machine for machine in self.machines if machine.offer is None]

    @property
    def idle(self) -> list[str]:
        """TaskManagers without subtasks of the job."""
        return [machine.name for machine in self.machines if not machine.subtasks]


@dataclass(frozen=True, slots=True, eq=False)
class Advice(Displayed):
    """Cost of a running job, and the cheapest machines for a rate."""

    # Id and name of the job.
    job: str
    name: str
    rate: float  # requested rate in tuples/s
    flow: SourceFlow  # what the sources do now
    current: CurrentMachines  # TaskManagers of the cluster, and their cost per hour
    # Tuples/s that the job can carry where it runs: measured if its sources are held back, else
    # predicted; None if unknown.
    carried: RateInterval | None
    operators: tuple[OperatorLoad, ...]  # CPU and parallelism of every operator
    plan: PlanResult  # the cheapest plan that was found, with its bound
    interruption: Interruption  # seconds for which changing stops the job
    # Shell commands that change the job, line by line; empty if nothing should change.
    commands: tuple[str, ...]
    # Sentences on missing measurements and on costs that the advice leaves out.
    notes: tuple[str, ...]
    folder: str = FOLDER  # folder in which the commands expect the files of the plan

    @property
    def gain(self) -> float:
        """Cost per hour of today's machines less that of the plan."""
        return self.current.cost - self.plan.cost

    @property
    def catch_up(self) -> float | None:
        """Seconds in which the plan works off what waits after the change; None if it never does.

        What the plan carries with its confidence counts.
        """
        at_least = self.plan.at_least
        spare = (self.plan.carries if at_least is None else at_least) - self.rate
        backlog = self.interruption.value * self.rate + (self.flow.pending or 0.0)
        return backlog / spare if spare > 0 else None

    def report(self) -> Report:
        """Return what fits a screen, with tables, commands and notes as details."""
        commands = (f"  {command}" for command in self.commands)
        return Report((*self.summary().parts, *commands), self.name)

    def summary(self) -> Report:
        """Report without commands, which a terminal must not break into lines."""
        parts: list[Part] = [
            *_sources(self.flow),
            *_today(self),
            Detail(_machines(self)),
            Detail(_operators(self.operators)),
            *_plan(self.plan),
            *(Detail(f"note: {note}") for note in self.notes),
            *_change(self),
        ]
        return Report(tuple(parts), self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the advice as a JSON document."""
        carried = self.carried
        ends = {} if carried is None else carried._asdict()
        return {
            "job": self.job,
            "name": self.name,
            "rate": self.rate,
            "observed": self.flow.rate,
            "offered": self.flow.offered,
            "sources": [*map(_source_json, self.flow.sources.values())],
            "current": {
                "cost": self.current.cost,
                "machines": self.current.counts,
                "carried": None if carried is None else finite(carried.value),
                "interval": {end: finite(rate) for end, rate in ends.items()} or None,
                "taskmanagers": [asdict(machine) for machine in self.current.machines],
            },
            "priced": self.current.is_priced,
            "operators": [asdict(operator) for operator in self.operators],
            "plan": self.plan.to_json(),
            "gain": self.gain,
            "outage": self.interruption.value,
            "catch_up": self.catch_up,
            "commands": list(self.commands),
            "notes": list(self.notes),
        }


def _source_json(source: SourceFlow) -> dict[str, Any]:
    return {
        "name": source.name,
        "observed": source.rate,
        "windows": source.halves,
        "pending": source.pending,
        "growth": source.growth,
        "back_pressured": source.back_pressured,
        "most_back_pressured": source.most_back_pressured,
        "behind": source.why,
        "offered": source.offered,
    }


def _sources(flow: SourceFlow) -> Iterator[Part]:
    """What the sources emit and are offered, and their lag: together, and each as a detail."""
    sources = [*flow.sources.values()]
    if len(sources) == 1:
        yield _source(f"Source {sources[0].name}", sources[0])
        return
    yield _source(f"{len(sources)} sources", flow)
    yield from (Detail(_source(f"Source {one.name}", one)) for one in sources)


def _source(name: str, flow: SourceFlow) -> str:
    text = f"{name}: {digits(flow.rate)} tuples/s emitted"
    offered = flow.offered
    text += f", {'an unknown rate' if offered is None else digits(offered)} offered"
    if flow.why is not None:
        text += f" ({flow.why})"
    return f"{text}." if flow.pending is None else f"{text}; {flow.lag}."


def _today(advice: Advice) -> Iterator[Part]:
    current = advice.current
    number = len(current.machines) - len(current.unmatched)
    cost = f"cost {current.cost:g} per hour" if current.is_priced else "run the job"
    text = f"Today: {counted(number, 'machine')} that {cost}"
    if (carried := advice.carried) is not None:
        low, value, high = map(digits, carried)
        if not isfinite(carried.value):
            text += "; it can carry any rate there, as far as is known"
        elif carried.low == carried.high:
            text += f"; it sustains {value} tuples/s there (measured)"
        else:
            text += f"; it can carry {value} tuples/s there ({low} to {high})"
    yield f"{text}."
    if current.unmatched:
        names = some([machine.name for machine in current.unmatched], separator=", ", most=3)
        yield (
            f"No offer has the cores, speed and memory of {names}, so the cost leaves out "
            f"{counted(len(current.unmatched), 'TaskManager')}; add offers, or mips in --settings."
        )
    if current.idle:
        yield Detail(f"Without subtasks of this job: {listed(current.idle)}.")


def _machines(advice: Advice) -> Sheet:
    rows = tuple(
        (
            machine.name,
            machine.size,
            f"{machine.offer} (by {machine.by})" if machine.offer and machine.by else "—",
            str(machine.subtasks),
        )
        for machine in advice.current.machines
    )
    return Sheet(("TaskManager", "size", "offer", "subtasks"), rows)


def _operators(operators: tuple[OperatorLoad, ...]) -> Sheet:
    rows = tuple(
        (
            operator.name,
            duration(operator.cpu),
            f"{operator.fixed:.3g}",
            operator.source,
            str(operator.parallelism),
            str(operator.planned),
            str(operator.max_parallelism or "unknown"),
        )
        for operator in operators
    )
    head = ("operator", "CPU per tuple", "cores besides", "measured by", "subtasks", "planned")
    return Sheet((*head, "at most"), rows, names=0)


def _plan(plan: PlanResult) -> Iterator[Part]:
    """The machines of a plan, its cost and what it carries; the rest of its report as details."""
    sentences = 0
    for part in plan.report().parts:
        if isinstance(part, str):
            sentences += 1
            yield part if sentences <= 2 else Detail(part)
        elif not (isinstance(part, Brief) and isinstance(part.part, str)):
            yield part


def _change(advice: Advice) -> Iterator[str]:
    if advice.current.is_priced:
        yield _gain(advice)
    if not advice.commands:
        yield "Today's machines carry the rate and cost no more than the plan: change nothing."
        return
    text = f"Changing stops the job once, for {advice.interruption}"
    if advice.catch_up is None:
        yield f"{text}; what arrives meanwhile cannot be made up for at this rate."
    else:
        yield f"{text}, which is made up for in {duration(advice.catch_up)}."
    yield f"To change it, with the files that -o {advice.folder.rstrip('/')}/ writes:"


def _gain(advice: Advice) -> str:
    today = f"Today's machines cost {advice.current.cost:g} per hour"
    today += ", without those that fit no offer" if advice.current.unmatched else ""
    if isclose(advice.current.cost, advice.plan.cost):
        return f"{today}, as much as the plan."
    if advice.gain > 0:
        return f"{today}; the plan saves {advice.gain:.6g} per hour."
    return f"{today}; the plan costs {-advice.gain:.6g} per hour more."
