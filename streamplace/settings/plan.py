"""Settings of ``plan``: for a rate, a range of rates, or rates over time."""

from collections.abc import Iterable
from math import inf
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from streamplace.errors import SettingError
from streamplace.model.defaults import PLAN_SECONDS
from streamplace.settings.convert import (
    BUDGET,
    CLUSTER,
    COUNT,
    FLAG,
    TEXTS,
    TIME,
    Budget,
    Cluster,
    FieldKind,
    names,
    share,
    texts,
)
from streamplace.settings.option import HOW_LONG, WHERE
from streamplace.settings.shared import OfMeasuredGraph, SearchLimits, WhatIfs

if TYPE_CHECKING:
    from streamplace.control.policy import MakePolicy
    from streamplace.control.problem import MoveTerms
    from streamplace.planning.offers import Catalogue
    from streamplace.planning.problem import PlannerSettings
    from streamplace.planning.traces import RateTrace
else:  # annotations of fields, which are checked by their kinds
    Catalogue = MakePolicy = MoveTerms = RateTrace = object

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
        raise ValueError("above 0, or a range from a lower to a higher rate, as in 20000..80000")
    if len(rates) == 1:
        return (rates[0],)
    low, high = rates
    return tuple(low + (high - low) * i / (POINTS - 1) for i in range(POINTS))


def _trace(value: Any) -> "RateTrace":
    from streamplace.planning.traces import RateTrace, read_trace

    if isinstance(value, RateTrace):
        return value
    if isinstance(value, str | PathLike):
        return read_trace(Path(value))
    raise ValueError("a RateTrace, or the path of a CSV file with rates")


def _offers(value: Any) -> "Catalogue":
    from streamplace.planning.offers import Catalogue, Offer, read_offers

    if isinstance(value, Catalogue):
        return value
    if isinstance(value, str | PathLike):
        return read_offers(Path(value))
    listed = list(value) if isinstance(value, Iterable) else [value]
    if all(isinstance(offer, Offer) for offer in listed):
        return Catalogue.of(listed)
    raise ValueError("a list of Offer, or the path of a file with offers")


Offered = Annotated[
    Catalogue | None,
    FieldKind(_offers, "FILE", "file").option(
        "--offers", "TOML file with the types of machines and their prices.", WHERE
    ),
]
"""What machines may be bought, for every verb that plans."""


def _kept(value: Any) -> bool | frozenset[str]:
    return value if isinstance(value, bool) else frozenset(TEXTS.convert(value))


def _policies(value: Any) -> "tuple[tuple[str, MakePolicy], ...]":
    """Names and makers of policies; of all that are registered for the name ``"all"``."""
    from streamplace.control.policy import POLICIES

    chosen: list[tuple[str, MakePolicy]] = []
    for policy in (value,) if isinstance(value, str) else value:
        names = list(POLICIES) if policy == "all" else [policy]
        made = [(one, POLICIES[one]) if isinstance(one, str) else one for one in names]
        chosen += [one for one in made if one not in chosen]
    return tuple(chosen)


def _terms(value: Any) -> "MoveTerms":
    from streamplace.control.problem import MoveTerms

    if isinstance(value, MoveTerms):
        return value
    raise ValueError("MoveTerms")


def _policy_names() -> Iterable[str]:
    from streamplace.control.policy import POLICIES

    return (*POLICIES, "all")


class PlanSettings(WhatIfs, SearchLimits, OfMeasuredGraph):
    """What is planned, for which rates, with which machines."""

    rate: Annotated[
        tuple[float, ...] | None,
        FieldKind(rates_of, "RATE").option(
            "--rate",
            "Total rate of the sources in tuples/s, such as 50000 or '50 k/s', a range such as "
            "20000..80000, or max for the highest rate that the machines carry.  [default: that of "
            "GRAPH]",
        ),
    ] = None
    trace: Annotated[
        RateTrace | None,
        FieldKind(_trace, "FILE", "file").option(
            "--trace",
            "CSV file with rates over time: a column 'time' (seconds or dates), and 'rate' or a "
            "column for each source. The plan carries their peaks, and every hour is planned "
            "alone, too.",
        ),
    ] = None
    quantile: Annotated[
        float,
        share(zero=False, one=True).option(
            "--quantile",
            "Quantile of the rates of --trace that the plan carries, for each source; 1 is the "
            "peak.",
        ),
    ] = 1.0
    schedule: Annotated[
        bool,
        FLAG.option(
            "--schedule",
            "Find the cheapest sequence of plans for --trace, and a bound for every controller.",
        ),
    ] = False
    policies: Annotated[
        tuple[tuple[str, MakePolicy], ...],
        FieldKind(_policies, names(_policy_names), "several").option(
            "--policy",
            "Also replay this policy, which does not know the rates to come, with --schedule. May "
            "be repeated.",
            key="policy",
        ),
    ] = ()
    slot: Annotated[  # time between two decisions
        float, Field(validate_default=True), TIME.key()
    ] = "5 min"  # type: ignore[assignment]
    terms: Annotated[MoveTerms | None, FieldKind(_terms)] = None
    # Price of a move, as time of running both plans.
    move_price: Annotated[float, TIME.key()] = 1800.0
    lag: Annotated[float, TIME.key()] = 60.0  # time by which tuples may be late
    restart: Annotated[float, TIME.key()] = 5.0  # time for which a move stops the job
    offers: Offered = None
    cluster: Annotated[
        Cluster | None,
        CLUSTER.option(
            "--cluster",
            "Cluster file (TOML) of the machines that you have. The plan uses as few of them as "
            "possible.",
            WHERE,
        ),
    ] = None
    headroom: Annotated[
        float,
        share(zero=True, one=False).option(
            "--headroom",
            "Share h of CPU and network cards that stays free: the plan is for 1 / (1 − h) times "
            "the rate.",
        ),
    ] = 0.0
    keep_parallelism: Annotated[
        bool | frozenset[str],
        FieldKind(_kept, "", "flag").option(
            "--keep-parallelism",
            "Keep the parallelism of every operator of GRAPH; plan only machines and placement.",
        ),
    ] = False
    keep: Annotated[
        tuple[str, ...],
        texts("OPERATOR").option(
            "--keep",
            "Keep the parallelism of this operator, as of one whose program sets it. May be "
            "repeated.",
        ),
    ] = ()
    budget: Annotated[
        Budget | None,
        BUDGET.option(
            "--budget",
            "Time for each plan in seconds, or with a unit, as in '1 min'.  [default: "
            f"{PLAN_SECONDS:g}; no limit where --evaluations is given]",
            HOW_LONG,
        ),
    ] = None
    jobs: Annotated[int | None, COUNT.key()] = None  # processes that plan; one per core for many

    def check(self) -> None:
        """Refuse settings without effect, and two words for the same."""
        super().check()
        for one, other in (("rate", "trace"), ("offers", "cluster"), ("quantile", "schedule")):
            self.exclude(one, other)
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

        given = MoveTerms(self.move_price, interruption=self.restart, lag=self.lag)
        return given if self.terms is None else self.terms

    def of_plans(self) -> "PlannerSettings":
        """Settings of each plan, but for the errors of predictions for the graph."""
        from streamplace.planning.problem import PLAN_BUDGET, PlannerSettings

        return PlannerSettings(
            self.headroom,
            self.keep_parallelism or frozenset(self.keep),
            self.seed,
            self.limits() or PLAN_BUDGET,
        )
