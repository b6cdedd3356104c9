"""Makespan: the duration of one pass through the placed graph, its timeline and its explanation."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from streamplace.display.assumptions import assumed, assumptions
from streamplace.display.report import (
    MAX_ROWS,
    Bar,
    Brief,
    Cell,
    Detail,
    Names,
    Part,
    Report,
    Sheet,
    brief_and_detail,
    percent,
    quantity,
)
from streamplace.display.sheets import with_counts, with_rest
from streamplace.errors import SettingError
from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.message_text import quoted, shown
from streamplace.model.mixins import data_frame, kept, verdict_of
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem, check_lines
from streamplace.model.subtasks import operators_by_subtask
from streamplace.objectives.explanation import (
    MAX_CANDIDATES,
    MAX_LISTED,
    AdvisingExplanation,
    MoveAdvice,
    PassTimeline,
    Picture,
    together,
)
from streamplace.objectives.registry import OBJECTIVES, Objective, objective

if TYPE_CHECKING:
    from pandas import DataFrame
    from streamsim.passes import Rules, Schedule

Option = Literal["preset", "queue", "network"]
KINDS = {
    "RUNNING": "running",
    "CORE": "waiting for a core",
    "NETWORK": "waiting for the network",
    "SENDING": "sending",
    "TRAILING": "trailing",
}
ORDERS = {
    "priority": "Order: of the operators that are ready on a device, the one of the highest "
    "priority runs first",
    "order": "Order: held; a device waits for the next in line even if another operator is ready",
}
"""Meaning of a placement's order, by discipline."""


@dataclass(frozen=True, slots=True)
class PassOptions:
    """Rules of a pass, by name; empty ones have their defaults.

    Examples
    --------
    >>> PassOptions(preset="doppler").rules().network
    'link'
    >>> PassOptions().rules("order").queue, PassOptions(queue="fifo").rules("order").queue
    ('order', 'fifo')
    """

    preset: str = ""  # simulator whose rules apply: ``giph``, ``placeto`` or ``doppler``
    # As in `streamsim.passes.Rules`; without a queue, the placement's own discipline applies to its
    # priorities.
    queue: str = ""
    network: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "PassOptions":
        """Parse the options of an objective; raise SettingError for unknown ones."""
        from streamsim.passes import PRESETS

        for key in options:
            if key not in cls.__slots__:
                names = ", ".join(cls.__slots__)
                raise SettingError(
                    f"objective makespan has no option {quoted(key)}; it has {names}"
                )
        chosen = cls(**{cast(Option, key): value for key, value in options.items()})
        if chosen.preset and chosen.preset not in PRESETS:
            raise SettingError(
                f"objective makespan has no preset {quoted(chosen.preset)}; "
                f"it has {', '.join(PRESETS)}"
            )
        try:
            chosen.rules()
        except ValueError as error:
            raise SettingError(f"objective makespan: {shown(str(error), 200)}") from None
        return chosen

    @property
    def heeds_priorities(self) -> bool:
        """Whether a placement's own priorities apply; presets have their own order."""
        return self.queue in ("", "priority", "order") and not self.preset

    def rules(self, queue: str = "") -> "Rules":
        """Rules for placements with this discipline of priorities, or "" without priorities."""
        return _rules(self, queue)

    def rules_of(self, placement: Placement) -> "tuple[Rules, Floats | None]":
        """Rules for a placement, and its priorities if they apply."""
        order = placement.priority if self.heeds_priorities else None
        return self.rules("" if order is None else placement.queue), order


USUAL = PassOptions()


@lru_cache
def _rules(options: PassOptions, queue: str) -> "Rules":
    from streamsim.passes import PRESETS, Rules

    usual = PRESETS[options.preset] if options.preset else Rules()
    changed = {key: value for key in ("queue", "network") if (value := getattr(options, key))}
    if queue and not options.queue and not options.preset:
        changed["queue"] = queue
    return replace(usual, **changed)


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


@kept
def least_makespan(problem: Problem) -> float:
    """Lower bound on the seconds of one pass, for any placement."""
    from streamsim.passes import bounds

    rules = problem.rules
    return bounds(problem.one_pass, None if rules is None else rules.allowed[rules.unit]).best


@lru_cache(maxsize=1)
def pass_schedule(problem: Problem, placement: Placement, options: PassOptions) -> "Schedule":
    """Schedule of one pass; the last one is kept for tables, charts and traces."""
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
    """Transfers between devices, in order of departure."""
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


