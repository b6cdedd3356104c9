"""``plan``: machines for a rate, for several of them, and for rates over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Interval
from pydantic import BeforeValidator, PrivateAttr

from streamplace.errors import SettingError
from streamplace.io.suffixes import PICTURES
from streamplace.model.defaults import PLAN_SECONDS
from streamplace.model.paths import FilePath
from streamplace.settings.convert import (
    BudgetLike,
    ClusterFile,
    Constraints,
    Count,
    SearchBudget,
    Seconds,
    Share,
    Texts,
    converted_by,
)
from streamplace.settings.option import HOW_LONG, argument, file_key, option, output
from streamplace.settings.plan import OFFERS, OWN_MACHINES, Headroom, OffersFile, headroom_option
from streamplace.settings.searches import MeasuredGraphOptions, SearchOptions
from streamplace.settings.shared import ChangeOptions, ConditionOptions, ConstraintOptions
from streamplace.settings.verb import SILENT, Progress, Verb

if TYPE_CHECKING:
    from streamplace.control.policy import MakePolicy
    from streamplace.control.problem import MoveTerms
    from streamplace.control.schedule import PlanSchedule
    from streamplace.evaluate.plans import Planner
    from streamplace.io.given import ClusterLike, ConstraintsLike, GraphLike
    from streamplace.model.graph import StreamGraph
    from streamplace.model.units import Quantity
    from streamplace.planning.offers import Catalogue, Offer
    from streamplace.planning.result import PlanCurve, PlanResult
    from streamplace.planning.traces import RateTrace

    OffersLike = Catalogue | Iterable[Offer | Mapping[str, Any]] | Mapping[str, Any] | FilePath
    TraceLike = RateTrace | Mapping[str, Sequence[Quantity]] | FilePath
else:  # not imported for the help; conversions check the types
    MoveTerms = RateTrace = Any
    MakePolicy = Callable[..., Any]


PlanRates = Annotated[tuple[float, ...], converted_by("streamplace.planning.traces:rates_of")]
Trace = Annotated[RateTrace, converted_by("streamplace.planning.traces:trace_of")]
Policies = Annotated[
    tuple[tuple[str, MakePolicy], ...], converted_by("streamplace.control.policy:policies_of")
]


def _operators(value: Any) -> Any:
    return frozenset([value]) if isinstance(value, str) else value


def _terms(value: Any) -> MoveTerms | None:
    from streamplace.control.problem import MoveTerms

    if value is None or isinstance(value, MoveTerms):
        return value
    raise ValueError("it must be MoveTerms")


def _policy_names() -> Iterable[str]:
    from streamplace.control.policy import POLICIES

    return (*POLICIES, "all")


class Plan(
    ChangeOptions,
    ConstraintOptions,
    ConditionOptions,
    SearchOptions,
    MeasuredGraphOptions,
    Verb,
    validate_default=True,
):
    """Plan the machines for GRAPH at a rate: which, how many, and what runs on them.

    The plan says how many subtasks each operator has and where they run, what it costs per hour,
    and a proven bound: no plan costs less. A range of rates gives cost against rate. A graph that
    'flink profile' has measured carries the rate even at the lower end of its prediction.
    """

    graph: Any = argument()
    rate: PlanRates | None = option(
        "--rate RATE",
        "Total rate of the sources in tuples/s, such as 50000 or '50 k/s', a range such as "
        "20000..80000, or max for the highest rate that the machines carry.  [default: that of "
        "GRAPH]",
    )
    trace: Trace | None = option(
        "--trace FILE",
        "CSV file with rates over time: a column 'time' (seconds or dates), and 'rate' or a "
        "column for each source. The plan carries their peaks, and every hour is planned alone, "
        "too.",
    )
    quantile: Annotated[Share, Interval(gt=0, le=1)] = option(
        "--quantile SHARE",
        "Quantile of the rates of --trace that the plan carries, for each source; 1 is the peak.",
        default=1.0,
    )
    schedule: bool = option(
        "--schedule",
        "Find the cheapest sequence of plans for --trace, and a bound for every controller.",
    )
    policies: Policies = option(
        "--policy NAME…",
        "Also replay this policy, which does not know the rates to come, with --schedule. May be "
        "repeated.",
        key="policy",
        choices=_policy_names,
    )
    slot: Seconds = file_key("TIME", "Time between two decisions.", default="5 min")
    terms: Annotated[MoveTerms | None, BeforeValidator(_terms)] = None
    move_price: Seconds = file_key(
        "TIME", "Price of a move, as time of running the mean of both plans.", default=1800.0
    )
    lag: Seconds = file_key("TIME", "Time by which tuples may be late.", default=60.0)
    restart: Seconds = file_key("TIME", "Time for which a move stops the job.", default=5.0)
    offers: OffersFile | None = OFFERS
    cluster: ClusterFile = OWN_MACHINES
    headroom: Headroom = headroom_option(0.0)
    keep_parallelism: Annotated[bool | frozenset[str], BeforeValidator(_operators)] = option(
        "--keep-parallelism",
        "Keep the parallelism of every operator of GRAPH; plan only machines and placement.",
    )
    keep: Texts = option(
        "--keep OPERATOR…",
        "Keep the parallelism of this operator, for example one that its program sets. May be "
        "repeated.",
    )
    budget: SearchBudget = option(
        "--budget TIME",
        "Time for each plan in seconds, or with a unit, as in '1 min'.  [default: "
        f"{PLAN_SECONDS:g}; no limit where --evaluations is given]",
        HOW_LONG,
    )
    jobs: Count | None = file_key(
        "N", "Number of processes that plan, by default one per core for many."
    )
    out: Path | None = output(
        "Folder for plan.json, graph.json, cluster.toml, placement.json, plan.svg and report.html, "
        "or the report alone (.html); for a range, its plot (.svg, .png, .pdf) or the report; for "
        "a schedule, a folder.",
        folder=None,
    )

    _rules: Constraints | None = PrivateAttr(default=None)  # constraints of a problem

    def check(self) -> None:
        """Refuse settings without effect, and settings that exclude each other."""
        super().check()
        for field, other in (("rate", "trace"), ("offers", "cluster"), ("quantile", "schedule")):
            self.exclude(field, other)
        self.need("trace", "quantile", "schedule")
        self.need("schedule", "policies", "slot", "terms", "move_price", "lag", "restart")

    def run(self, progress: Progress = SILENT) -> PlanResult | PlanCurve | PlanSchedule:
        """Plan for a schedule, for several rates, or for one."""
        from streamplace.model.message_text import grouped_notes
        from streamplace.model.profile_trust import cpu_origins

        rates = self.rate or ()
        self._check_output(progress, is_curve=len(rates) > 1)
        graph = self.read(progress)
        answer: PlanResult | PlanCurve | PlanSchedule
        each = ", with the budget for each plan" if self.trace or len(rates) > 1 else ""
        with progress.waiting(f"planning {graph.name}{each}"):
            if self.schedule:
                answer = self.scheduled(graph)
            elif len(rates) > 1:
                answer = self.frontier(graph, rates)
            else:
                answer = self.single(graph)
                progress.suggest(self._next_step())
        for note in grouped_notes(cpu_origins(graph)):
            progress.say(note)
        return answer

    def read(self, progress: Progress = SILENT) -> StreamGraph:
        """Read the graph; refuse one that contradicts its measurement, unless it is trusted."""
        from streamplace.api.arguments import check_profile
        from streamplace.io.given import planned_graph
        from streamplace.model.what_if import changed_graph

        original, self._rules = planned_graph(self.graph)
        if self._rules is not None:
            self.refuse("constraints", "are given beside those of the problem; drop one")
        graph = changed_graph(original, **self.changes())
        check_profile(graph, progress, trusts=self.trust_profile)
        return graph

    def single(self, graph: StreamGraph) -> PlanResult:
        """Plan for the trace, or for one rate: as set, the highest, or that of the graph."""
        from streamplace.planning.planner import planned_most
        from streamplace.planning.traces import planned_for_trace

        planner, rates = self._planner(graph), self.rate or ()
        if len(rates) > 1:
            raise SettingError("a plan has one rate; plan_frontier plans for several")
        if self.trace is not None:
            return planned_for_trace(graph, self.trace, self.quantile, planner, planner.each_if_any)
        if rates == (inf,):
            return _noted(graph, planned_most(graph, planner.machines, planner.settings))
        return _noted(graph, planner(graph.at_rate(*rates))) if rates else planner(graph)

    def frontier(self, graph: StreamGraph, rates: Iterable[float]) -> PlanCurve:
        """Plan for several rates."""
        from streamplace.planning.result import PlanCurve

        values = sorted(set(rates))
        if not values:
            raise SettingError("there are no rates; give at least one")
        results = self._planner(graph).each(map(graph.at_rate, values))
        return PlanCurve(tuple(values), tuple(_noted(graph, result) for result in results))

    def scheduled(self, graph: StreamGraph) -> PlanSchedule:
        """Find the cheapest sequence of plans for a trace, and replay policies against it."""
        from streamplace.control.problem import MoveTerms, control_day
        from streamplace.control.replay import replay
        from streamplace.control.schedule import PlanSchedule, cheapest_levels, lower_bound

        assert self.trace is not None  # `check` refuses a schedule without a trace
        terms = self.terms or MoveTerms(self.move_price, interruption=self.restart, lag=self.lag)
        planner = self._planner(graph)
        day = control_day(graph, self.trace, self.slot, terms, planner.each, planner.bound)
        replays = tuple(replay(day, name, make) for name, make in self.policies)
        return PlanSchedule(day, cheapest_levels(day), lower_bound(day), replays)

    def _planner(self, graph: StreamGraph) -> Planner:
        """Planner for the machines, with the prediction errors of the graph."""
        from streamplace.evaluate.plans import Planner
        from streamplace.io.ledger import errors_for
        from streamplace.planning.problem import PLAN_BUDGET, PlannerSettings

        machines = self.cluster if self.offers is None else self.offers
        if machines is None:
            needed = f"{self.name('offers')} or {self.name('cluster')}"
            raise SettingError(f"a plan needs machines; give {needed}")
        settings = self.part(
            PlannerSettings,
            constraints=self.constraints or self._rules,
            keep_parallelism=self.keep_parallelism or frozenset(self.keep),
            survives=self._survives(),
            budget=self.limits() or PLAN_BUDGET,
            errors=errors_for(graph, self.confidence),
        )
        return Planner(machines, settings, self.jobs)

    def _survives(self) -> float:
        """Share of the rate that must survive any loss, from the conditions."""
        from streamplace.objectives.conditions import read_condition

        share, called = 0.0, self.name("require")
        for condition in map(read_condition, self.require):
            if condition.objective.name != "survives" or condition.sense != "max":
                raise SettingError(
                    f"{called} {condition.text}: a plan carries the whole rate, and may only be "
                    f"required to survive a loss, as in {called} 'survives>=0.9'"
                )
            if not 0 <= condition.limit <= 1:
                raise SettingError(f"{called} {condition.text}: give a share from 0 to 1")
            share = max(share, condition.limit)
        return share

    def _check_output(self, progress: Progress, *, is_curve: bool) -> None:
        """Raise an error for an output that cannot be written, before any planning."""
        from streamplace.control.schedule import FILES as SCHEDULE_FILES
        from streamplace.io.files import check_suffix
        from streamplace.planning.result import FILES

        if self.out is None:
            return
        is_page = self.out.suffix == ".html"
        if is_page and self.schedule:
            raise SettingError(f"-o {self.out}: a schedule is written into a folder; name a folder")
        progress.check_kind(self.out, is_folder=not (is_curve or is_page))
        if is_curve and not is_page:
            check_suffix(self.out, "the figure", *PICTURES, ".html")
        elif not is_page:
            files = [self.out / name for name in {*FILES, *SCHEDULE_FILES}]
            files += [path for name in FILES for path in self.out.glob(f"plan-*/{name}")]
            progress.spare_inputs(*files)
            progress.spare_others(*files)

    def _next_step(self) -> str:
        """Suggestion for the next command."""
        if self.out is None or self.out.suffix == ".html":
            return "Next: -o plan writes the files for simulate and export."
        files = f"{quote(str(self.out / 'placement.json'))} --cluster {quote(str(self.out))}"
        return f"Next: streamplace export {files}/cluster.toml --to flink -o flink"


def _noted(graph: StreamGraph, result: PlanResult) -> PlanResult:
    """Plan with a note if its rate is far beyond the measured one."""
    from streamplace.model.profile_trust import extrapolation

    far = extrapolation(graph, result.rate)
    return result if far is None else replace(result, notes=(*result.notes, f"Note: {far}."))


def plan(
    graph: GraphLike,
    *,
    rate: Quantity | None = None,
    trace: TraceLike | None = None,
    quantile: float = 1.0,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    constraints: ConstraintsLike | None = None,
    require: str | Iterable[str] = (),
    headroom: float = 0.0,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    trust_profile: bool = False,
    seed: int = 0,
    budget: BudgetLike | None = None,
    jobs: int | None = None,
) -> PlanResult:
    """Find the cheapest machines, parallelism and placement that carry a rate.

    Parameters
    ----------
    graph
        A graph, a problem, whose constraints count, or the path of a file with one.
    rate
        Tuples/s of all sources; by default the rate of the graph. ``"max"`` is the highest rate
        for which a plan on the machines is found.
    trace
        Rates over time instead, or the path of a CSV file with them. The result then has
        ``hours``: separate plans for each hour.
    quantile
        Quantile of each source's rates that the plan carries; with 1, the peaks, it carries the
        complete trace.
    offers
        Types of machines with prices, dictionaries of them, or the path of a TOML file.
    cluster
        Available machines, instead of offers; the plan uses the cheapest of them or, if they have
        no prices, as few as possible.
    constraints
        Rules for the machines of operators. A machine is called as its offer if there is one only,
        else ``small-0``, ``small-1`` and so on; ``small`` stands for all of these in ``allowed``.
    require
        ``"survives>=0.9"`` for a plan that carries 90 % of the rate, with the headroom, after the
        loss of any one machine.
    headroom
        Share h that stays free of each resource whose use is proportional to the rate: the plan is
        for 1 / (1 − h) times the rate.
    keep_parallelism
        Whether operators keep the parallelism of the graph, so that only machines and placement
        are planned; or the name of an operator that keeps it, or several.
    confidence
        Confidence with which a graph that was measured on a running job carries the rate: the
        plan carries it at the lower end of its prediction. 0.9 by default; 0 plans with the
        prediction itself. Only for such graphs.
    trust_profile
        Whether to use a measured graph whose model is off by more than 30 % for the placement that
        was profiled.
    seed
        Random seed; equal seeds give equal plans, unless the budget ends the search.
    budget
        Time limit of the search, 10 s by default, or a number of moves; for each hour of a
        trace.
    jobs
        Number of processes that plan the hours of a trace; by default one per core if there are
        many hours.

    Examples
    --------
    >>> from streamplace import Offer, Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> result = plan(graph, rate=3e4, offers=[Offer("small", 0.1, cores=4)])
    >>> result.machines, result.cost, float(result.bound)
    ({'small': 2}, 0.2, 0.2)
    """
    request = Plan.of(locals())
    return request.single(request.read())


def plan_frontier(
    graph: GraphLike,
    rates: Sequence[Quantity],
    *,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    constraints: ConstraintsLike | None = None,
    require: str | Iterable[str] = (),
    headroom: float = 0.0,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    trust_profile: bool = False,
    seed: int = 0,
    budget: BudgetLike | None = None,
    jobs: int | None = None,
) -> PlanCurve:
    """Plan for several rates: the frontier of cost against rate, with its bound.

    Parameters
    ----------
    rates
        Tuples/s of all sources.
    graph, offers, cluster, constraints, require, headroom, keep_parallelism, confidence
        As for `plan`.
    trust_profile, seed
        As for `plan`.
    budget, jobs
        As for `plan`, for each of the plans.

    Examples
    --------
    >>> from streamplace import Offer, Operator, StreamGraph
    >>> graph = StreamGraph.of("alone", [Operator("a", ipt=2e5, rate=1e4)])
    >>> curve = plan_frontier(graph, [1e4, 2e4, 4e4], offers=[Offer("small", 0.1)])
    >>> [result.machines["small"] for result in curve.results]
    [1, 2, 4]
    """
    from streamplace.model.columns import checked_kind
    from streamplace.model.units import tuple_rate

    request = Plan.of(locals())
    return request.frontier(request.read(), map(tuple_rate, checked_kind(rates, Iterable)))


def plan_schedule(
    graph: GraphLike,
    trace: TraceLike,
    *,
    policies: str | Iterable[str | tuple[str, MakePolicy]] = (),
    slot: Quantity = "5 min",
    terms: MoveTerms | None = None,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    constraints: ConstraintsLike | None = None,
    require: str | Iterable[str] = (),
    headroom: float = 0.0,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    trust_profile: bool = False,
    seed: int = 0,
    budget: BudgetLike | None = None,
    jobs: int | None = None,
) -> PlanSchedule:
    """Find the cheapest sequence of plans for rates over time, and replay policies against it.

    Parameters
    ----------
    trace
        Rates over time, or the path of a CSV file with them.
    policies
        Names of registered policies, which do not know the rates to come, or pairs of a name and a
        function from a `PlanChoice` to a policy. ``"all"`` stands for all registered ones.
    slot
        Time between two decisions.
    terms
        Costs of a move, and the time by which tuples may be late.
    graph, offers, cluster, constraints, require, headroom, keep_parallelism, confidence
        As for `plan`.
    trust_profile, seed
        As for `plan`.
    budget, jobs
        As for `plan`, for each of the plans.

    Examples
    --------
    >>> import numpy as np
    >>> from streamplace import Offer, Operator, StreamGraph
    >>> from streamplace.planning.traces import RateTrace
    >>> graph = StreamGraph.of("alone", [Operator("a", ipt=2e5, rate=1e4)])
    >>> day = RateTrace(3600.0 * np.arange(4), ("rate",), 1e4 * np.array([[2], [2], [4], [4.0]]))
    >>> found = plan_schedule(graph, day, slot="1 h", offers=[Offer("small", 0.1)])
    >>> [(step.start / 3600, found.plans[step.level].cost) for step in found.steps]
    [(0.0, 0.2), (2.0, 0.4)]
    """
    request = Plan.of({"schedule": True, **locals()})
    return request.scheduled(request.read())
