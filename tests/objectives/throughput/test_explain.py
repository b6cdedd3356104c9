import pytest
from problems import PROBLEMS, chain, fork_join, heterogeneous, many_sources

from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.streams import Streams
from streamplace.objectives.throughput.explain import explain


def test_an_overloaded_device_is_the_bottleneck_and_carries_its_heaviest_operator_first() -> None:
    """Three operators at 40 % each on one device of three."""
    problem = Problem(chain(3), Cluster.uniform(3))
    answer = explain(problem, problem.placement([0, 0, 0]))
    assert answer.relative_throughput == pytest.approx(1 / 1.2)
    assert answer.bottleneck.label == "the CPU of d0"
    assert answer.bottleneck.load == pytest.approx(1.2)
    assert [c.name for c in answer.bottleneck.carries] == ["v0", "v1", "v2"]
    assert answer.links == ()


def test_a_full_link_is_named_with_its_stream() -> None:
    """1.6 Gbit/s over a link of 1 Gbit/s."""
    problem = Problem(chain(2), Cluster.uniform(2))
    answer = explain(problem, problem.placement([0, 1]))
    assert answer.bottleneck.label == "link d0→d1"
    assert answer.bottleneck.carries[0].name == "v0→v1"
    assert answer.relative_throughput == pytest.approx(1 / 1.6)
    assert "link d0→d1 is the limit" in answer.verdict


def test_the_advice_reaches_what_it_promises() -> None:
    """Doing what the explanation says gives the throughput that it says."""
    problem = Problem(fork_join(), Cluster.uniform(5))
    answer = explain(problem, problem.placement([0] * problem.n_operators))
    move = answer.move
    assert move is not None
    index = [0] * problem.n_operators
    for name in move.operators:
        index[problem.graph.operators.index(name)] = problem.cluster.devices.index(move.device)
    after = explain(problem, problem.placement(index))
    assert after.relative_throughput == pytest.approx(move.relative_throughput)
    assert after.relative_throughput > answer.relative_throughput


def test_advice_respects_constraints() -> None:
    """A pinned operator is never told to move."""
    problem = PROBLEMS["constrained"]
    assert problem.rules is not None
    answer = explain(problem, problem.placement(problem.rules.witness[problem.rules.unit]))
    if answer.move is not None:
        assert "src" not in answer.move.operators or answer.move.device == "d1"


def test_a_placement_that_keeps_up_needs_no_advice() -> None:
    """Below capacity there is a fullest resource but no limit."""
    problem = Problem(chain(2, rate=1e3), Cluster.uniform(2))
    answer = explain(problem, problem.placement([0, 0]))
    assert (answer.relative_throughput, answer.move) == (1.0, None)
    assert answer.verdict.startswith("keeps up")


def test_sources_that_share_no_bottleneck_are_reported_apart() -> None:
    """Max–min fairness lets the free source run at its full rate."""
    operators = [Operator("a", ipt=5e5, rate=1e4), Operator("b", ipt=1e5, rate=1e4)]
    problem = Problem(StreamGraph.of("two", operators), Cluster.uniform(2))
    answer = explain(problem, problem.placement([0, 1]))
    assert answer.sources == {"a": pytest.approx(0.5), "b": 1.0}
    assert answer.relative_throughput == pytest.approx(0.75)


@pytest.mark.parametrize("nic", ["egress", "ingress"])
def test_a_capped_network_card_can_be_the_bottleneck(nic: str) -> None:
    """Two streams over wide links but one narrow card."""
    graph = StreamGraph.of(
        "fan",
        [Operator("src", payload=1e4, rate=1e4), Operator("x"), Operator("y")],
        [Stream("src", "x"), Stream("src", "y")],
    )
    devices = [Device("hub", **{nic: "500 Mbps"}), Device("leaf")]
    problem = Problem(graph, Cluster.of(devices, bandwidth="10 Gbps"))
    place = [0, 1, 1] if nic == "egress" else [1, 0, 0]
    answer = explain(problem, problem.placement(place))
    assert answer.bottleneck.kind == nic
    assert answer.bottleneck.load == pytest.approx(3.2)
    assert len(answer.bottleneck.carries) == 2


def test_loads_of_devices_and_links_are_consistent_with_what_they_carry() -> None:
    """Shares of operators and streams add up to the load (no overhead, no gap)."""
    problem = Problem(many_sources(), Cluster.uniform(3))
    answer = explain(problem, problem.placement([0, 1, 2, 0, 1, 2, 0, 1]))
    for part in (*answer.devices, *answer.links):
        carried = part.operators if hasattr(part, "operators") else part.streams
        assert sum(c.load for c in carried) == pytest.approx(part.load)


def test_heterogeneous_clusters_are_explained_in_their_own_units() -> None:
    """The same operator weighs more on the slow device."""
    problem = Problem(chain(3, rate=1e3), heterogeneous())
    fast, slow = (explain(problem, problem.placement([d] * 3)) for d in (0, 2))
    assert fast.devices[0].load * 8 == pytest.approx(slow.devices[2].load)


def test_only_what_is_looked_at_gets_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a million streams on a link four are shown."""
    named = []
    label = Streams.label
    monkeypatch.setattr(Streams, "label", lambda streams, e: named.append(e) or label(streams, e))
    problem = Problem(fork_join(), Cluster.uniform(2))
    answer = explain(problem, problem.placement([v % 2 for v in range(problem.n_operators)]))
    assert named == []
    streams = answer.links[0].streams
    assert [carried.name for carried in streams[:2]] == streams.names()[:2]
    assert streams.loads.tolist() == sorted(streams.loads.tolist(), reverse=True)


def test_a_card_carries_the_streams_of_all_its_links_heaviest_first() -> None:
    """Whichever device they go to."""
    devices = [Device("a", egress="1 Mbps"), Device("b"), Device("c")]
    problem = Problem(fork_join(), Cluster.of(devices))
    answer = explain(problem, problem.placement([v % 3 for v in range(problem.n_operators)]))
    assert answer.bottleneck.kind == "egress"
    links = [link for link in answer.links if link.source == "a"]
    assert len(links) == 2
    of_links = sorted((c.load for link in links for c in link.streams), reverse=True)
    loads = [carried.load for carried in answer.bottleneck.carries]
    assert loads == pytest.approx([1000 * load for load in of_links])
    assert sum(loads) == pytest.approx(answer.bottleneck.load)
