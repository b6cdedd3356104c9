"""Headroom that is derived from restarts and from waiting."""

from dataclasses import replace
from typing import Any

import pytest
from planning_cases import pipeline

import streamplace
from streamplace import Budget, Cluster, Device, Operator, Stream, StreamGraph
from streamplace.errors import ProblemError, SettingError
from streamplace.planning.headroom import Headroom
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.result import PlanResult

OFFERS = Catalogue.of([Offer("slow", 1.0, mips=1.0), Offer("fast", 2.0, mips=4.0)])


def test_what_waits_during_a_restart_is_worked_off_in_time() -> None:
    """With restart r, catch-up c and rate R, capacity is R · (1 + r / c)."""
    share = Headroom(restart=60, catch_up=300).share(pipeline(), OFFERS)
    capacity = 1 / (1 - share)
    assert (capacity - 1) * 300 == pytest.approx(60)


def test_queues_are_as_short_as_asked() -> None:
    """On the slowest core, the heaviest operator of three uses up a third of the latency."""
    asked = Headroom(latency=0.03, variability=0.5)
    use = 1 - asked.share(pipeline(), OFFERS)
    seconds = 8000 / 1e6
    assert 0.5 * use / (1 - use) * seconds == pytest.approx(0.01)


def test_shares_of_headroom_multiply() -> None:
    both = Headroom(restart=1, catch_up=1, flat=0.5)
    assert both.share(pipeline(), OFFERS) == pytest.approx(0.75)
    assert Headroom().share(pipeline(), OFFERS) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restart": -1}, "restart is -1; it must be 0 or more"),
        ({"catch_up": 0}, "catch_up is 0 s; it must be above 0"),
        ({"latency": float("nan")}, "latency is nan s; it must be above 0"),
        ({"flat": 1}, "headroom is 1; it must be at least 0 and less than 1"),
    ],
)
def test_impossible_headroom_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Headroom(**options)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            Headroom(latency=1e-6),
            "where room for 24000 times as much is reserved for short queues (a longer latency "
            "needs less): with max_parallelism 8, ",
        ),
        (
            Headroom(restart=1e6, catch_up=1),
            "where room for 1000000 times as much is reserved for a restart: with max_parallelism",
        ),
        (Headroom(), "no offers carry 50000 tuples/s: with max_parallelism 8, the busiest subtask"),
    ],
)
def test_a_refusal_names_the_reserve_that_makes_a_plan_large(asked: Headroom, told: str) -> None:
    """Else the operator's limit seems to be the reason."""
    source = Operator("source", ipt=8000, rate=1.0, max_parallelism=8)
    graph = StreamGraph.of("keyed", [source, Operator("x"), Operator("y")],
                           [Stream("source", "x"), Stream("x", "y")])  # fmt: skip
    rate = 500 if asked.share(graph, OFFERS) else 50_000
    with pytest.raises(ProblemError) as refused:
        streamplace.plan(graph, rate=rate, offers=OFFERS, headroom=asked)
    assert told in str(refused.value)


def test_headroom_for_latency_counts_what_chains_save_and_what_messages_take() -> None:
    """Plans may break chains: six times the work per tuple. Messages take a quarter of a core."""
    fast, asked = [Offer("m", 1.0, mips=2500)], Headroom(latency=1e-3)
    ends = [Operator("a", ipt=1e5, rate=100), Operator("b", ipt=1e5)]

    def headroom(stream: Stream, **messages: float) -> float:
        costs = {name.replace("_", " "): value for name, value in messages.items()}
        graph = StreamGraph.of("pair", ends, [stream], costs)
        result = streamplace.plan(graph, offers=fast, headroom=asked, budget=Budget(None, 1000))
        return result.headroom

    ipt = Stream("a", "b", partitioning="chained", ipt=1e6)
    assert headroom(ipt) == pytest.approx(240 / 740)
    sent = headroom(Stream("a", "b"), message_ipt=1.25e7, buffer_timeout=0.0)
    assert sent == pytest.approx(40 / 0.75 / (500 + 40 / 0.75))


@pytest.mark.parametrize("constant", [0.0, 0.3, 0.9, 1.3])
def test_queues_are_as_short_as_asked_beside_constant_loads(constant: float) -> None:
    latency, variability, ipt = 0.05, 1.0, 1e4
    offers = [Offer("m", 1.0, mips=1.0, at_most=200)]
    rate, only = 5.0, Operator("only", ipt=ipt, rate=1.0, constant=constant)
    held = StreamGraph.of("held", [only])
    asked = Headroom(latency=latency, variability=variability)
    result = streamplace.plan(
        held, rate=rate, offers=Catalogue.of(offers), headroom=asked, budget=Budget(None, 2000)
    )
    subtasks = result.parallelism["only"]
    kept, free = result.headroom, 1 - constant / subtasks
    fullest = (1 - kept) * free  # of a core; the plan may leave more
    service, use = ipt / 1e6 / free, fullest / free
    assert rate / subtasks * ipt / 1e6 <= fullest * (1 + 1e-9)
    assert variability * use / (1 - use) * service <= latency * (1 + 1e-9)


