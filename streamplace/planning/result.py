"""Results of ``plan``: machines, parallelism, placement, cost, bound, and the limiting resource.

`PlanResult` is the plan for one rate or for a trace with its hours, `PlanCurve` the plans for
several rates. Both have tables, pictures and JSON.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import ceil, inf, isfinite, prod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.display.report import (
    MAX_ROWS,
    Bar,
    Brief,
    Detail,
    Part,
    Report,
    Sheet,
    brief_and_detail,
    percent,
    some,
)
from streamplace.display.sheets import with_rest
from streamplace.io.clusters import cluster_text
from streamplace.io.fields import plain
from streamplace.io.files import json_text, make_folder, write_texts
from streamplace.io.graphs import graph_to_dict
from streamplace.io.placements import prediction_facts
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import counted, shown
from streamplace.model.mixins import MAX_WIDTH, Pictured
from streamplace.model.placement import Placement
from streamplace.model.prediction_intervals import PredictionErrors, RateInterval
from streamplace.model.problem import Problem
from streamplace.model.units import digits, floor_digits
from streamplace.objectives.survives import Loss, loss_sheet
from streamplace.planning.offers import exact_price, offer_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HOUR = 3600
DAY = 24 * HOUR
EARLIEST_DATE = 1e8
"""Seconds since 1970 from which times count as dates."""
MAX_BARS = 24
"""Most machines that are drawn."""
MIN_SHOWN = 1e-6
"""Use of a CPU below which a bar is too thin to draw."""
FILES = ("plan.json", "graph.json", "cluster.toml", "placement.json", "plan.svg", "report.html")
"""Files of a plan."""
SIMULATE = "streamplace simulate graph.json /dev/stdin --cluster cluster.toml"
"""Command that simulates another placement of a plan, in the folder of its files."""
WORDS = {
    "cpu": "the CPU of {machine}, mostly by {operator}",
    "core": "one core of {machine}, by a subtask of {operator}",
    "max_rate": "the max_rate of {operator}, by a subtask on {machine}",
    "memory": "the memory of {machine}, mostly by {operator}",
    "egress": "the outgoing network of {machine}, mostly by {operator}",
    "ingress": "the incoming network of {machine}, mostly by {operator}",
    "slots": "the slots of {machine}",
    "link": "the link {machine}, mostly by {operator}",
}


@dataclass(frozen=True, slots=True)
class PlanLimit:
    """The resource that is full first if the rate grows."""

    resource: str  # a key of `WORDS`
    machine: str  # name of the machine; of a link, its two machines
    operator: str  # the operator that uses most of it; of a link, the stream
    use: float  # share of the resource in use


@dataclass(frozen=True, slots=True)
class PlanSlots:
    """Number of slots that a plan needs."""

    sharing: bool  # whether operators share slots in the plan
    separate: int  # slots of the job if every subtask has one of its own
    shared: int  # slots of the job if the operators of a slot sharing group share them
    machines: Mapping[str, int]  # most slots in use on a machine of each type


@dataclass(frozen=True, slots=True)
class PlanHour:
    """The plan that an hour of a trace would need alone."""

    start: float  # seconds at which the hour begins
    rate: float  # tuples/s of all sources together, each at its largest rate of the hour
    # Facts of the plan for this hour alone; no machines, None and None if no plan was found.
    machines: Mapping[str, int]
    cost: float | None
    bound: Fraction | None
    carried: bool  # whether the plan for the trace carries the hour, with its confidence if any
    interval: RateInterval | None = None  # rate that the plan for this hour alone carries, if known

    def to_json(self) -> dict[str, Any]:
        """Return the hour as a JSON document."""
        return {
            "start": plain(self.start),
            "rate": plain(self.rate),
            "machines": dict(self.machines),
            "cost": None if self.cost is None else plain(self.cost),
            "bound": None if self.bound is None else float(self.bound),
            "carried": self.carried,
            **({} if self.interval is None else {"interval": self.interval._asdict()}),
        }


@dataclass(frozen=True, slots=True, eq=False)
class PlanResult(Pictured):
    """Machines that carry a rate, the subtasks on them, and a lower bound of the cost."""

    graph: StreamGraph  # at its rate and the planned parallelisms
    rate: float  # tuples/s of all sources
    # Free share h, errors of predictions included: the plan is for 1 / (1 − h) times the rate.
    headroom: float
    cost: float  # price per hour of all machines; their number without prices
    # Lower bound of the cost of every plan. With ``errors``, it holds for plans that carry the rate
    # at the lower end of their predictions; a plan that carries it by the prediction alone may cost
    # less.
    bound: Fraction
    bounds: Mapping[str, Fraction]  # bounds of the relaxations, from the cheapest to the strongest
    machines: Mapping[str, int]  # number of each type
    parallelism: Mapping[str, int]  # number of subtasks of each operator
    cluster: Cluster  # the machines, named after their offers
    placement: Placement  # machine of every subtask
    limit: PlanLimit
    free: Mapping[str, float]  # free share of each resource, over all machines that limit it
    # Rate at which the first resource is full, with this placement and without headroom; infinite
    # if no resource that grows with the rate is used.
    carries: float
    slots: PlanSlots
    seed: int  # seed of the search
    # Price per hour of a machine of each type; none where the cost is the number of machines.
    prices: Mapping[str, float] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()  # machines that have the name of their type
    hours: tuple[PlanHour, ...] = ()  # hours of a trace; none if the plan is for one rate
    errors: PredictionErrors | None = None  # of predictions; None without a measurement
    # Multiples of the rate that the plan is made for, by purpose.
    reserves: Mapping[str, float] = field(default_factory=dict)
    # Least share of the rate, with the headroom, that survives the loss of any one machine; 0
    # without that condition. Losses of all machines with subtasks, the worst first.
    survives: float = 0.0
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()  # facts that a reader of the graph would not expect

    def __repr__(self) -> str:
        unit, machines = " per hour" if self.priced else "", machines_in_words(self.machines)
        text = f"PlanResult {self.cost:g}{unit} (bound {floor_digits(self.bound)}): {machines}"
        return shown(f"<{text}>", MAX_WIDTH)

    @property
    def priced(self) -> bool:
        """Whether machines have prices; else the cost is their number."""
        return bool(self.prices)

    @property
    def cost_unit(self) -> str:
        """Unit of the cost, in words."""
        return "cost per hour" if self.priced else "machines"

    @property
    def gap(self) -> float:
        """Share by which the cost is above the bound, which may be 0; 0 for a cheapest plan."""
        if self.is_cheapest or not self.bound:
            return 0.0 if self.is_cheapest else inf
        return max(0.0, float(self._exact_cost / self.bound) - 1)

    @property
    def is_cheapest(self) -> bool:
        """Whether no plan costs less."""
        return self._exact_cost <= self.bound

    @property
    def _exact_cost(self) -> Fraction:
        """Sum of the prices, exactly as they are written in decimals."""
        if not self.priced:
            return Fraction(sum(self.machines.values()))
        prices = (exact_price(self.prices[name]) * n for name, n in self.machines.items())
        return sum(prices, Fraction(0))

    @property
    def interval(self) -> RateInterval | None:
        """Interval of the rate that the placement carries; None if nothing was measured."""
        if self.errors is None or not isfinite(self.carries):
            return None
        return self.errors.interval(self.carries)

    @property
    def at_least(self) -> float | None:
        """Tuples/s that the placement carries with the confidence of `errors`."""
        return None if self.errors is None else self.errors.at_least(self.carries)

    def subtasks(self) -> dict[str, dict[str, int]]:
        """Subtasks of each operator on each machine; machines without any are left out."""
        return expand(self.graph).fold_names(self.placement)

    def report(self) -> Report:
        """Report machines and their subtasks, cost and bound, and the limiting resource."""
        used = {name: 1 - share for name, share in self.free.items()}
        resources = tuple((name, Bar(use), percent(use)) for name, use in used.items())
        number = sum(self.machines.values())
        costs = f"cost {self.cost:g} per hour on" if self.priced else "need"
        rate = f"{digits(self.carries, 6)} tuples/s" if isfinite(self.carries) else "any rate"
        where = WORDS[self.limit.resource].format(**asdict(self.limit))
        parts: list[Part] = [
            *brief_and_detail(self._machines),
            Brief(f"Subtasks: {some(self._numbers(), separator=', ')}."),
            f"{digits(self.rate, 6)} tuples/s {costs} {counted(number, 'machine')}. {_proof(self)}",
            f"The placement carries {rate}{_likely(self)}. The limit is {where} "
            f"({percent(self.limit.use)} in use).",
            *_reserve(self),
            *_survival(self),
            *self.notes,
            Detail(Sheet(("machines", "subtasks on them"), tuple(contents_of(self).items()))),
            Detail(Sheet(("resource", "", "in use"), resources)),
            *([Detail(loss_sheet(self.losses, is_brief=False))] if self.losses else []),
            Detail(
                f"The job takes {self.slots.separate} slots if every subtask has its own, and "
                f"{self.slots.shared} if operators share slots, as in Flink by default."
            ),
        ]
        if self.hours:
            parts += _hours(self)
        return Report(tuple(parts), subject=self)

    def _machines(self, is_brief: bool) -> Sheet:
        """Number, slots and price of the machines of each type."""
        head = ("machines", "number", "slots of each", *(("per hour",) if self.priced else ()))
        rows = (
            (
                name,
                str(count),
                str(self.slots.machines[name]),
                *((f"{count * self.prices[name]:g}",) if self.priced else ()),
            )
            for name, count in self.machines.items()
        )
        sheet = Sheet(head, tuple(rows))
        return with_rest(sheet) if is_brief else sheet

    def _numbers(self) -> list[str]:
        """Numbers of subtasks by operator, the largest first; operators with one come last."""
        several = {name: p for name, p in self.parallelism.items() if p > 1}
        ordered = sorted(several, key=lambda name: -several[name])
        single = [name for name in self.parallelism if name not in several]
        if several and len(single) > 1:
            single = ["and 1 of every other"]
        return [*(f"{name} {several[name]}" for name in ordered), *single]

    def figure(self) -> "Figure":
        """Draw the CPU use of each machine by operator, and below it the hours of a trace."""
        from streamplace.drawing.figures import GREY, bar_style, finish, legend_text, new_figure

        use, names = _cpu_use(self), self.graph.operators.name
        busy = np.flatnonzero(use.sum(axis=1))[:MAX_BARS]
        figure, axes = new_figure(
            1, rows=2 if self.hours else 1, width=6.4, height=1.2 + 0.22 * max(len(busy), 4)
        )
        bars, at, used = axes[0], np.arange(len(busy)), np.zeros(len(busy))
        for i, name in enumerate((*names, "sending and receiving")):
            width = use[busy, i]
            if width.max(initial=0.0) > MIN_SHOWN:
                style = bar_style(i) if i < len(names) else {"color": GREY}
                bars.barh(at, width, left=used, height=0.75, label=legend_text(name), **style)
                used += width
        bars.set_yticks(at, [legend_text(self.cluster.devices.name[d]) for d in busy.tolist()])
        bars.invert_yaxis()
        bars.axvline(1.0, color=GREY, linewidth=0.8)
        bars.set(xlim=(0, 1.02), xlabel="CPU in use")
        bars.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        if self.hours:
            _draw_hours(axes[1], self)
        machines = counted(sum(self.machines.values()), "machine")
        cost = f"{self.cost:g} per hour, " if self.priced else ""
        title = f"{digits(self.rate, 6)} tuples/s: {cost}{machines}"
        return finish(figure, f"{legend_text(self.graph.name)}\n{title}")

    def files(self) -> dict[str, str]:
        """Files of a plan by name: plan, graph, cluster, placement, picture and report."""
        from streamplace.drawing.figures import svg_text

        parallel = {name: p for name, p in self.parallelism.items() if p > 1}
        placement = {
            "graph": self.graph.name,
            "parallelism": parallel,
            **prediction_facts(self.interval, self.errors.supported if self.errors else 0.0),
            "assignment": self.placement.as_dict(),
        }
        texts = (
            json_text(self.to_json()),
            json_text(graph_to_dict(self.graph)),
            cluster_text(self.cluster),
            json_text(placement),
            svg_text(self.figure()),
            replace(self.report(), command=SIMULATE).html(),
        )
        return dict(zip(FILES, texts, strict=True))

    def write(self, folder: str | PathLike[str]) -> str:
        """Write the files of the plan into a folder, all or none, or the report alone (.html).

        Returns the names of the files, or "report".
        """
        if Path(folder).suffix == ".html":
            self.report().save(folder)
            return "report"
        make_folder(Path(folder))
        write_texts({Path(folder) / name: text for name, text in self.files().items()})
        return ", ".join(FILES)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON document."""
        return {
            "graph": self.graph.name,
            "rate": plain(self.rate),
            "headroom": self.headroom,
            "cost": plain(self.cost),
            "bound": float(self.bound),
            "bound_exact": str(self.bound),
            "gap": self.gap if isfinite(self.gap) else None,
            "cheapest": self.is_cheapest,
            "bounds": {name: float(bound) for name, bound in self.bounds.items()},
            "machines": dict(self.machines),
            "parallelism": dict(self.parallelism),
            "subtasks": self.subtasks(),
            "limit": asdict(self.limit),
            "free": dict(self.free),
            "carries": self.carries if isfinite(self.carries) else None,
            **_likely_json(self),
            "slots": asdict(self.slots),
            **_survival_json(self),
            **({"hours": [hour.to_json() for hour in self.hours]} if self.hours else {}),
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True, eq=False)
class PlanCurve(Pictured):
    """Cost and bound along a range of rates: the frontier."""

    values: tuple[float, ...]  # rates in tuples/s, ascending
    results: tuple[PlanResult, ...]  # the plan for each rate

    def __repr__(self) -> str:
        first, last = self.results[0].cost, self.results[-1].cost
        return f"<PlanCurve of {len(self.values)} plans: cost {first:g} to {last:g}>"

    def report(self) -> Report:
        """Cost and bound for each rate, and the carried rate if the graph was measured."""
        first = self.results[0]
        rows = tuple(
            (
                f"{value:g}",
                f"{result.cost:g}",
                floor_digits(result.bound),
                gap_in_words(result.gap),
                machines_in_words(result.machines),
                *(() if result.interval is None else (ends_in_words(result.interval),)),
            )
            for value, result in zip(self.values, self.results, strict=True)
        )
        carries = ("carries, tuples/s",) if first.interval is not None else ()
        head = ("tuples/s", first.cost_unit, "bound", "above the bound", "machines", *carries)
        return Report((Sheet(head, rows),), subject=self)

    def figure(self) -> "Figure":
        """Return a plot of cost and proven bound against the rate."""
        from streamplace.drawing.figures import PALETTE, finish, legend_text, panels

        first = self.results[0]
        costs = [result.cost for result in self.results]
        bounds = [float(result.bound) for result in self.results]
        figure, (axis,) = panels([""])
        axis.fill_between(self.values, bounds, costs, color=PALETTE[0], alpha=0.15, linewidth=0)
        axis.plot(self.values, costs, color=PALETTE[0], marker="o", markersize=4, label="plan")
        axis.plot(self.values, bounds, color=PALETTE[1], linestyle="--", label="proven bound")
        axis.set(xlabel="tuples/s", ylabel=first.cost_unit, ylim=(0, 1.08 * max(costs)))
        axis.locator_params("x", nbins=6, integer=all(v.is_integer() for v in self.values))
        axis.xaxis.set_major_formatter("{x:g}")
        return finish(figure, f"Cost against rate\n{legend_text(first.graph.name)}")

    def write(self, path: str | PathLike[str]) -> str:
        """Write the plot (.svg, .png or .pdf) or the report (.html); return which of them."""
        from streamplace.drawing.figures import save

        if Path(path).suffix == ".html":
            self.report().save(path)
            return "report"
        save(self.figure(), Path(path))
        return "plot"

    def to_json(self) -> list[dict[str, Any]]:
        """Return the documents of the plans, each with its rate."""
        return [result.to_json() for result in self.results]


