"""Result of ``plan``: machines, parallelism, placement, cost, bound, and the limiting resource."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, isfinite, prod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.io.clusters import cluster_text
from streamplace.io.fields import plain
from streamplace.io.files import json_text, make_folder, write_texts
from streamplace.io.graphs import graph_to_dict
from streamplace.io.placements import prediction_facts
from streamplace.model.cluster import Cluster
from streamplace.model.display import WIDEST, Pictured
from streamplace.model.graph import StreamGraph
from streamplace.model.intervals import PredictionErrors, RateInterval
from streamplace.model.messages import counted, shown
from streamplace.model.placement import Placement
from streamplace.model.report import Bar, Brief, Detail, Part, Report, Sheet, percent, some
from streamplace.model.units import digits, floor_digits
from streamplace.planning.hours import PlanHour, hour_parts
from streamplace.planning.subtasks import PlanSlots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 6
"""Rows of machines on a terminal without ``-v``."""
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
    """The resource that is full first if the rate grows.

    Attributes
    ----------
    resource
        "cpu", "core", "max_rate", "memory", "egress", "ingress", "slots" or "link".
    machine
        Name of the machine; of a link, its two machines.
    operator
        The operator that uses most of it; of a link, the stream.
    use
        Share of the resource in use.
    """

    resource: str
    machine: str
    operator: str
    use: float


@dataclass(frozen=True, slots=True, eq=False)
class PlanResult(Pictured):
    """Machines that carry a rate, the subtasks on them, and a lower bound of the cost.

    Attributes
    ----------
    graph
        The graph at its rate and the planned parallelisms.
    rate
        Tuples/s of all sources.
    headroom
        Share h, errors of predictions included: the plan is for 1 / (1 − h) times that rate.
    cost
        Price per hour of all machines; their number if they are those of a cluster.
    bound
        Lower bound of the cost of every plan, an exact fraction. If ``errors`` are known, it holds
        for plans that carry the rate at the lower end of their predictions; a plan that carries it
        only by the prediction itself may cost less.
    bounds
        Bounds of the relaxations, from the cheapest to the strongest.
    machines
        Number of machines of each type.
    parallelism
        Number of subtasks of each operator.
    cluster
        The machines, named after their offers.
    placement
        Machine of every subtask.
    limit
        The resource that is full first if the rate grows.
    free
        Free share of each resource, over all machines that limit it.
    carries
        Rate at which the first resource is full, with this placement and without headroom; infinite
        if no resource that grows with the rate is used. If a join is behind a window, it is at most
        the rate up to which its inputs are equal.
    slots
        The slots that the subtasks need.
    seed
        Seed of the search.
    priced
        Whether machines have prices; else the cost is their number.
    prices
        Price per hour of a machine of each type; none where machines have no prices.
    hours
        Plans that the hours of a trace would need alone; none if the plan is for one rate.
    errors
        Errors of predictions for the graph; None if it was not measured.
    reserves
        Multiples of the rate that the plan is made for, by purpose.
    notes
        What a reader of the graph would not expect of the plan.
    """

    graph: StreamGraph
    rate: float
    headroom: float
    cost: float
    bound: Fraction
    bounds: Mapping[str, Fraction]
    machines: Mapping[str, int]
    parallelism: Mapping[str, int]
    cluster: Cluster
    placement: Placement
    limit: PlanLimit
    free: Mapping[str, float]
    carries: float
    slots: PlanSlots
    seed: int
    priced: bool = True
    prices: Mapping[str, float] = field(default_factory=dict)
    hours: tuple[PlanHour, ...] = ()
    errors: PredictionErrors | None = None
    reserves: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        machines = ", ".join(f"{count} {name}" for name, count in self.machines.items())
        unit = " per hour" if self.priced else ""
        text = f"PlanResult {self.cost:g}{unit} (bound {floor_digits(self.bound)}): {machines}"
        return shown(f"<{text}>", WIDEST)

    @property
    def gap(self) -> float:
        """Share by which the cost is above the bound; 0 for a cheapest plan."""
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
        each = (Fraction(repr(self.prices[name])) * n for name, n in self.machines.items())
        return sum(each, Fraction(0))

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
        from streamplace.model.expansion import expand

        return expand(self.graph).fold_names(self.placement)

    def report(self) -> Report:
        """Report machines and their subtasks, cost and bound, and the limiting resource."""
        used = {name: 1 - share for name, share in self.free.items()}
        resources = tuple((name, Bar(use), percent(use)) for name, use in used.items())
        number = sum(self.machines.values())
        parts: list[Part] = [
            *self._machines(),
            Brief(f"Subtasks: {some(self._numbers(), separator=', ')}."),
            f"{digits(self.rate, 6)} tuples/s {self._costs()} {counted(number, 'machine')}. "
            f"{_proof(self)}",
            f"The placement carries {_rate(self.carries)}{_likely(self)}. {_limit(self.limit)}",
            *_reserve(self),
            *self.notes,
            Detail(Sheet(("machines", "subtasks on them"), tuple(contents_of(self).items()))),
            Detail(Sheet(("resource", "", "in use"), resources)),
            Detail(str(self.slots)),
        ]
        if self.hours:
            parts += hour_parts(self.hours, self.cost, self.priced)
        return Report(tuple(parts), subject=self)

    def _machines(self) -> Iterator[Part]:
        """Tables of the machines: one for the terminal, and the others as a detail."""
        priced = self.priced and bool(self.prices)
        head = ("machines", "number", "slots of each", *(("per hour",) if priced else ()))
        rows = tuple(
            (
                name,
                str(count),
                str(self.slots.machines[name]),
                *((f"{count * self.prices[name]:g}",) if priced else ()),
            )
            for name, count in self.machines.items()
        )
        if len(rows) <= MOST_ROWS:
            yield Sheet(head, rows)
            return
        more = (f"… and {len(rows) - MOST_ROWS + 1} more", *[""] * (len(head) - 1))
        yield Brief(Sheet(head, (*rows[: MOST_ROWS - 1], more)))
        yield Detail(Sheet(head, rows))

    def _numbers(self) -> list[str]:
        """Numbers of subtasks by operator, the largest first; operators with one come last."""
        several = {name: p for name, p in self.parallelism.items() if p > 1}
        ordered = sorted(several, key=lambda name: -several[name])
        single = [name for name in self.parallelism if name not in several]
        if several and len(single) > 1:
            return [*(f"{name} {several[name]}" for name in ordered), "and 1 of every other"]
        return [*(f"{name} {several[name]}" for name in ordered), *single]

    def figure(self) -> "Figure":
        """Draw the machines and the subtasks on them."""
        from streamplace.planning.pictures import PlanPicture, draw_machines

        unit = "cost per hour" if self.priced else "machines"
        machines = counted(sum(self.machines.values()), "machine")
        cost = f"{self.cost:g} per hour, " if self.priced else ""
        title = f"{digits(self.rate, 6)} tuples/s: {cost}{machines}"
        whole = (self.graph, self.cluster, self.placement)
        return draw_machines(PlanPicture(*whole, title, self.hours, self.cost, unit))

    def _costs(self) -> str:
        return f"cost {self.cost:g} per hour on" if self.priced else "need"

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

    def write(self, folder: str | PathLike[str]) -> None:
        """Write the files of the plan into a folder, all or none, or the report alone (.html)."""
        if Path(folder).suffix == ".html":
            self.report().save(folder)
            return
        make_folder(Path(folder))
        write_texts({Path(folder) / name: text for name, text in self.files().items()})

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON document."""
        return {
            "graph": self.graph.name,
            "rate": plain(self.rate),
            "headroom": self.headroom,
            "cost": plain(self.cost),
            "bound": float(self.bound),
            "bound_exact": str(self.bound),
            "gap": self.gap,
            "cheapest": self.is_cheapest,
            "bounds": {name: float(bound) for name, bound in self.bounds.items()},
            "machines": dict(self.machines),
            "parallelism": dict(self.parallelism),
            "subtasks": self.subtasks(),
            "limit": {
                "resource": self.limit.resource,
                "machine": self.limit.machine,
                "operator": self.limit.operator,
                "use": self.limit.use,
            },
            "free": dict(self.free),
            "carries": self.carries if isfinite(self.carries) else None,
            **_likely_json(self),
            "slots": self.slots.to_json(),
            **({"hours": [hour.to_json() for hour in self.hours]} if self.hours else {}),
            "seed": self.seed,
        }


