"""What advice does not know: told in the order in which it matters, with what would measure it."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from shop_flink import OFFERS as GIVEN
from shop_flink import Shop, advised

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.advise.unknowns import Unknown, unknowns
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


def found(plan: PlanResult, windows: int = 4, *, assumed: bool = False) -> list[Unknown]:
    """What is not known of a plan."""
    sending = SendingCost(4e-5, 0.0, is_assumed=assumed)
    seen = SimpleNamespace(windows=range(windows))
    return unknowns(plan, cast("JobProfile", seen), sending)


def told(plan: PlanResult, windows: int = 4, *, assumed: bool = False) -> list[tuple[str, float]]:
    """First words of what is not known, and how much it matters."""
    return [(one.what.split(",")[0], one.share) for one in found(plan, windows, assumed=assumed)]


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
    ((what, share),) = told(plan(), assumed=True)
    assert what == "what a tuple costs that leaves its TaskManager (assumed)"
    assert share > 0.005


def test_errors_of_earlier_predictions_are_listed_first_where_they_are_widest(
    plan: Callable[..., PlanResult],
) -> None:
    errors = SimpleNamespace(least=0.8)
    wide = replace(plan(**{PROFILE_SPREAD: 0.1}), errors=cast("Any", errors))
    assert [share for _, share in told(wide)] == pytest.approx([0.2, 0.1])


SENDING = "what sending a tuple to another TaskManager costs is not measured and left out; "


@pytest.mark.parametrize(
    ("machines", "note"),
    [
        (
            Catalogue.of([Offer("small", 0.1)]),
            f"{SENDING}to have it counted, give overhead in the ",
        ),
        (Cluster.uniform(6), f"{SENDING}to have it counted, give overhead in the file of machines"),
        (None, "what a tuple between TaskManagers costs is assumed to be 37.1 ns per tuple and "),
        (GIVEN, None),
        (Cluster.of([Device(f"d{i}") for i in range(6)], overhead=1e-6), None),
    ],
)
def test_what_the_plan_counts_for_remote_tuples_is_told_as_it_is(
    shop: Shop, machines: Catalogue | Cluster | None, note: str | None
) -> None:
    """Left out, assumed on the TaskManagers that there are, or given with the machines.

    It takes several TaskManagers to carry the rate, between which most of the tuples cross.
    """
    flink = shop()
    for v, metric in (("v0", "numBytesOut"), ("v1", "numBytesIn")):
        flink.vertices[v].rates = {**flink.vertices[v].rates, metric: 4e6}
    advice = advised(flink, "12x", machines)
    words = ("sending a tuple", "tuple between TaskManagers")
    notes = [one for one in advice.notes if any(word in one for word in words)]
    assert [one.startswith(note or "") for one in notes] == [True] * (note is not None)
    is_unknown = any("that leaves its TaskManager" in one.what for one in advice.unknowns)
    assert is_unknown is (note is not None)
