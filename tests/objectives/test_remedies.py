"""What would help: the improvement of one device, link, card or operator that gains most."""

import pytest
from problems import chain

from streamplace import Budget, Operator, Problem, Stream, StreamGraph, place, simulate, what_if
from streamplace.errors import StreamplaceError
from streamplace.model import Cluster, Device


def remedies(problem, where):
    """Best remedy of every kind, from what a simulation tells."""
    document = simulate(problem, dict(zip(problem.graph.operators.name, where, strict=True)))
    found = document.document()["remedies"]
    return {each["kind"]: (each["name"], each["relative_throughput"]) for each in found}


def test_a_device_that_is_the_limit_and_its_heaviest_operator_would_help():
    """1 and 2 of 2.5 GIPS on d0 make 120 %: 60 % at twice the speed, 80 % with half of the 2."""
    operators = [Operator("a", ipt=4e5, rate=2500), Operator("b", ipt=8e5)]
    graph = StreamGraph.of("g", operators, [Stream("a", "b")])
    problem = Problem(graph, Cluster.uniform(2, mips=2500))
    assert remedies(problem, ["d0", "d0"]) == {"device": ("d0", 1.0), "operator": ("b", 1.0)}
    busier = Problem(graph.at_rate(5000), Cluster.uniform(2, mips=2500))
    device, operator = (pytest.approx(1 / load) for load in (1.2, 1.6))
    assert remedies(busier, ["d0", "d0"]) == {"device": ("d0", device), "operator": ("b", operator)}


def test_a_link_that_is_the_limit_would_help():
    """1.6 Gbps over 1 Gbps."""
    problem = Problem(chain(2, ipt=2e4, payload=2e4), Cluster.uniform(2))
    assert remedies(problem, ["d0", "d1"]) == {"link": ("link d0→d1", 1.0)}


def test_a_card_would_help_only_where_the_link_behind_it_has_room():
    devices = [Device("d0", egress="500 Mbps"), Device("d1")]
    graph = chain(2, ipt=2e4, payload=2e4)
    wide, narrow = (
        Problem(graph, Cluster.of(devices, bandwidth=b)) for b in ("9 Gbps", "500 Mbps")
    )
    name = "the network card of d0 (egress)"
    assert remedies(wide, ["d0", "d1"]) == {"card": (name, pytest.approx(1 / 1.6))}
    assert remedies(narrow, ["d0", "d1"]) == {}


def test_nothing_is_said_of_a_placement_that_keeps_up():
    problem = Problem(chain(2, ipt=1e3, payload=1), Cluster.uniform(2))
    assert remedies(problem, ["d0", "d1"]) == {}
    assert "would help" not in str(simulate(problem, {"v0": "d0", "v1": "d1"}).report())


def test_devices_and_links_are_changed_by_name():
    problem = Problem(chain(2), Cluster.uniform(2))
    change = {"d1.mips": 5000, "d0->d1.bandwidth": "2 Gbps", "d1->d0.latency": "3 ms"}
    cluster = what_if(problem, change=change).cluster
    assert cluster.devices.mips.tolist() == [2500, 5000]
    assert (cluster.bandwidth_bps[0, 1], cluster.bandwidth_bps[1, 0]) == (2e9, 1e9)
    assert (cluster.latency_s[0, 1], cluster.latency_s[1, 0]) == (0, 0.003)


@pytest.mark.parametrize(
    "key",
    ["d9.mips", "d0.speed", "d0->d1.width", "d0->d0.bandwidth", "d0->d9.bandwidth", "d0.tags"],
)
def test_devices_and_links_that_are_not_there_are_refused(key):
    with pytest.raises(StreamplaceError):
        what_if(Problem(chain(2), Cluster.uniform(2)), change={key: 1})


def test_an_operator_comes_before_a_device_of_its_name():
    graph = StreamGraph.of("g", [Operator("d0", rate=1, memory=5)])
    changed = what_if(Problem(graph, Cluster.uniform(2)), change={"d0.memory": 7})
    assert changed.graph.operators.memory.tolist() == [7]


def test_subtasks_are_mentioned_where_they_are_a_tenth_better():
    """One operator fills a device of one core; its two subtasks fill two."""
    operator = Operator("a", ipt=5e5, rate=1e4, parallelism=2)
    problem = Problem(StreamGraph.of("g", [operator]), Cluster.uniform(3))
    result = place(problem, budget=Budget(evaluations=500))
    assert (result.value, result.by_subtasks) == (0.5, 1.0)
    assert "--subtasks" in str(result.report())
    assert place(problem, subtasks=True, budget=Budget(evaluations=500)).by_subtasks is None
    assert place(problem, rate=5000, budget=Budget(evaluations=500)).by_subtasks is None
