"""Advice on a running job: its cost, the cheapest machines for a rate, and the way to change."""

from collections.abc import Iterator, Set
from dataclasses import asdict, dataclass
from itertools import groupby
from math import isfinite
from typing import Any

from streamplace.engines.flink.advise.current_machines import (
    FOLDER,
    CurrentMachine,
    CurrentMachines,
)
from streamplace.engines.flink.advise.unknowns import Unknown
from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.measure.placed_subtasks import finite
from streamplace.engines.flink.measure.sending_cost import MESSAGE_COST
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.model.display import Displayed
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import counted, listed, quoted
from streamplace.model.report import Part, Report, Sheet, duration, percent, some
from streamplace.model.units import digits
from streamplace.planning.result import PlanResult

LEAST_GAIN = 0.005
"""Differences in cost below this share of it are not mentioned."""
LEAST_SAVING = 0.02
"""Chaining is mentioned if it saves at least this part of the CPU."""


@dataclass(frozen=True, slots=True)
class OperatorLoad:
    """CPU and parallelism of an operator, now and in the plan."""

    name: str
    cpu: float  # core seconds per tuple; 0 if none passed
    source: str  # how the CPU was measured
    # Number of its subtasks, now and in the plan.
    parallelism: int
    planned: int
    max_parallelism: int  # key groups as Flink reports them; 0 if it does not