def contents_of(result: PlanResult) -> dict[str, str]:
    """Subtasks of each operator on all machines of each type."""
    numbers: dict[str, Counter[str]] = {offer: Counter() for offer in result.machines}
    for operator, places in result.subtasks().items():
        for machine, number in places.items():
            offer = offer_of(machine, result.alone)
            numbers[offer][operator] += number
    return {
        offer: ", ".join(f"{operator} {n}" if n > 1 else operator for operator, n in counts.items())
        for offer, counts in numbers.items()
    }


def _likely(result: PlanResult) -> str:
    """Interval of the carried rate, as the end of a sentence."""
    interval, errors = result.interval, result.errors
    if interval is None or errors is None:
        return ""
    return (
        f" by the model; with {errors.words} it carries {digits(interval.low)} to "
        f"{digits(interval.high)}, and at least {digits(errors.at_least(result.carries))}"
    )


def _likely_json(result: PlanResult) -> dict[str, Any]:
    """Interval, confidence and reserves of a plan for a graph that was measured."""
    interval, errors = result.interval, result.errors
    if interval is None or errors is None:
        return {}
    return {
        "interval": interval._asdict(),
        "at_least": result.at_least,
        "errors": errors.to_json(),
        "reserves": dict(result.reserves),
        "bound_of": "the lower end of the prediction",
    }


