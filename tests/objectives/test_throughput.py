"""Words and advice on the throughput of a placement."""

import numpy as np
import pytest
from loaded_problems import Terms, drawn
from problems import chain

from streamplace.api import simulate
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.expansion import expand
from streamplace.model.subtasks import with_parallelism
from streamplace.model.units import UNLIMITED_BPS
from streamplace.objectives.registry import OBJECTIVES
from streamplace.objectives.throughput.explain import explain
from streamplace.objectives.throughput.loads import DeviceLoad


def explained(problem, *devices):
    """Explain a placement on these devices, one for each operator."""
    return explain(problem, problem.placement(devices))


def fan(**hub):
    """Two streams over wide links, with a narrow card at their hub."""
    operators = [Operator("src", payload=1e4, rate=1e4), Operator("x"), Operator("y")]
    graph = StreamGraph.of("fan", operators, [Stream("src", "x"), Stream("src", "y")])
    return Problem(graph, Cluster.of([Device("hub", **hub), Device("leaf")], bandwidth="10 Gbps"))


@pytest.mark.parametrize(
    ("problem", "place", "label", "load", "users"),
    [
        (Problem(chain(3), Cluster.uniform(3)), [0, 0, 0], "the CPU of d0", 1.2, "v0 v1 v2"),
        (Problem(chain(2), Cluster.uniform(2)), [0, 1], "link d0→d1", 1.6, "v0→v1"),
        (fan(egress="500 Mbps"), [0, 1, 1], "outgoing network card of hub", 3.2, "src→x src→y"),
        (fan(ingress="500 Mbps"), [1, 0, 0], "incoming network card of hub", 3.2, "src→x src→y"),
    ],
)
def test_the_fullest_resource_is_named_with_its_users(problem, place, label, load, users):
    """Three operators of 40 %; 1.6 Gbps over 1 Gbps; twice 800 Mbps through 500 Mbps."""
    answer = explained(problem, *place)
    assert f"{label} is the limit" in answer.verdict
    assert " ".join(user.name for user in answer.bottleneck.carries) == users
    assert answer.bottleneck.load == pytest.approx(load)
    assert answer.relative_throughput == pytest.approx(1 / load)


def test_a_placement_that_keeps_up_needs_no_advice():
    """Below capacity there is a fullest resource but no limit."""
    answer = explained(Problem(chain(2, rate=1e3), Cluster.uniform(2)), 0, 0)
    assert (answer.relative_throughput, answer.move) == (1.0, None)
    assert answer.verdict.startswith("carries the full rate")


def test_sources_beside_a_stuck_one_have_a_limit_of_their_own():
    """A core stops one wherever it is; the others run faster together, as a link lets them."""
    operators = [
        Operator("orders", payload=2e4, rate=1e4),
        Operator("gps", ipt=5e5, rate=1e4),
        Operator("clicks", ipt=1e5, rate=1e3),
        Operator("join", ipt=1e4),
    ]
    graph = StreamGraph.of("three", operators, [Stream("orders", "join"), Stream("gps", "join")])
    cluster = Cluster.of([Device("d0"), Device("d1", cores=2), Device("d2")], bandwidth="1 Gbps")
    answer = explained(Problem(graph, cluster), 0, 1, 2, 2)
    limits = [(limit.sources, limit.share, limit.resource.label) for limit in answer.limits]
    assert limits == [
        (("gps",), pytest.approx(0.5), "one core of d1"),
        (("orders", "clicks"), pytest.approx(0.625), "link d0→d2"),
    ]
    assert [limit.stuck for limit in answer.limits] == [("gps",), ()]
    assert answer.bottleneck == answer.limits[0].resource
    assert answer.sources["clicks"] == pytest.approx(0.625)
    assert answer.overloaded == pytest.approx({"orders": 0.625, "gps": 0.5, "clicks": 1.0})
    assert [line for line in str(answer.report()).splitlines() if "ottleneck" in line] == [
        "Bottleneck of gps (50.0 %): one core of d1 at 200.0 %, which gps fills alone",
        "Bottleneck of orders, clicks (62.5 %): link d0→d2 at 160.0 %, carrying",
    ]