@dataclass(frozen=True)
class OnePass(AdvisingExplanation):
    """One pass under a placement, in seconds.

    ``slr`` is the schedule length ratio, see `length_ratio`. ``queue`` is the rule by which a free
    core chooses, as in `streamsim.passes.Rules`: ``order`` if devices hold the order of the
    placement, ``priority`` if its priorities apply to ready operators. ``find_move`` simulates up
    to thousands of passes.
    """

    makespan: float
    bound: float  # proven lower bound on the makespan of any placement
    slr: float | None
    chain: tuple[ChainPart, ...]  # their seconds add up to the makespan
    schedule: dict[str, Run]  # of every operator
    transfers: tuple[Transfer, ...]
    busy: dict[str, float]  # seconds of busy cores, by device
    queue: str
    assumptions: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The makespan."""
        return self.makespan

    @property
    def words(self) -> str:
        """Makespan in words."""
        return f"a pass takes {quantity(self.makespan, 's')}"

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of the critical chain by kind, the longest first."""
        total: defaultdict[str, float] = defaultdict(float)
        for link in self.chain:
            total[link.what] += link.seconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    @property
    def verdict(self) -> str:
        """Parts of the makespan, and its longest one."""
        spent = ", ".join(f"{quantity(t, 's')} {what}" for what, t in self.parts.items())
        longest = max(self.chain, key=lambda link: link.seconds, default=None)
        if longest is None:
            return "nothing takes any time"
        part = f"{longest.what} {longest.who} {longest.where}"
        takes = f"{part} takes {quantity(longest.seconds, 's')}"
        return f"of {quantity(self.makespan, 's')}: {spent}; {takes}"

    __repr__ = verdict_of

    def headline(self) -> dict[str, Any]:
        """Schedule length ratio, and the critical chain by kind."""
        return {"slr": self.slr, "chain": self.parts}

    def document(self) -> dict[str, Any]:
        """All facts."""
        return {
            "makespan": self.makespan,
            "bound": self.bound,
            "slr": self.slr,
            "chain": tuple(map(asdict, self.chain)),
            "schedule": {name: asdict(run) for name, run in self.schedule.items()},
            "transfers": tuple(map(asdict, self.transfers)),
            "busy": self.busy,
            "queue": self.queue,
            "move": self.move_facts("makespan"),
            "parts": self.parts,
            "verdict": self.verdict,
            "assumptions": self.assumptions,
        }

    def to_pandas(self) -> "DataFrame":
        """Table of the operators with their device, start and finish, one row each."""
        runs = self.schedule.values()
        columns = {
            name: [getattr(run, name) for run in runs] for name in ("device", "start", "finish")
        }
        return data_frame({"operator": list(self.schedule), **columns})

    def brief(self) -> Report:
        """Devices with the operators that they run, in that order."""
        parts: list[Part] = [*brief_and_detail(self._device_sheet)]
        whole = max(self.makespan, 1e-300)
        spent = ", ".join(
            f"{quantity(t, 's')} {what} ({percent(t / whole)})" for what, t in self.parts.items()
        )
        parts.append(f"Critical chain: {quantity(self.makespan, 's')} = {spent or 'nothing'}")
        if self.queue in ORDERS:
            order = ORDERS[self.queue]
            parts.append(order if self.queue == "order" else Detail(order))
        return Report(tuple(parts))

    def report(self) -> Report:
        """Devices, the critical chain, the bound, and advice."""
        _, devices, parts, *order = self.brief().parts
        ratio = "" if self.slr is None else f"; schedule length ratio {self.slr:.3g}"
        bound = f"No placement takes less than {quantity(self.bound, 's')} (proven){ratio}"
        advice = self.move_words(lambda seconds: quantity(seconds, "s"))
        chain = Brief(_chain_sheet(self.chain, MAX_LISTED)), Detail(_chain_sheet(self.chain))
        brief = Brief(self._device_sheet(True, lines=1))
        sentences = (parts, *order, bound, advice, *assumed(self.assumptions))
        return Report((brief, devices, *chain, *sentences), self.words)

    def _device_sheet(self, is_brief: bool, lines: int = 2) -> Sheet:
        """Devices in use, the busiest first, with their operators; the others in one row."""
        span = max(self.makespan, 1e-300)
        by_device: dict[str, list[str]] = {name: [] for name in self.busy}
        for name, run in sorted(self.schedule.items(), key=lambda item: item[1].start):
            by_device[run.device].append(name)
        operators = operators_by_subtask(self.schedule)
        rows: list[tuple[Cell, ...]] = []
        for device, busy in sorted(self.busy.items(), key=lambda item: -item[1]):
            names = by_device[device]
            if is_brief:
                listed = Names.of(with_counts(names, operators), lines=lines)
            else:
                listed = Names.of(names)
            if names:
                rows.append((device, quantity(busy, "s"), Bar(busy / span), listed))
        sheet = with_rest(Sheet(("device", "runs", "", "operators, in order"), tuple(rows)))
        if idle := [device for device, names in by_device.items() if not names]:
            last = ("", "", "", Names.of(idle, before="idle: ", lines=1))
            return replace(sheet, rows=(*sheet.rows, last))
        return sheet


def explain(problem: Problem, placement: Placement, options: PassOptions = USUAL) -> OnePass:
    """Schedule, critical chain, bound and advice for one placement, which must be legal."""
    schedule = pass_schedule(problem, placement, options)
    names = problem.graph.operators.name
    return OnePass(
        makespan=schedule.makespan,
        bound=least_makespan(problem),
        slr=length_ratio(problem, schedule.makespan),
        chain=critical_chain(problem, placement, schedule),
        schedule={
            name: Run(placement[name], float(schedule.start[v]), float(schedule.finish[v]))
            for v, name in enumerate(names)
        },
        transfers=transfers_of(problem, placement, schedule),
        busy={name: float(schedule.device_busy[d]) for d, name in enumerate(placement.devices)},
        queue=options.rules_of(placement)[0].queue,
        find_move=partial(best_move, problem, placement, schedule, options),
        assumptions=assumptions(problem),
    )


