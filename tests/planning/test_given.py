"""Plans on given machines, with links between pairs of them."""

from dataclasses import replace

import numpy as np
import pytest
from planning_cases import carried, chain

from streamplace.errors import ProblemError
from streamplace.model import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.model.devices import Devices
from streamplace.placers.registry import Budget
from streamplace.planning.planner import planned, planned_most
from streamplace.planning.problem import PlannerSettings

ASKED = PlannerSettings(budget=Budget(None, 200_000))


def pair(payload):
    """Two operators that cannot be divided, 0.6 of a box each, and the stream between them."""
    return chain(
        Operator("a", ipt=600, payload=payload, rate=1000, max_parallelism=1),
        Operator("b", ipt=600, max_parallelism=1),
    )


def linked(n, wide):
    """Boxes with links of 1 kbit/s, but for a few of 1 Gbit/s."""
    bandwidth = np.full((n, n), 1e3)
    for u, v in wide:
        bandwidth[u, v] = bandwidth[v, u] = 1e9
    devices = Devices(tuple(f"box{i}" for i in range(n)), mips=[1.0] * n)
    return Cluster(devices, bandwidth, np.zeros((n, n)))


def test_a_plan_takes_the_machines_whose_links_carry_it():
    """Of four equal boxes, only the last two are joined by a fast link."""
    result = planned(pair(100), linked(4, {(2, 3)}), ASKED)
    assert set(result.machines) == {"box2", "box3"}
    assert result.cost == result.bound == 2
    assert carried(result) == 1


def test_plans_whose_links_are_too_slow_are_cut_off():
    """A shuffle of 8 kbit/s over n boxes takes 8 / n² of each link: three boxes, where two do."""
    shuffle = chain(
        Operator("a", ipt=100, payload=1, rate=1000, max_parallelism=6),
        Operator("b", ipt=1400, max_parallelism=6),
        kind="hash",
    )
    result = planned(shuffle, linked(5, set()), ASKED)
    assert (result.bound, result.cost) == (2, 3)
    assert carried(result) == 1


def test_a_refusal_names_a_rate_that_is_carried_if_asked_for():
    """Neither operator can be divided, and all links are slow: one box carries both, but slower."""
    slow = linked(3, set())
    with pytest.raises(ProblemError, match=r"up to 833\.333 tuples/s"):
        planned(pair(100), slow, ASKED)
    result = planned(pair(100).at_rate(833.333), slow, ASKED)
    assert result.cost == 1
    assert carried(result) == 1


def test_a_full_link_is_what_limits():
    cluster = linked(2, set())
    graph = pair(0.1)
    result = planned(graph, cluster, ASKED)
    assert result.limit.resource == "link"
    assert result.carries == pytest.approx(1000 / 0.8)
    assert "the link box" in str(result)
    faster = planned(graph.at_rate(result.carries), cluster, replace(ASKED, seed=1))
    assert carried(faster) == pytest.approx(1)


def uneven_job(rate):
    """1.3e6 instructions per tuple, of which one operator in four subtasks takes most."""
    operators = [
        Operator("src", ipt=2e5, payload=100, rate=rate),
        Operator("work", ipt=1e6, payload=50, parallelism=4),
        Operator("out", ipt=1e5),
    ]
    streams = [
        Stream("src", "work", partitioning="rebalance"),
        Stream("work", "out", partitioning="hash"),
    ]
    return StreamGraph.of("job", operators, streams)


UNEVEN = Cluster.of([Device("a", mips=2500), Device("b", mips=1000), Device("c", mips=500)])


def test_the_highest_rate_uses_all_unlike_machines():
    """They have 4,000 MIPS together, which is 3,076.9 tuples/s; all of one operator are 769."""
    result = planned_most(uneven_job(1.0), UNEVEN, ASKED)
    assert result.rate == pytest.approx(4e9 / 1.3e6, rel=0.01)
    assert result.carries >= result.rate
    kept = replace(ASKED, keep_parallelism=True)
    assert planned_most(uneven_job(1.0), UNEVEN, kept).rate == pytest.approx(2631.57, rel=0.01)


@pytest.mark.parametrize(
    ("budget", "told"),
    [(Budget(None, 1000), "does not carry 3 tuples/s"), (Budget(1e-9), "within the budget")],
)
def test_a_cluster_is_too_small_only_where_that_is_proven(budget, told):
    """Three operators on two machines, of which each has memory for one."""
    operators = [Operator(f"v{i}", ipt=1, rate=1, memory=60, max_parallelism=1) for i in range(3)]
    cluster = Cluster.of([Device("a", memory=100), Device("b", memory=100)])
    with pytest.raises(ProblemError, match=told):
        planned_most(StreamGraph.of("three", operators), cluster, PlannerSettings(budget=budget))