def test_loads_of_a_device_add_up_with_its_overhead():
    """A remote tuple costs 20 µs at each end."""
    cluster = Cluster.of([Device("d0"), Device("d1")], overhead=2e-5)
    answer = explained(Problem(chain(2, rate=1e3), cluster), 0, 1)
    for device in answer.devices:
        assert device.overhead == pytest.approx(0.02)
        assert device.load == pytest.approx(device.overhead + sum(device.operators.loads))
    assert str(answer.report()).count("sending and receiving 2.0 %") == 2


def test_the_best_move_helps_the_source_that_is_carried_least():
    """Also where another source gets less by it."""
    operators = [
        Operator("slow", rate=100),
        Operator("first", ipt=2.5e7),
        Operator("second", ipt=1.5e7),
        Operator("fast", ipt=9e5, rate=1000),
    ]
    streams = [Stream("slow", "first"), Stream("first", "second")]
    cluster = Cluster.uniform(2, mips=1000)
    problem = Problem(StreamGraph.of("two", operators, streams), cluster)
    answer = explained(problem, 0, 0, 0, 1)
    assert answer.sources == pytest.approx({"slow": 0.25, "fast": 0.25})
    assert (answer.move.operators, answer.move.device) == (("second",), "d1")
    assert answer.move.value == pytest.approx(0.4)


def clicks(max_parallelism=0, partitioning="", **sink):
    """Three operators of which ``parse`` alone needs two cores."""
    return StreamGraph.of(
        "clicks",
        [
            Operator("kafka", ipt=2e4, rate=2e4, payload=400),
            Operator("parse", ipt=1.5e5, payload=300, max_parallelism=max_parallelism),
            Operator("filter", **({"ipt": 15e3} | sink)),
        ],
        [Stream("kafka", "parse"), Stream("parse", "filter", partitioning=partitioning)],
    )


def edge(cores=2):
    """A device of several cores."""
    return Cluster.of([Device("edge", mips=1500, cores=cores, egress="50 Mbps")])


def test_one_core_is_filled_by_the_operator_that_fills_it():
    """And by nobody beside it: a second core is idle all the while."""
    answer = explained(Problem(clicks(), edge()), 0, 0, 0)
    assert answer.bottleneck.kind == "core"
    assert [(c.name, c.load) for c in answer.bottleneck.carries] == [("parse", pytest.approx(2))]
    assert "81.1 % instead of 50.0 %" in str(answer.report())


LEFT_OUT: Terms = {
    Operator: {"constant", "cores", "window"},
    Stream: {"ipt"},
    Cluster: {"overhead", "overhead_per_byte", "gap"},
}
"""Fields of loads that no operator or stream is told to be the user of."""


def ruled(seed):
    """A problem with pins and groups, and a legal placement."""
    free = drawn(seed, LEFT_OUT)
    rules = Constraints(pin={"v0": "d0"}, colocate=[{"v0", "v1"}] if seed % 3 else [])
    problem = Problem(free.graph, free.cluster, rules)
    index = np.random.default_rng(seed).integers(0, problem.n_devices, problem.n_operators)
    return problem, problem.placement(problem.repaired(index))


def test_on_random_problems_users_add_up_and_advice_reaches_what_it_promises():
    """On every device, link and card; and as the simulator says, under the same rules."""
    moved = advised = 0
    for problem, placement in map(ruled, range(200)):
        answer = explain(problem, placement)
        for part in (*answer.devices, *answer.links, *answer.cards):
            users = part.operators if isinstance(part, DeviceLoad) else part.streams
            assert sum(users.loads) == pytest.approx(part.load)
            assert users.loads.tolist() == sorted(users.loads, reverse=True)
        if (move := answer.move) is not None:
            moved += 1
            placed = dict(placement) | dict.fromkeys(move.operators, move.device)
            assert_reached(problem, problem.graph, placed, answer, move.value)
        advice = answer.parallelism
        if advice is None or len(advice.operators) > 1:
            continue
        advised += 1
        (name,) = advice.operators
        parallelism = problem.graph.operators.parallelism.copy()
        parallelism[problem.graph.operators.index(name)] = advice.parallelism
        graph = with_parallelism(problem.graph, parallelism)
        assert_reached(problem, graph, placement, answer, advice.relative_throughput)
    assert min(moved, advised) > 10


