"""Plans under rules, on machines that are owned, and with links between offers."""

import contextlib
from functools import partial

import numpy as np
import pytest
from planning_cases import chain
from ruled_plans import cheapest_of_cluster, cheapest_ruled, ruled_cluster, ruled_question

import streamplace
from streamplace import Budget, Cluster, Constraints, Device, Offer, Operator, StreamplaceError
from streamplace.errors import ProblemError
from streamplace.planning.offers import exact_price, parse_offers
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlannerSettings

FEW = Budget(None, 20_000)
MILLIONTH = 1e-6
OFFERS = b"""
latency = "1 ms"
links = [{from = "box", to = "small", bandwidth = "8 kbps", latency = "20 ms"}]
[[offers]]
name = "box"
owned = 1
cores = 2
mips = 1
[[offers]]
name = "rack"
owned = 2
price = 0.02
mips = 1
[[offers]]
name = "small"
price = 0.1
cores = 2
mips = 1
"""


ON_RACKS = {"a": ["rack"], "b": ["rack"], "c": ["rack"]}


def trio(*, bytes_each=1.0, ipt=400.0):
    """A source of 1000 tuples/s, and two operators behind it that take as much CPU."""
    return chain(
        Operator("a", ipt=ipt, payload=bytes_each, rate=1000, max_parallelism=1),
        Operator("b", ipt=ipt, payload=bytes_each, max_parallelism=2),
        Operator("c", ipt=ipt, max_parallelism=2),
        kind="hash",
    )


def answer(graph=None, **constraints):
    catalogue = parse_offers(OFFERS, "offers.toml")
    settings = PlannerSettings(budget=FEW, constraints=Constraints(**constraints))
    return planned(graph or trio(), catalogue, settings)


def plan_if_any(graph, machines, constraints):
    with contextlib.suppress(ProblemError):
        return planned(graph, machines, PlannerSettings(budget=FEW, constraints=constraints))
    return None


@pytest.mark.parametrize(
    ("drawn", "least_of", "dearer"),
    [
        (partial(ruled_question, linked=False), cheapest_ruled, 0),
        (partial(ruled_question, linked=True), cheapest_ruled, 1),
        (ruled_cluster, cheapest_of_cluster, 40),
    ],
    ids=["offers", "linked offers", "a cluster with prices"],
)
def test_plans_keep_rules_and_no_plan_is_below_the_bound(drawn, least_of, dearer):
    """All sets of machines, parallelisms and placements of forty small questions."""
    carried = cheapest = 0
    for seed in range(40):
        question = drawn(seed)
        least, result = least_of(question), plan_if_any(*question)
        assert (result is None) == (least == np.inf), seed
        if result is None:
            continue
        assert float(result.bound) - MILLIONTH <= least <= result.cost + MILLIONTH, seed
        carried += 1
        cheapest += result.cost <= least + MILLIONTH
    assert carried > 15
    assert cheapest >= carried - dearer


def test_owned_machines_come_first():
    """1.2 cores fit on the two of the box; 2.7 need a rack as well."""
    assert (answer().machines, answer().cost) == ({"box": 1}, 0)
    result = answer(trio(ipt=900.0))
    assert (result.machines, result.cost) == ({"box": 1, "rack": 1}, 0.02)
    assert result.is_cheapest


def test_a_machine_is_named_as_rules_name_it():
    result = answer(pin={"a": "small-3"}, allowed={"c": ["rack"]}, exlocate=[{"a", "b"}])
    assert set(result.subtasks()["a"]) == {"small-3"}
    assert all(name.startswith("rack-") for name in result.subtasks()["c"])
    assert not set(result.subtasks()["a"]) & set(result.subtasks()["b"])
    assert result.machines["small"] == 1
    assert not any(result.cluster.devices.tags)


def test_colocated_subtasks_come_in_parts():
    """Operators of 2.4 cores in all, of which each machine holds the same part."""
    result = answer(trio(ipt=800.0), colocate=[{"b", "c"}])
    assert result.subtasks()["b"] == result.subtasks()["c"]


