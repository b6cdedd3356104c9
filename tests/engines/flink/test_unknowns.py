"""What advice does not know: told in the order in which it matters, with what would measure it."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streamplace import Operator, Stream, StreamGraph
from streamplace.engines.flink.advise.unknowns import unknowns
from streamplace.engines.flink.measure.cluster import MeasuredCluster
from streamplace.engines.flink.measure.local_cost import ASSUMED, LOCAL_COST
from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.engines.flink.measure.sending_cost import SendingCost
from streamplace.model.graph import PROFILE_SPREAD
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlanSettings
from streamplace.planning.result import PlanResult

OFFERS = Catalogue.of([Offer("small", 0.1, mips=4.0)])


@pytest.fixture
def plan() -> Callable[..., PlanResult]:
    """A plan on several machines for a graph with attributes."""

    def make(**attributes: Any) -> PlanResult:
        names = {name.replace("_", " "): value for name, value in attributes.items()}
        graph = StreamGraph.of(
            "pipe",
            [Operator("a", ipt=3000, payload=100, rate=2000), Operator("b", ipt=3000)],
            [Stream("a", "b", partitioning="hash", ipt=100)],
            names,
        )
        return planned(graph, OFFERS, PlanSettings(budget=Budget(None, 2_000)))

    return make


def told(plan: PlanResult, windows: int = 4, *, assumed: bool = False) -> list[tuple[str, float]]:
    """First words of what is not known, and how much it matters."""
    sending = SendingCost(4e-5, 0.0, is_assumed=assumed)
    seen = cast("JobProfile", SimpleNamespace(windows=range(windows)))
    cluster = cast("MeasuredCluster", SimpleNamespace(sending=sending))
    return [(one.what.split(",")[0], one.share) for one in unknowns(plan, seen, cluster)]


def test_what_was_measured_well_is_not_listed(plan: Callable[..., PlanResult]) -> None:
    assert told(plan()) == []
    assert told(plan(**{PROFILE_SPREAD: 0.001})) == []


def test_more_windows_narrow_what_varies(plan: Callable[..., PlanResult]) -> None:
    varied = plan(**{PROFILE_SPREAD: 0.1})
    (few,), (many,) = told(varied, 4), told(varied, 16)
    assert (few[1], many[1]) == pytest.approx((0.1, 0.05))


def test_costs_that_are_assumed_matter_by_what_the_plan_loses(
    plan: Callable[..., PlanResult],
) -> None:
    """Twice the cost of local tuples costs little here; that of sending costs more."""
    local = str(f"{ASSUMED} to be 1.4 ns per byte")
    assumed = plan(**{LOCAL_COST: local})
    known = dict(told(assumed, assumed=True))
    assert 0.005 < known["what a tuple costs between two threads of a TaskManager (assumed)"] < 0.1
    assert known["what a tuple costs that leaves its TaskManager (assumed)"] > 0.005
    shares = [share for _, share in told(assumed, assumed=True)]
    assert shares == sorted(shares, reverse=True)


def test_errors_of_earlier_predictions_are_listed_first_where_they_are_widest(
    plan: Callable[..., PlanResult],
) -> None:
    errors = SimpleNamespace(least=0.8)
    wide = replace(plan(**{PROFILE_SPREAD: 0.1}), errors=cast("Any", errors))
    assert [share for _, share in told(wide)] == pytest.approx([0.2, 0.1])