def assert_reached(problem, graph, placed, before, promised):
    """A change of a placement has the throughput that was promised, and more than before."""
    reached = simulate(graph, placed, problem.cluster, constraints=problem.constraints).value
    assert reached == pytest.approx(promised)
    assert reached > before.value


@pytest.mark.parametrize(
    ("graph", "split"),
    [
        (clicks(max_parallelism=1), None),
        (clicks(ipt=1.3e5 * (1 - 1e-12), parallelism=2), None),
        (clicks(partitioning="forward"), ("parse", "filter")),
        (clicks(), ("parse",)),
    ],
)
def test_advice_on_subtasks_has_limits(graph, split):
    """The maximum parallelism, a device that is as full, and streams from subtask to subtask."""
    advice = explained(Problem(graph, edge()), 0, 0, 0).parallelism
    assert (advice and advice.operators) == split


@pytest.mark.parametrize(("partitioning", "number"), [("hash", 4), ("rebalance", 7)])
def test_key_groups_limit_advice_only_for_hashed_tuples(partitioning, number):
    """Eight groups on five to seven subtasks are two on the busiest, as on four."""
    operators = [
        Operator("src", rate=1e4),
        Operator("map", ipt=1.5e6, max_parallelism=8),
        Operator("sink"),
    ]
    streams = [
        Stream("src", "map", partitioning=partitioning),
        Stream("map", "sink", partitioning="forward"),
    ]
    problem = Problem(StreamGraph.of("g", operators, streams), edge(cores=7))
    advice = explained(problem, 0, 0, 0).parallelism
    assert (advice.operators, advice.parallelism) == (("map", "sink"), number)


def test_subtasks_are_not_split_again():
    """Of a subtask nobody can have two; its operator is not known any more."""
    graph = with_parallelism(clicks().at_rate(6e4), np.array([1, 2, 1], np.int32))
    problem = expand(graph).problem(Problem(graph, edge(cores=8)))
    answer = explained(problem, 0, 0, 0, 0)
    assert answer.bottleneck.kind == "core"
    assert answer.parallelism is None


def test_whoever_must_share_a_device_is_advised_to_move_together():
    rules = Constraints(pin={"v0": "d0"}, colocate=[{"v1", "v2"}])
    move = explained(Problem(chain(3, payload=0), Cluster.uniform(2), rules), 0, 0, 0).move
    assert move.operators == ("v1", "v2")


def test_cards_are_rows_of_the_table_where_they_have_a_limit():
    """With what they carry, as a share of the card; links that nobody limited have no load."""
    devices = [Device("edge", egress="50 Mbps"), Device("cloud", cores=4)]
    problem = Problem(clicks(), Cluster.of(devices, bandwidth=UNLIMITED_BPS))
    answer = explained(problem, 0, 1, 1)
    (card,) = answer.cards
    assert (card.device, card.kind, card.load) == ("edge", "egress", pytest.approx(1.28))
    assert card.streams[0].load == pytest.approx(1.28)
    assert "Tbps" not in str(answer.report())
    document = answer.document()
    assert document["links"][0]["bandwidth_bps"] is None
    assert document["cards"][0]["streams"] == [{"name": "kafka→parse", "load": card.load}]
    assert "links without a limit" in str(problem.cluster)


def beside(constant, cores=1, ipt=1e5):
    """Two operators of 1000 MIPS at full rate, of which the second uses some at any rate."""
    ends = [Operator("src", ipt=1e5, rate=1e4), Operator("commit", ipt=ipt, constant=constant)]
    graph = StreamGraph.of("beside", ends, [Stream("src", "commit")])
    return Problem(graph, Cluster.uniform(2, cores=cores))


