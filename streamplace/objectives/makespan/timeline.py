"""Timeline of one pass, with names: the schedule, the critical chain and the transfers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamplace.display.report import quantity
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem, check_lines
from streamplace.objectives.explanation import Picture
from streamplace.objectives.makespan.options import USUAL, PassOptions

if TYPE_CHECKING:
    from streamsim.passes import Schedule

KINDS = {
    "RELEASE": "waiting for release",
    "RUNNING": "running",
    "CORE": "waiting for a core",
    "NETWORK": "waiting for the network",
    "SENDING": "sending",
    "TRAILING": "trailing",
}


@dataclass(frozen=True, slots=True)
class ChainPart:
    """A part of the critical chain: its kind, its operator or stream, its place and its times."""

    what: str
    who: str
    where: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Run:
    """Device and times of an operator."""

    device: str
    start: float
    finish: float


@dataclass(frozen=True, slots=True)
class Transfer:
    """Transfer of a stream's data between two devices."""

    stream: str
    source: str
    target: str
    departure: float
    arrival: float


def least_makespan(problem: Problem) -> float:
    """Lower bound on the seconds of one pass, for any placement."""
    return problem.cached("least_makespan", _least_makespan)


def _least_makespan(problem: Problem) -> float:
    from streamsim.passes import bounds

    rules = problem.rules
    return bounds(problem.one_pass, None if rules is None else rules.allowed[rules.unit]).best


def pass_schedule(problem: Problem, placement: Placement, options: PassOptions) -> "Schedule":
    """Schedule of one pass; the last one is cached for tables, charts and traces."""
    last: dict[tuple[PassOptions, Placement], Schedule] = problem.cached(
        "pass_schedule", lambda _: {}
    )
    if (options, placement) not in last:
        last.clear()
        last[options, placement] = _schedule(problem, placement, options)
    return last[options, placement]


def _schedule(problem: Problem, placement: Placement, options: PassOptions) -> "Schedule":
    from streamsim.passes import schedule

    rules, order = options.rules_of(placement)
    if rules.queue == "order":
        check_lines(problem.one_pass, placement)
    return schedule(problem.one_pass, placement.index, rules, priorities=order)


def critical_chain(
    problem: Problem, placement: Placement, schedule: "Schedule"
) -> tuple[ChainPart, ...]:
    """Parts of the critical chain in order of time."""
    names, streams = problem.graph.operators.name, problem.graph.streams
    described = []
    chain = schedule.chain
    ends = zip(chain.times[:-1].tolist(), chain.times[1:].tolist(), strict=True)
    rows = zip(chain.parts, chain.operator.tolist(), chain.stream.tolist(), ends, strict=True)
    for part, v, e, (begin, end) in rows:
        if e < 0:
            who, where = names[v], f"on {placement[names[v]]}"
        else:
            a, b = (placement[names[int(column[e])]] for column in (streams.source, streams.target))
            who, where = streams.label(e), f"over {a}→{b}"
        described.append(ChainPart(KINDS[part.name], who, where, begin, end))
    return tuple(described)


def transfers_of(
    problem: Problem, placement: Placement, schedule: "Schedule"
) -> tuple[Transfer, ...]:
    """Transfers between devices, in order of their begins."""
    streams, place = problem.graph.streams, placement.index
    a, b = place[streams.source], place[streams.target]
    remote = np.flatnonzero(a != b)
    return tuple(
        Transfer(
            streams.label(int(e)),
            placement.devices[a[e]],
            placement.devices[b[e]],
            float(schedule.departure[e]),
            float(schedule.arrival[e]),
        )
        for e in remote[np.argsort(schedule.departure[remote], kind="stable")]
    )


def picture(problem: Problem, placement: Placement, options: PassOptions = USUAL) -> Picture:
    """Mark the operators and the streams on the critical chain."""
    schedule = pass_schedule(problem, placement, options)
    operators = np.zeros(problem.n_operators, np.bool_)
    streams = np.zeros(problem.graph.n_streams, np.bool_)
    operators[schedule.chain.operator] = True
    streams[schedule.chain.stream[schedule.chain.stream >= 0]] = True
    return Picture(
        title=quantity(schedule.makespan, "s"),
        subtitle="critical chain in red",
        operators=operators,
        streams=streams,
        devices=tuple(f"busy {quantity(busy, 's')}" for busy in schedule.device_busy.tolist()),
    )
