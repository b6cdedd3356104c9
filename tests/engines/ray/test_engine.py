"""Pipelines of real actors on a local Ray."""

import importlib.util

import pytest

from streamplace.engines.ray import RayEngine
from streamplace.engines.ray.actor import compute_for
from streamplace.engines.ray.pipeline import ActorError, ActorPipeline
from streamplace.errors import GraphError, SettingError
from streamplace.model import Cluster, Operator, Stream, StreamGraph

pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]
HEAVY = 4e6
NAMES = ("src", "left", "right", "join")
GRAPH = StreamGraph.of(
    "diamond",
    [
        Operator("src", ipt=1e5, payload=3000, rate=400),
        Operator("left", ipt=HEAVY, payload=500),
        Operator("right", ipt=HEAVY, payload=500),
        Operator("join", ipt=1e5),
    ],
    [
        Stream("src", "left", 0.5),
        Stream("src", "right", 0.25),
        Stream("left", "join", 0.3),
        Stream("right", "join", 2.0),
    ],
)
TOGETHER = dict.fromkeys(NAMES, "dev-0")
APART = dict(zip(NAMES, ("dev-0", "dev-1", "dev-2", "dev-1"), strict=True))


@pytest.mark.slow
def test_no_tuple_is_lost_or_doubled_by_moving(ray_engine: RayEngine) -> None:
    """Counts go along, to and fro; between two operators there is what the selectivities say."""
    job = ray_engine.apply(GRAPH, TOGETHER)
    for placement in (APART, TOGETHER, APART):
        before = ray_engine.counts(job)
        ray_engine.move(job, GRAPH, placement)
        assert ray_engine.verify(job, placement).fine
        after = ray_engine.counts(job)
        assert all(after[name].tuples >= before[name].tuples for name in NAMES)
    generated = after["src"].tuples
    assert after["src"].received == {}
    assert after["left"].received == {0: int(generated * 0.5 + 1e-9)}
    assert after["right"].received == {1: int(generated * 0.25 + 1e-9)}
    assert after["join"].received == {
        2: int(after["left"].tuples * 0.3 + 1e-9),
        3: after["right"].tuples * 2,
    }
    assert after["join"].tuples == sum(after["join"].received.values())
    assert not any(counts.faults for counts in after.values())
    ray_engine.cancel(job)


@pytest.mark.slow
def test_a_device_has_as_much_cpu_as_it_says(ray_engine: RayEngine) -> None:
    """3.1 core seconds per second are offered to one core: the sources are held back."""
    job = ray_engine.apply(GRAPH, TOGETHER)
    measured = ray_engine.measure(job, 2.0)
    ray_engine.cancel(job)
    cpu = dict(zip(measured.graph.operators.name, measured.graph.operators.ipt, strict=True))
    assert cpu["left"] == pytest.approx(HEAVY, rel=0.2)
    assert cpu["right"] == pytest.approx(HEAVY, rel=0.2)
    assert measured.is_limited
    assert measured.graph.source_rate * 1.3 * HEAVY / 2 < 1000e6
    assert any("rate of src: held back" in note for note in measured.notes)


@pytest.mark.slow
def test_what_another_job_takes_is_not_left_for_this(ray_engine: RayEngine) -> None:
    """The devices of the other job are that much slower."""
    small = StreamGraph.of("small", [Operator("a", ipt=1e5, rate=10)], [])
    large = StreamGraph.of("large", [Operator("b", ipt=HEAVY, rate=100)], [])
    job = ray_engine.apply(small, {"a": "dev-0"})
    other = ray_engine.apply(large, {"b": "dev-1"})
    left = ray_engine.measure(job, 2.0).cluster.devices
    assert left.speed[1] < left.speed[0] == left.speed[2] == 1000
    for one in (job, other):
        ray_engine.cancel(one)


@pytest.mark.slow
def test_a_pipeline_that_cannot_move_goes_on_where_it_ran(
    ray_engine: RayEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new actors are there, and their senders do not learn of it."""
    job = ray_engine.apply(GRAPH, TOGETHER)
    connect, failures = ActorPipeline._connect, ["right does not start"]

    def broken_once(self: ActorPipeline) -> None:
        if failures:
            raise ActorError(failures.pop())
        connect(self)

    monkeypatch.setattr(ActorPipeline, "_connect", broken_once)
    with pytest.raises(ActorError, match="right does not start"):
        ray_engine.move(job, GRAPH, APART)
    assert ray_engine.verify(job, TOGETHER).fine
    first = ray_engine.counts(job)
    ray_engine.measure(job, 1.0)
    second = ray_engine.counts(job)
    assert second["join"].tuples > first["join"].tuples
    assert not any(counts.faults for counts in second.values())
    ray_engine.cancel(job)


@pytest.mark.parametrize(
    ("operator", "fault"),
    [
        (Operator("a", rate=1, parallelism=2), "'a' has 2 subtasks"),
        (Operator("a", rate=1, fires="all"), "'a' does not fire for every tuple"),
        (Operator("a", rate=1, constant=50), "'a' has a constant load; Ray actors compute only"),
        (Operator("a", rate=1, max_rate=50), "'a' has a max_rate; Ray actors process tuples as"),
    ],
)
def test_graphs_that_actors_cannot_run_are_refused(operator: Operator, fault: str) -> None:
    """Before Ray is asked for anything."""
    engine = RayEngine(Cluster.uniform(2))
    with pytest.raises(GraphError, match=fault):
        engine.apply(StreamGraph.of("g", [operator], []), {"a": "d0"})
    assert engine.jobs() == []


@pytest.mark.slow
def test_a_job_goes_on_with_its_own_graph_only(ray_engine: RayEngine) -> None:
    job = ray_engine.apply(GRAPH, TOGETHER)
    other = StreamGraph.of("other", [Operator("src", rate=1)], [])
    with pytest.raises(SettingError, match="runs another graph than 'other'"):
        ray_engine.move(job, other, {"src": "dev-0"})
    ray_engine.cancel(job)
    with pytest.raises(SettingError, match=f"there is no job '{job}'; running jobs: none"):
        ray_engine.verify(job, TOGETHER)


def test_an_engine_that_does_not_run_says_so() -> None:
    with pytest.raises(SettingError, match="Ray is not running"):
        RayEngine(Cluster.uniform(2)).apply(GRAPH, TOGETHER)
    with pytest.raises(SettingError, match="at most 16 devices, not 17"):
        RayEngine(Cluster.uniform(17))


def test_computing_takes_its_share_of_the_core() -> None:
    """What was computed is at least what was asked for."""
    assert compute_for(0.05, 0.5) >= 0.05