def test_the_part_of_a_device_that_is_used_at_any_rate_is_told():
    answer = explained(beside(1500.0), 0, 0)
    assert answer.relative_throughput == pytest.approx(0.5)
    assert (answer.devices[0].load, answer.devices[0].constant) == pytest.approx((1.4, 0.6))
    assert answer.bottleneck.load == pytest.approx(1.4)
    assert "60.0 % at any rate" in str(answer.report())
    assert answer.move.value == 1.0
    assert answer.document()["devices"][0]["constant"] == pytest.approx(0.6)


def test_more_subtasks_share_what_one_core_uses_at_any_rate():
    """One subtask: 0.5 + 0.8 · x of a core. Two: 0.25 + 0.4 · x, which fits."""
    answer = explained(beside(1250.0, cores=4, ipt=2e5), 0, 0)
    assert answer.bottleneck.kind == "core"
    assert answer.bottleneck.load == pytest.approx(1.3)
    assert answer.bottleneck.constant == pytest.approx(0.5)
    assert answer.relative_throughput == pytest.approx(0.625)
    assert (answer.parallelism.operators, answer.parallelism.parallelism) == (("commit",), 2)
    assert answer.parallelism.relative_throughput == 1.0


ASK = Operator("ask", ipt=5e3, max_rate=6e3)


def asking(*ask, rate=1e4, source=0.0, **more):
    """A source and look-ups on devices of one core each."""
    operators = [Operator("src", ipt=1e4, rate=rate, max_rate=source), *(ask or (ASK,))]
    streams = [Stream("src", row.name, partitioning="rebalance") for row in operators[1:]]
    return Problem(StreamGraph.of("asking", operators, streams), Cluster.of([Device("d0", **more)]))


def test_the_limit_is_told_and_not_a_core():
    problem = asking()
    answer = explained(problem, 0, 0)
    assert answer.relative_throughput == pytest.approx(0.6)
    limit = answer.bottleneck
    assert (limit.kind, limit.name, limit.load) == ("core", "d0", pytest.approx(10 / 6))
    assert "a subtask of ask" in answer.verdict
    document = answer.document()["bottleneck"]
    assert (document["max_rate"], document["emits"]) == (6000.0, False)
    picture = OBJECTIVES["throughput"].pictured(problem, problem.placement([0, 0]))
    assert picture.operators.tolist() == [False, True]


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (asking(source=4e3), "subtask of src (emits at most 4000 tuples/s)"),
        (asking(rate=3e3), "subtask of ask (reads at most 6000 tuples/s) at 50.0 %"),
        (asking(ASK, Operator("tell", max_rate=6e3)), "at 166.7 %; as full: tell"),
    ],
)
def test_the_fullest_subtask_is_named(problem, words):
    """A source emits, others read; where all keep up, and where several are as full."""
    answer = explained(problem, *[0] * problem.n_operators)
    assert words in f"{answer.verdict} {' '.join(str(answer.report()).split())}"


def test_a_core_that_is_fuller_than_the_limit_is_the_bottleneck():
    answer = explained(asking(Operator("ask", ipt=5e5, max_rate=6e3), cores=4), 0, 0)
    assert "one core of d0 is the limit" in answer.verdict
    assert "max_rate" not in answer.document()["bottleneck"]
    assert answer.parallelism.parallelism == 2


def test_more_subtasks_on_the_same_core_are_advised():
    answer = explained(asking(rate=2e4), 0, 0)
    assert answer.parallelism.operators == ("ask",)
    assert answer.parallelism.parallelism == 4
    assert answer.parallelism.relative_throughput == 1.0


def test_advice_counts_the_limit_beside_a_constant_load():
    """A subtask has half a core, which is enough; four subtasks read 6000 tuples/s each."""
    problem = asking(Operator("ask", ipt=5e3, max_rate=6e3, constant=1250), rate=2e4)
    answer = explained(problem, 0, 0)
    assert answer.bottleneck.load == pytest.approx(20 / 6)
    assert answer.bottleneck.constant == 0.0
    assert answer.parallelism.parallelism == 4
    assert answer.parallelism.relative_throughput == 1.0