def _reserve(result: PlanResult) -> Iterator[str]:
    """Multiple of the rate that the plan of a measured graph is made for, with its purposes."""
    factors = result.reserves
    if result.errors is not None and factors:
        parts = ", times ".join(f"{factor:.3g} for {what}" for what, factor in factors.items())
        yield f"The plan is for {prod(factors.values()):.3g} times the rate: {parts}."


def _survival(result: PlanResult) -> Iterator[str]:
    """Share that is carried after the loss of a machine, and the machine whose loss costs most."""
    if not result.losses:
        return
    worst = result.losses[0]
    if worst.relative_throughput >= 1:
        yield "Without any one machine, the others carry all of the rate."
        return
    whole = "the rate and the headroom" if result.headroom else "the rate"
    yield (
        f"{worst.device} is the one whose loss costs most: {worst.carried} of {whole} is carried "
        "when only its subtasks move."
    )


def _survival_json(result: PlanResult) -> dict[str, Any]:
    if not result.losses:
        return {}
    worst = result.losses[0]
    return {
        "survives": min(1.0, worst.relative_throughput),
        "worst_loss": worst.device,
        "losses": [asdict(loss) for loss in result.losses],
    }


def _proof(result: PlanResult) -> str:
    """Sentence on the bound of the cost of all plans, and on the gap."""
    plans = "No plan"
    if result.errors is not None:
        plans += " that carries the rate at the lower end of its prediction"
    if result.survives:
        plans += f" that survives {percent(result.survives)}"
    less, least = ("costs less", "cheapest") if result.priced else ("needs fewer", "fewest")
    if result.is_cheapest:
        return f"{plans} {less}."
    above = gap_in_words(result.gap) if result.bound else f"{result.cost:g}"
    return (
        f"{plans} {less} than {floor_digits(result.bound)}; this one is at most "
        f"{above} above the {least}."
    )


