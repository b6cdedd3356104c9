"""Settings of ``plan``: for a rate, a range of rates, or rates over time."""

from collections.abc import Callable, Iterable, Mapping
from math import inf
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Interval
from pydantic import BeforeValidator

from streamplace.errors import SettingError
from streamplace.model.defaults import PLAN_SECONDS
from streamplace.settings.convert import (
    Cluster,
    ClusterFile,
    Count,
    SearchBudget,
    Seconds,
    Share,
    Texts,
    in_tuple,
)
from streamplace.settings.option import HOW_LONG, WHERE, file_key, option
from streamplace.settings.searches import OfMeasuredGraph, SearchLimits
from streamplace.settings.shared import UnderRules, WhatIfs

if TYPE_CHECKING:
    from streamplace.control.policy import MakePolicy
    from streamplace.control.problem import MoveTerms
    from streamplace.planning.offers import Catalogue
    from streamplace.planning.problem import PlannerSettings
    from streamplace.planning.traces import RateTrace
else:  # not imported for the help; what converts a value checks its type
    Catalogue = MoveTerms = RateTrace = Any
    MakePolicy = Callable[..., Any]

HIGHEST_RATE = "max"
"""Rate of a plan for the most that the machines can carry."""
POINTS = 9
"""Number of rates of a frontier."""


def rates_of(value: Any) -> tuple[float, ...]:
    """One rate, nine of a range, or an infinite one for "max".

    >>> rates_of("50 k/s"), len(rates_of("20000..80000")), rates_of("max")
    ((50000.0,), 9, (inf,))
    """
    from streamplace.model.units import tuple_rate

    if value == HIGHEST_RATE:
        return (inf,)
    ends = value.split("..", 1) if isinstance(value, str) else [value]
    rates = [tuple_rate(end) for end in ends if end != ""]
    if len(rates) < len(ends) or rates[0] <= 0 or (len(rates) > 1 and rates[0] >= rates[1]):
        raise ValueError(
            "it must be above 0, or a range from a lower to a higher rate, as in 20000..80000"
        )
    if len(rates) == 1:
        return (rates[0],)
    low, high = rates
    return tuple(low + (high - low) * i / (POINTS - 1) for i in range(POINTS))


def _trace(value: Any) -> "RateTrace":
    from streamplace.planning.traces import RateTrace, read_trace, trace_of

    if isinstance(value, RateTrace):
        return value
    if isinstance(value, str | PathLike):
        return read_trace(Path(value))
    if isinstance(value, Mapping):
        return trace_of(value)
    raise ValueError("it must be a RateTrace, the columns of a CSV file with rates, or its path")


def _offers(value: Any) -> "Catalogue":
    from streamplace.planning.offers import Catalogue, Offer, offers_from_tables, read_offers

    if isinstance(value, Catalogue):
        return value
    if isinstance(value, str | PathLike):
        return read_offers(Path(value))
    if isinstance(value, Mapping):
        return offers_from_tables(value)
    listed = list(value) if isinstance(value, Iterable) else [value]
    if all(isinstance(offer, Offer) for offer in listed):
        return Catalogue.of(listed)
    raise ValueError("it must be a list of Offer, the tables of an offers file, or its path")


def _operators(value: Any) -> Any:
    return frozenset([value]) if isinstance(value, str) else value


def _policies(value: Any) -> Any:
    """Names and makers of policies; of all that are registered for the name ``"all"``."""
    from streamplace.control.policy import POLICIES

    if not isinstance(value, Iterable):
        return value
    chosen: list[Any] = []
    for policy in in_tuple(value):
        names = POLICIES if policy == "all" else [policy]
        pairs = [(name, POLICIES[name]) for name in names] if isinstance(policy, str) else [policy]
        chosen += [pair for pair in pairs if pair not in chosen]
    return chosen


def _terms(value: Any) -> "MoveTerms | None":
    from streamplace.control.problem import MoveTerms

    if value is None or isinstance(value, MoveTerms):
        return value
    raise ValueError("it must be MoveTerms")


def _policy_names() -> Iterable[str]:
    from streamplace.control.policy import POLICIES

    return (*POLICIES, "all")


Headroom = Annotated[Share, Interval(ge=0, lt=1)]


def headroom_option(default: float) -> Any:
    """Option for the part of the machines that a plan does not use."""
    return option(
        "--headroom SHARE",
        "Share h of CPU and network cards that stays free: the plan is for 1 / (1 − h) times the "
        "rate.",
        default=default,
    )


OffersFile = Annotated[Catalogue, BeforeValidator(_offers)]
OFFERS: OffersFile | None = option(
    "--offers FILE", "TOML file with the types of machines and their prices.", WHERE
)
OWN_MACHINES: ClusterFile = option(
    "--cluster FILE",
    "Cluster file (TOML) of the machines that you have. The plan uses as few of them as possible.",
    WHERE,
)


class PlanSettings(WhatIfs, UnderRules, SearchLimits, OfMeasuredGraph, validate_default=True):
    """What is planned, for which rates, with which machines."""

    rate: Annotated[tuple[float, ...], BeforeValidator(rates_of)] | None = option(
        "--rate RATE",
        "Total rate of the sources in tuples/s, such as 50000 or '50 k/s', a range such as "
        "20000..80000, or max for the highest rate that the machines carry.  [default: that of "
        "GRAPH]",
    )
    trace: Annotated[RateTrace, BeforeValidator(_trace)] | None = option(
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
    policies: Annotated[tuple[tuple[str, MakePolicy], ...], BeforeValidator(_policies)] = option(
        "--policy NAME…",
        "Also replay this policy, which does not know the rates to come, with --schedule. May be "
        "repeated.",
        key="policy",
        choices=_policy_names,
    )
    slot: Seconds = file_key("TIME", "Time between two decisions.", default="5 min")
    terms: Annotated[MoveTerms | None, BeforeValidator(_terms)] = None
    move_price: Seconds = file_key(
        "TIME", "Price of a move, as time of running both plans.", default=1800.0
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
        "Keep the parallelism of this operator, as of one whose program sets it. May be repeated.",
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

    def check(self) -> None:
        """Refuse settings without effect, and two words for the same."""
        super().check()
        for field, other in (("rate", "trace"), ("offers", "cluster"), ("quantile", "schedule")):
            self.exclude(field, other)
        self.need("trace", "quantile", "schedule")
        self.need("schedule", "policies", "slot", "terms", "move_price", "lag", "restart")

    def machines(self) -> Catalogue | Cluster:
        """Offers, or the machines that there are."""
        machines = self.cluster if self.offers is None else self.offers
        if machines is None:
            needed = f"{self.name('offers')} or {self.name('cluster')}"
            raise SettingError(f"a plan needs machines; give {needed}")
        return machines

    def moves(self) -> MoveTerms:
        """What a move takes."""
        from streamplace.control.problem import MoveTerms

        if self.terms is not None:
            return self.terms
        return MoveTerms(self.move_price, interruption=self.restart, lag=self.lag)

    def of_plans(self) -> "PlannerSettings":
        """Settings of each plan, but for the errors of predictions for the graph."""
        from streamplace.planning.problem import PLAN_BUDGET, PlannerSettings

        return PlannerSettings(
            self.headroom,
            self.keep_parallelism or frozenset(self.keep),
            self.seed,
            self.limits() or PLAN_BUDGET,
            constraints=self.constraints,
        )