def test_links_between_offers_limit_plans_and_are_those_of_their_cluster():
    """8000 tuples/s of a byte each fill the link of 8 kbit/s from the box to a small machine."""
    fast = answer(trio(bytes_each=100), pin={"a": "box"}, allowed={"b": ["rack"]})
    assert set(fast.machines) <= {"box", "rack"}
    with pytest.raises(StreamplaceError, match="no plan was found"):
        answer(trio(bytes_each=100), pin={"a": "box", "b": "small-0"})
    slow = answer(trio(bytes_each=0.5), pin={"a": "box", "b": "small-0"})
    ends = tuple(map(slow.cluster.devices.index, ("box", "small-0")))
    assert slow.cluster.bandwidth_bps[ends] == 8000
    assert (slow.cluster.latency_s[ends], slow.cluster.latency_s[ends[::-1]]) == (0.02, 0.001)
    assert slow.limit.resource == "link"


def test_the_cost_of_a_cluster_with_prices_is_their_sum():
    devices = [Device("dear", price=0.5), Device("cheap", price=0.1), Device("free")]
    graph = chain(Operator("a", ipt=2000, rate=1e6), Operator("b", ipt=2000), kind="rebalance")
    result = streamplace.plan(graph, cluster=Cluster.of(devices), budget=FEW)
    assert (result.machines, result.cost, result.bound) == (
        {"cheap": 1, "free": 1},
        0.1,
        exact_price(0.1),
    )
    assert "per hour" in str(result)


def test_dictionaries_are_taken_for_files():
    result = streamplace.plan(
        {"operators": [{"name": "a", "ipt": 100, "rate": 1}]},
        offers={"overhead": "1 us", "offers": [{"name": "box", "owned": 1}]},
        constraints={"pin": {"a": "box"}},
        trace={"time": [0, 3600], "rate": [10, "1 k/s"]},
        budget=FEW,
    )
    assert [hour.rate for hour in result.hours] == [10, 1000]
    assert (result.machines, result.cost, result.gap) == ({"box": 1}, 0, 0)


@pytest.mark.parametrize(
    ("constraints", "reason"),
    [
        ({"pin": {"a": "bx"}}, "pin of 'a' names the unknown machine 'bx'; the offers are 'box'"),
        ({"pin": {"a": "rack-2"}}, "unknown machine 'rack-2'"),
        ({"pin": {"x": "box"}}, "pin names the unknown operator 'x'"),
        ({"pin": {"a": "small"}}, "pin of 'a' names 'small', .* write 'small-0', or use allowed"),
        ({"allowed": {"a": ["tag:gpu"]}}, "unknown machine 'tag:gpu'"),
        ({"pin": {"a": "box"}, "allowed": {"a": ["rack"]}}, "no machine is left for 'a'"),
        ({"pin": {"a": "box", "b": "rack-0"}, "colocate": [["a", "b"]]}, "left for 'a', 'b'"),
        ({"colocate": [["a", "b"]], "exlocate": [["a", "b"]]}, "both colocated and exlocated"),
        ({"allowed": ON_RACKS, "exlocate": [["a", "b", "c"]]}, "only 2 machines"),
        ({"pin": {"b": "rack-0", "c": "rack-0"}}, "under pin of 'b' to 'rack-0'"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused_in_one_line(constraints, reason):
    with pytest.raises(StreamplaceError, match=reason) as caught:
        answer(trio(ipt=700.0), **constraints)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('links = [{from = "a", to = "b"}]', "link a→b: there is no offer 'b'"),
        ('links = [{from = "a", to = "a"}, {from = "a", to = "a"}]', "listed twice"),
        ('bandwidth = "0 bps"', "bandwidth"),
        ("", "offer 'a' has price 0"),
    ],
)
def test_bad_links_and_prices_are_refused(text, reason):
    owned = "owned = 2\n" if text else "price = 0\n"
    with pytest.raises(StreamplaceError, match=reason):
        parse_offers(f'{text}\n[[offers]]\nname = "a"\n{owned}'.encode(), "offers.toml")


def test_offers_are_not_called_as_machines_of_others():
    with pytest.raises(StreamplaceError, match="'a-0'"):
        streamplace.plan(trio(), offers=[Offer("a", 1.0), Offer("a-0", owned=1)])