@dataclass(frozen=True, slots=True, eq=False)
class Advice(Displayed):
    """Cost of a running job, and the cheapest machines for a rate."""

    # Id and name of the job.
    job: str
    name: str
    rate: float  # requested rate in tuples/s
    flow: SourceFlow  # what the sources do now
    current: CurrentMachines  # TaskManagers of the cluster, and their cost per hour
    carried: float | None  # tuples/s that the job can carry where it runs; None if unknown
    operators: tuple[OperatorLoad, ...]  # CPU and parallelism of every operator
    plan: PlanResult  # the cheapest plan that was found, with its bound
    outage: float  # seconds for which changing stops the job
    # Shell commands that change the job, line by line; empty if nothing should change.
    commands: tuple[str, ...]
    # Sentences on missing measurements and on costs that the advice leaves out.
    notes: tuple[str, ...]
    folder: str = FOLDER  # folder in which the commands expect the files of the plan
    warning: str | None = None  # how the profile contradicts itself; None if it does not
    # Missing measurements and how to make them, the most important ones first.
    unknowns: tuple[Unknown, ...] = ()

    @property
    def gain(self) -> float:
        """Cost per hour of today's machines less that of the plan."""
        return self.current.cost - self.plan.cost

    @property
    def catch_up(self) -> float | None:
        """Seconds in which the plan works off the backlog of the outage; None if it never does.

        What the plan carries with its confidence counts.
        """
        errors, carries = self.plan.errors, self.plan.carries
        spare = (carries if errors is None else errors.at_least(carries)) - self.rate
        return self.outage * self.rate / spare if spare > 0 else None

    @property
    def observed(self) -> float:
        """Tuples/s that all sources together emit now."""
        return self.flow.rate

    @property
    def offered(self) -> float | None:
        """Tuples/s that all sources together are offered now; None if that is unknown."""
        return self.flow.offered

    def report(self) -> Report:
        """Return tables and sentences for display, with commands and notes."""
        first = () if self.warning is None else (f"warning: {self.warning}",)
        commands = (f"  {command}" for command in self.commands)
        notes = (f"note: {note}" for note in self.notes)
        parts = summary_of_advice(self).parts
        return Report((*first, *parts, *commands, *notes), self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the advice as a JSON document."""
        return {
            "job": self.job,
            "name": self.name,
            "rate": self.rate,
            "observed": self.observed,
            "offered": self.offered,
            "sources": [*map(_source_json, self.flow.sources.values())],
            "current": {
                "cost": self.current.cost,
                "machines": self.current.counts,
                "carried": finite(self.carried),
                "taskmanagers": [asdict(machine) for machine in self.current.machines],
            },
            "priced": self.current.is_priced,
            "operators": [asdict(operator) for operator in self.operators],
            "plan": self.plan.to_json(),
            "gain": self.gain,
            "outage": self.outage,
            "catch_up": self.catch_up,
            "commands": list(self.commands),
            "warning": self.warning,
            "notes": list(self.notes),
            "unknowns": [asdict(unknown) for unknown in self.unknowns],
        }


def summary_of_advice(advice: Advice) -> Report:
    """Report without commands and notes, which a terminal must not break into lines."""
    parts: list[Part] = [
        _machines(advice),
        *_today(advice),
        *map(_rate, advice.flow.sources.values()),
        _operators(advice.operators),
        f"For {digits(advice.rate, 6)} tuples/s:",
        *advice.plan.report().parts,
        *_unknown(advice.unknowns),
        *_change(advice),
    ]
    return Report(tuple(parts), advice.name)


def _machines(advice: Advice) -> Sheet:
    def kind(machine: CurrentMachine) -> tuple[str, str, str]:
        return machine.size, machine.offer if machine.by and machine.offer else "—", machine.by

    rows = []
    for (size, offer, by), group in groupby(sorted(advice.current.machines, key=kind), kind):
        own = list(group)
        names = some([machine.name for machine in own], separator=", ", most=2)
        subtasks = sum(machine.subtasks for machine in own)
        matched = f"{offer} (by {by})" if by else offer
        rows.append((names, str(len(own)), size, matched, str(subtasks)))
    head = ("TaskManagers", "number", "size", "offer", "subtasks")
    return Sheet(head, tuple(rows), names=0)


def _today(advice: Advice) -> Iterator[str]:
    current = advice.current
    number = len(current.machines) - len(current.unmatched)
    cost = f"cost {current.cost:g} per hour" if current.is_priced else "run the job"
    yield f"Today: {counted(number, 'machine')} that {cost}."
    if current.unmatched:
        names = listed([machine.name for machine in current.unmatched])
        yield (
            f"No offer has the cores, speed and memory of {names}, so the cost leaves out "
            f"{counted(len(current.unmatched), 'TaskManager')}; add offers, or give the speed of "
            "the TaskManagers as mips in a file for --settings."
        )
    if current.idle:
        yield f"Without subtasks of this job: {listed(current.idle)}."
    if advice.carried is not None:
        is_known = isfinite(advice.carried)
        rate = f"{digits(advice.carried)} tuples/s" if is_known else "any rate"
        text = f"Where the job runs now, it can carry {rate}, by the model"
        errors = advice.plan.errors
        if errors is not None and is_known:
            text += f"; with {errors.words} at least {digits(errors.at_least(advice.carried))}"
        yield f"{text}."


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


def _rate(source: SourceFlow) -> str:
    text = f"Source {source.name} emits {digits(source.rate)} tuples/s"
    if source.halves is not None:
        text += " ({} and {} in two windows)".format(*map(digits, source.halves))
    if source.pending is not None:
        change = "grow" if source.growth >= 0 else "shrink"
        text += f"; {source.pending:.0f} records are pending and {change} by "
        text += f"{digits(abs(source.growth))} per second"
    if source.is_held_back:
        share = max(source.back_pressured, source.most_back_pressured)
        who = "it" if share == source.back_pressured else "one of its subtasks"
        text += f"; {who} is back-pressured {percent(share)} of the time"
        if source.offered is None:
            return f"{text}, so it is offered more than that, and how much is unknown."
    elif source.offered is None:
        return f"{text}; {source.why}, so it may be offered more, and how much is unknown."
    return f"{text}; it is offered {digits(source.offered)}."


def _operators(operators: tuple[OperatorLoad, ...]) -> Sheet:
    rows = tuple(
        (
            operator.name,
            duration(operator.cpu),
            operator.source,
            str(operator.parallelism),
            str(operator.planned),
            str(operator.max_parallelism or "unknown"),
        )
        for operator in operators
    )
    head = ("operator", "CPU per tuple", "measured by", "subtasks", "planned", "at most")
    return Sheet(head, rows, names=0)


def _unknown(unknowns: tuple[Unknown, ...]) -> Iterator[str]:
    """Sentences on the unknowns of the plan, and on the most useful measurement."""
    for unknown in unknowns:
        yield (
            f"Not known: {unknown.what}. By this the plan may carry {percent(unknown.share)} less "
            "than is predicted."
        )
    if unknowns:
        yield f"What would narrow it most: {unknowns[0].measurement}."


def _change(advice: Advice) -> Iterator[str]:
    if advice.current.is_priced:
        yield _gain(advice)
    if not advice.commands:
        yield "Today's machines carry the rate and cost no more than the plan: change nothing."
        return
    text = f"Changing stops the job once, for about {duration(advice.outage)}"
    if advice.catch_up is None:
        yield f"{text}; what arrives meanwhile cannot be made up for at this rate."
    else:
        yield f"{text}, which is made up for in {duration(advice.catch_up)}."
    yield f"To change it, with the files that -o {advice.folder.rstrip('/')}/ writes:"


def _gain(advice: Advice) -> str:
    today = f"Today's machines cost {advice.current.cost:g} per hour"
    today += ", without those that fit no offer" if advice.current.unmatched else ""
    if abs(advice.gain) <= LEAST_GAIN * advice.plan.cost:
        return f"{today}, as much as the plan."
    if advice.gain > 0:
        return f"{today}; the plan saves {advice.gain:.6g} per hour."
    return f"{today}; the plan costs {-advice.gain:.6g} per hour more."


def notes_on_busiest(plan: PlanResult, shares: Shares) -> Iterator[str]:
    """Notes on operators whose busiest subtask fills a core before the plan is full.

    The plan divides tuples as Flink divides keys that are all alike, because it is not known how
    popular keys would be divided among other numbers of subtasks.

    A subtask that reads a share of the operator's tuples is full at the multiple of the rate

        (speed of a core - constant part) / (share · instructions per second at the rate)
    """
    graph = plan.graph
    speed = 1e6 * float(plan.cluster.devices.speed.max())
    for name, parts in shares.items():
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


def notes_on_copies(receivers: Set[str]) -> Iterator[str]:
    """Note on operators that keep their parallelism, because each of their subtasks gets copies."""
    if receivers:
        yield (
            "every subtask that receives a broadcast stream gets a copy of each tuple, so the plan "
            f"keeps the parallelism of {listed(sorted(receivers))}"
        )


def notes_on_streams(graph: StreamGraph) -> Iterator[str]:
    """Note on the assumed cost of messages."""
    if MESSAGE_COST in graph.attributes:
        yield f"what a message between subtasks costs is {graph.attributes[MESSAGE_COST]}"