def _rate(rate: float) -> str:
    return f"{digits(rate, 6)} tuples/s" if isfinite(rate) else "any rate"


def contents_of(result: PlanResult) -> dict[str, str]:
    """Subtasks of each operator on all machines of each type."""
    numbers: dict[str, Counter[str]] = {offer: Counter() for offer in result.machines}
    for operator, places in result.subtasks().items():
        for machine, number in places.items():
            offer = machine.rpartition("-")[0] if result.priced else machine
            numbers[offer][operator] += number
    return {
        offer: ", ".join(f"{operator} {n}" if n > 1 else operator for operator, n in there.items())
        for offer, there in numbers.items()
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


def _proof(result: PlanResult) -> str:
    """Bound of the cost of all plans, or of those that carry the rate with confidence."""
    plans = "No plan"
    if result.errors is not None:
        plans += " that carries the rate at the lower end of its prediction"
    if result.is_cheapest:
        return f"{plans} costs less."
    return (
        f"{plans} costs less than {floor_digits(result.bound)}; this one is at most "
        f"{gap_in_words(result.gap)} above the cheapest."
    )


def gap_in_words(gap: float) -> str:
    """Percentage that is not below a gap, but for errors of rounding.

    >>> gap_in_words(0.0), gap_in_words(0.0001)
    ('0.0 %', '0.1 %')
    """
    return percent(ceil(1000 * gap * (1 - 1e-12)) / 1000)


def _limit(limit: PlanLimit) -> str:
    where = WORDS[limit.resource].format(machine=limit.machine, operator=limit.operator)
    return f"What limits is {where} ({percent(limit.use)} in use)."