def gap_in_words(gap: float) -> str:
    """Gap as a percentage, rounded up.

    >>> gap_in_words(0.0), gap_in_words(0.0001)
    ('0.0 %', '0.1 %')
    """
    if not isfinite(gap):
        return "–"
    return percent(ceil(1000 * gap * (1 - 1e-12)) / 1000)


def _hours(plan: PlanResult) -> Iterator[Part]:
    """Table of the hours, and their total cost beside that of the plan for all hours."""
    hours = plan.hours
    is_measured = any(hour.interval is not None for hour in hours)
    rows = tuple(
        (
            moment(hour.start),
            f"{hour.rate:g}",
            "–" if hour.cost is None else f"{hour.cost:g}",
            "–" if hour.bound is None else floor_digits(hour.bound),
            _machines_of(hour),
            *((ends_in_words(hour.interval),) if is_measured else ()),
        )
        for hour in hours
    )
    alone_head = "cost alone" if plan.priced else "machines alone"
    carries = ("carries, tuples/s",) if is_measured else ()
    table = Sheet(("hour", "tuples/s", alone_head, "bound", "machines", *carries), rows)
    yield table if len(rows) <= MAX_ROWS else Detail(table)
    alone = sum(hour.cost for hour in hours if hour.cost is not None)
    unit = "costs" if plan.priced else "takes machine hours:"
    words = (
        f"In {counted(len(hours), 'hour')}, the plan {unit} {plan.cost * len(hours):g}. Plans for "
        f"each hour alone would add up to {alone:g}, without the cost of changes."
    )
    unknown = sum(hour.cost is None for hour in hours)
    if unknown:
        words += f" No plan was found for {counted(unknown, 'hour')}, which the sum leaves out."
    missed = sum(not hour.carried for hour in hours)
    if missed:
        words += f" The plan does not carry the largest rates of {counted(missed, 'hour')}."
    yield words


