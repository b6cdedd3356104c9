"""Why a pass takes as long as it takes: the critical chain, the devices, and what to move."""

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.model.line import check_lines
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.makespan.advice import Move, best_move
from streamplace.objectives.makespan.bound import least_makespan
from streamplace.objectives.makespan.way import Way
from streamplace.objectives.report import Report, quantity

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
class Link:
    """A part of the critical chain: what it is spent on, by whom and where, from when to when."""

    what: str
    who: str
    where: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Run:
    """When an operator runs, and on which device."""

    device: str
    start: float
    finish: float


@dataclass(frozen=True, slots=True)
class Transfer:
    """When a stream's data is on its way between two devices."""

    stream: str
    source: str
    target: str
    departure: float
    arrival: float


@dataclass(frozen=True, slots=True)
class OnePass:
    """One pass under a placement, in seconds.

    Attributes
    ----------
    bound
        No placement takes less, proven.
    slr
        Schedule length ratio: makespan / the longest path where every operator runs where it is
        fastest and nothing is sent.
    chain
        What the makespan is made of, part by part; the parts add up to it.
    schedule
        By operator.
    busy
        Core seconds spent running, by device.
    queue
        What a free core takes, as `streamsim.passes.Rules` has it: ``order`` where devices hold
        the order of the placement, ``priority`` where that is who is first of what is ready.
    move
        The single move that helps most, None where none helps.
    """

    makespan: float
    bound: float
    slr: float
    chain: tuple[Link, ...]
    schedule: dict[str, Run]
    transfers: tuple[Transfer, ...]
    busy: dict[str, float]
    queue: str
    move: Move | None

    @property
    def value(self) -> float:
        """The makespan."""
        return self.makespan

    @property
    def words(self) -> str:
        """The makespan."""
        return f"a pass takes {quantity(self.makespan, 's')}"

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of the critical chain by what they are spent on, the most first."""
        total: defaultdict[str, float] = defaultdict(float)
        for link in self.chain:
            total[link.what] += link.seconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    @property
    def verdict(self) -> str:
        """What the makespan is made of."""
        told = ", ".join(f"{quantity(t, 's')} {what}" for what, t in self.parts.items())
        longest = max(self.chain, key=lambda link: link.seconds, default=None)
        if longest is None:
            return "nothing takes any time"
        most = (
            f"{longest.what} {longest.who} {longest.where} takes {quantity(longest.seconds, 's')}"
        )
        return f"of {quantity(self.makespan, 's')}: {told}; {most}"

    def headline(self) -> dict[str, Any]:
        """The ratio to the path, and the chain by kind."""
        return {"slr": self.slr, "chain": self.parts}

    def document(self) -> dict[str, Any]:
        """All facts."""
        return {**asdict(self), "parts": self.parts, "verdict": self.verdict}

    def brief(self) -> Report:
        """Devices with what they run, in the order in which they run it."""
        from streamplace.objectives.makespan.telling import brief

        return brief(self)

    def report(self) -> Report:
        """Devices, the critical chain, the bound, and what to move."""
        from streamplace.objectives.makespan.telling import report

        return report(self)


def explain(problem: Problem, placement: Placement, way: Way) -> OnePass:
    """Schedule, critical chain, bound and advice for one placement."""
    problem.check(placement)
    seen = seen_by(problem, placement, way)
    names = problem.graph.operators.name
    return OnePass(
        makespan=seen.makespan,
        bound=least_makespan(problem),
        slr=seen.makespan / shortest_path(problem),
        chain=_chain(problem, placement, seen),
        schedule={
            name: Run(placement[name], float(seen.start[v]), float(seen.finish[v]))
            for v, name in enumerate(names)
        },
        transfers=_transfers(problem, placement, seen),
        busy={name: float(seen.device_busy[d]) for d, name in enumerate(placement.devices)},
        queue=way.rules_of(placement)[0].queue,
        move=best_move(problem, placement, seen, way),
    )


def seen_by(problem: Problem, placement: Placement, way: Way) -> "Schedule":
    """Schedule of one pass."""
    from streamsim.passes import schedule

    rules, order = way.rules_of(placement)
    if rules.queue == "order":
        check_lines(problem.one_pass, placement)
    return schedule(problem.one_pass, placement.index, rules, priorities=order)


def shortest_path(problem: Problem) -> float:
    """Seconds of the longest path where every operator runs where it is fastest, sending free."""
    instance, one = problem.instance, problem.one_pass
    used = np.unique(instance.device_type)
    fastest = one.work[:, used].min(axis=1)
    done = fastest.copy()
    for e in range(instance.n_streams):
        u, v = instance.source[e], instance.target[e]
        done[v] = max(done[v], done[u] + fastest[v])
    return max(float(done.max()), 1e-300)


def _chain(problem: Problem, placement: Placement, seen: "Schedule") -> tuple[Link, ...]:
    names, streams = problem.graph.operators.name, problem.graph.streams
    found = []
    chain = seen.chain
    ends = zip(chain.times[:-1].tolist(), chain.times[1:].tolist(), strict=True)
    rows = zip(chain.parts, chain.operator.tolist(), chain.stream.tolist(), ends, strict=True)
    for part, v, e, (begin, end) in rows:
        if e < 0:
            who, where = names[v], f"on {placement[names[v]]}"
        else:
            a, b = (placement[names[int(column[e])]] for column in (streams.source, streams.target))
            who, where = streams.label(e), f"over {a}→{b}"
        found.append(Link(KINDS[part.name], who, where, begin, end))
    return tuple(found)


def _transfers(problem: Problem, placement: Placement, seen: "Schedule") -> tuple[Transfer, ...]:
    streams, place = problem.graph.streams, placement.index
    a, b = place[streams.source], place[streams.target]
    remote = np.flatnonzero(a != b)
    return tuple(
        Transfer(
            streams.label(int(e)),
            placement.devices[a[e]],
            placement.devices[b[e]],
            float(seen.departure[e]),
            float(seen.arrival[e]),
        )
        for e in remote[np.argsort(seen.departure[remote], kind="stable")]
    )