def test_offers_that_are_not_used_need_no_headroom() -> None:
    """2,000 MIPS need 2,800 for queues of 1 ms on fast cores, and 82,000 on slow ones."""
    graph = StreamGraph.of("one", [Operator("a", ipt=1e6, rate=2000)])
    fast, slow = Offer("fast", 1.0, mips=2500), Offer("slow", 10.0, mips=25)
    asked = Headroom(latency=1e-3)

    def planned(*offers: Offer) -> PlanResult:
        return streamplace.plan(graph, offers=offers, headroom=asked, budget=Budget(None, 4000))

    alone, both = planned(fast), planned(slow, fast)
    assert alone.cost == both.cost == both.bound == 2
    assert both.headroom == pytest.approx(4e-4 / 1.4e-3)
    required = planned(replace(slow, at_least=1), fast)
    assert required.headroom == pytest.approx(0.04 / 0.041)


def test_given_machines_that_are_not_used_need_no_headroom() -> None:
    """Two fast ones are enough; the slow one would need 83,000 MIPS for such short queues."""
    graph = StreamGraph.of("one", [Operator("a", ipt=1e6, rate=2000)])
    devices = [Device(name, mips=mips) for name, mips in (("f0", 2500), ("s", 25), ("f1", 2500))]
    asked: dict[str, Any] = {"headroom": Headroom(latency=1e-3), "budget": Budget(None, 4000)}
    result = streamplace.plan(graph, cluster=Cluster.of(devices), **asked)
    assert set(result.machines) == {"f0", "f1"}
    assert result.is_cheapest
    assert result.headroom == pytest.approx(4e-4 / 1.4e-3)
    most = streamplace.plan(graph, rate="max", cluster=Cluster.of(devices), **asked)
    assert most.rate == pytest.approx(5000 * (1 - result.headroom), rel=1e-3)


@pytest.mark.parametrize("rate", [100.0, 8000.0])
def test_the_highest_rate_has_the_headroom_of_that_rate(rate: float) -> None:
    """Messages leave less of a core to tuples at high rates, so that short queues need more."""
    operators = [
        Operator("a", ipt=1e4, payload=100, rate=rate, max_parallelism=64),
        Operator("b", ipt=2e5, max_parallelism=64),
    ]
    messages = {"message ipt": 3e6, "buffer timeout": 0.1}
    graph = replace(StreamGraph.of("two", operators, [Stream("a", "b")]), attributes=messages)
    asked: dict[str, Any] = {
        "cluster": Cluster.uniform(2, mips=1000),
        "headroom": Headroom(latency=1e-3),
        "budget": Budget(None, 1000),
    }
    most = streamplace.plan(graph, rate="max", **asked)
    same = streamplace.plan(graph, rate=most.rate, **asked)
    assert same.headroom == most.headroom
    with pytest.raises(ProblemError):
        streamplace.plan(graph, rate=1.01 * most.rate, **asked)


def test_the_highest_rate_does_not_depend_on_the_rate_of_the_graph() -> None:
    """At 999,000 tuples/s, messages would leave a thousandth of the last core to tuples."""
    messages = {"message ipt": 2e4, "buffer timeout": 0.0}

    def highest(rate: float) -> float:
        ends = [Operator("a", ipt=1e4, rate=rate), Operator("b", ipt=1e4)]
        return streamplace.plan(
            StreamGraph.of("two", ends, [Stream("a", "b")], messages),
            rate="max",
            cluster=Cluster.uniform(2, mips=1000),
            headroom=Headroom(latency=1e-3),
            budget=Budget(None, 1000),
        ).rate

    low, high = highest(100.0), highest(999_000.0)
    assert low == pytest.approx(48_000, rel=0.05)
    assert high == pytest.approx(low, rel=0.05)


def test_the_bound_is_that_of_plans_on_any_of_the_machines() -> None:
    """Slow cores need more headroom, and are the cheapest all the same."""
    graph = StreamGraph.of("one", [Operator("a", ipt=1e6, rate=2000)])
    offers = [Offer("fast", 1.0, mips=2500), Offer("slow", 0.1, mips=2000)]
    asked = Headroom(latency=1e-3)
    result = streamplace.plan(graph, offers=offers, headroom=asked, budget=Budget(None, 4000))
    assert result.machines == {"slow": 2}
    assert result.is_cheapest


def test_headroom_beyond_any_machine_is_refused_in_one_line() -> None:
    """Less than rounding would remain of the machines, which divided by zero."""
    asked = Headroom(restart=1e20, catch_up=1e-9, latency=1e-20)
    graph = StreamGraph.of("one", [Operator("a", ipt=1e6, rate=2.0)])
    few = [replace(offer, at_most=100) for offer in OFFERS.offers]
    with pytest.raises(ProblemError, match="room for 1000000000000 times as much is reserved"):
        streamplace.plan(graph, offers=few, headroom=asked, budget=Budget(None, 100))


def test_a_refusal_names_the_rate_of_the_machines_that_need_least_headroom() -> None:
    """Two fast machines carry 5,000 tuples/s less their headroom; with slow ones, 0.03 of it."""
    graph = StreamGraph.of("one", [Operator("a", ipt=1e6, rate=1.0)])
    fast, slow = Offer("fast", 1.0, mips=2500, at_most=2), Offer("slow", 0.1, mips=25, at_most=2)
    asked: dict[str, Any] = {"headroom": Headroom(latency=1e-3), "budget": Budget(None, 2000)}
    most = streamplace.plan(graph, rate="max", offers=[fast, slow], **asked)
    assert most.rate == pytest.approx(5000 * (1 - most.headroom), rel=1e-3)
    with pytest.raises(ProblemError, match="a plan was found for up to ") as refused:
        streamplace.plan(graph, rate=2 * most.rate, offers=[fast, slow], **asked)
    named = float(str(refused.value).rpartition("up to ")[2].split()[0])
    assert named == pytest.approx(most.rate, rel=1e-3)