def best_move(
    problem: Problem, placement: Placement, schedule: "Schedule", options: PassOptions
) -> MoveAdvice | None:
    """Return the best legal move of operators on the critical chain; None if none helps."""
    from streamsim.passes import makespans

    groups = together(problem, _candidates(problem, schedule))
    if not groups:  # a pass that takes no time
        return None
    moves = [(group, d) for group in groups for d in range(problem.n_devices)]
    batch = np.tile(placement.index, (len(moves), 1))
    for row, (group, d) in zip(batch, moves, strict=True):
        row[list(group)] = d
    legal = problem.legal(batch)
    rules, order = options.rules_of(placement)
    values = makespans(problem.one_pass, batch, rules, priorities=order)
    values = np.where(legal, values, np.inf)
    best = int(np.argmin(values))
    if values[best] >= schedule.makespan * (1 - ROUNDING):
        return None
    group, d = moves[best]
    names = problem.graph.operators.name
    return MoveAdvice(
        tuple(names[v] for v in group), problem.cluster.devices.name[d], float(values[best])
    )


def _candidates(problem: Problem, schedule: "Schedule") -> list[tuple[int, ...]]:
    """Operators of the critical chain, and pairs of operators joined by a stream of it."""
    streams = problem.graph.streams
    lasting = np.argsort(-schedule.chain.seconds, kind="stable")
    sent: Ints = schedule.chain.stream[lasting]
    pairs = dict.fromkeys((int(streams.source[e]), int(streams.target[e])) for e in sent if e >= 0)
    ends = [v for pair in pairs for v in pair]
    singles = dict.fromkeys([*schedule.chain.operator[lasting].tolist(), *ends])
    alone = list(singles)[:MAX_CANDIDATES]
    return [*((v,) for v in alone), *list(pairs)[:MAX_CANDIDATES]]


def length_ratio(problem: Problem, makespan: float) -> float | None:
    """Makespan / longest path with operators on their fastest devices and free transfers.

    None if no operator takes any time.
    """
    instance, rules = problem.instance, problem.rules
    seconds = problem.one_pass.work[:, instance.device_type]
    if rules is not None:
        seconds = np.where(rules.allowed[rules.unit], seconds, np.inf)
    fastest = seconds.min(axis=1)
    done = fastest.copy()
    for e in range(instance.n_streams):
        u, v = instance.source[e], instance.target[e]
        done[v] = max(done[v], done[u] + fastest[v])
    longest = float(done.max())
    return makespan / longest if longest > 0 else None


def _chain_sheet(chain: tuple[ChainPart, ...], max_rows: int = MAX_ROWS) -> Sheet:
    """Longest parts of the chain, in order of time."""
    longest = sorted(chain, key=lambda link: -link.seconds)[:max_rows]
    listed = [link for link in chain if link in longest]
    rows: list[tuple[str | Bar, ...]] = [
        (
            quantity(link.begin, "s"),
            quantity(link.seconds, "s"),
            f"{link.what} {link.who} {link.where}",
        )
        for link in listed
    ]
    if len(chain) > len(listed):
        rows.append(("…", "", f"and {len(chain) - len(listed)} shorter parts"))
    return Sheet(("at", "for", "critical chain"), tuple(rows))


def _timeline(problem: Problem, placement: Placement, options: PassOptions = USUAL) -> PassTimeline:
    queue = options.rules_of(placement)[0].queue
    return PassTimeline(pass_schedule(problem, placement, options), queue)


def _measures(problem: Problem, value: float) -> dict[str, float]:
    ratio = length_ratio(problem, value)
    return {} if ratio is None else {"slr": ratio}


def _variant(texts: Mapping[str, str]) -> Objective:
    options = PassOptions.of(texts)
    return replace(
        OBJECTIVES["makespan"],
        evaluate=partial(makespan, options=options),
        ordered=options.heeds_priorities,
        explain=partial(explain, options=options),
        picture=partial(picture, options=options),
        timeline=partial(_timeline, options=options),
    )


@objective(
    "makespan",
    sense="min",
    unit="s",
    bound=least_makespan,
    explain=explain,
    picture=picture,
    timeline=_timeline,
    measures=_measures,
    variant=_variant,
    kind="pass",
    guide="makespan",
)
def makespan(
    problem: Problem,
    placements: Ints,
    priorities: Floats | None = None,
    queue: str = "priority",
    options: PassOptions = USUAL,
) -> Floats:
    """Seconds of one pass, in which an operator runs once all of its inputs have arrived."""
    from streamsim.passes import makespans

    rules = options.rules("" if priorities is None else queue)
    order = priorities if options.heeds_priorities else None
    return makespans(problem.one_pass, np.atleast_2d(placements), rules, priorities=order)