def _machines_of(hour: PlanHour) -> str:
    if hour.cost is None:
        return "no plan was found"
    return machines_in_words(hour.machines) if hour.carried else "more than the plan carries"


def ends_in_words(interval: RateInterval | None) -> str:
    """Ends of an interval, in words; a dash if it is unknown."""
    return "–" if interval is None else interval.ends


def machines_in_words(machines: Mapping[str, int]) -> str:
    """Number of machines of each type, in words.

    >>> machines_in_words({"small": 2, "large": 1})
    '2 small, 1 large'
    """
    return ", ".join(f"{count} {name}" for name, count in machines.items())


def moment(seconds: float) -> str:
    """Time in words, to the minute: in the time of the trace, or a date.

    >>> moment(5700), moment(90000), moment(1772323260)
    ('1:35', '1 d 1:00', '2026-03-01 00:01')
    """
    if seconds >= EARLIEST_DATE:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
    days, rest = divmod(int(seconds), DAY)
    text = f"{rest // HOUR}:{rest % HOUR // 60:02d}"
    return f"{days} d {text}" if days else text


def _cpu_use(plan: PlanResult) -> Floats:
    """CPU use of each machine by operator, with streams in the last column, [D, N + 1]."""
    from streamsim import resource_loads

    expansion = expand(plan.graph)
    instance = Problem(expansion.graph, plan.cluster, known=plan.placement).instance
    place = plan.placement.index
    device_load = resource_loads(instance, place).devices
    load = instance.full_load[np.arange(len(place)), instance.device_type[place]]
    use = np.zeros((len(plan.cluster.devices), plan.graph.n_operators + 1))
    np.add.at(use, (place, expansion.operator), load)
    use[:, -1] = np.maximum(0.0, device_load - use.sum(axis=1))
    return use


def _draw_hours(axis: "Axes", plan: PlanResult) -> None:
    """Draw the cost of each hour alone, and of the plan."""
    from streamplace.drawing.figures import PALETTE

    hours = plan.hours
    at = np.array([(hour.start - hours[0].start) / HOUR for hour in hours])
    cost = [np.nan if hour.cost is None else hour.cost for hour in hours]
    bound = [np.nan if hour.bound is None else float(hour.bound) for hour in hours]
    axis.bar(
        at, cost, width=1.0, align="edge", color=PALETTE[0], alpha=0.35, label="each hour alone"
    )
    axis.hlines(bound, at, at + 1, color=PALETTE[1], linewidth=1.4, label="its proven bound")
    axis.axhline(plan.cost, color=PALETTE[0], linewidth=1.6, label="the plan")
    axis.set(xlabel="hours", ylabel=plan.cost_unit, ylim=(0, 1.08 * np.nanmax([plan.cost, *cost])))
