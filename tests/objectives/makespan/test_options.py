"""A makespan by other rules than the usual ones."""

import pytest

from streamplace.api import simulate
from streamplace.errors import SettingError
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import Condition, named_objective

FAN = StreamGraph.of(
    "fan",
    [Operator("src", ipt=1e9, payload=1e6), *(Operator(f"t{i}", ipt=1e9) for i in range(3))],
    [Stream("src", f"t{i}", payload=1e6) for i in range(3)],
    fires="all",
)
CLUSTER = Cluster.uniform(4, mips=1000, bandwidth=8e6)  # 1 s per operator, 1 s per stream
APART = {"src": "d0", "t0": "d1", "t1": "d2", "t2": "d3"}


@pytest.mark.parametrize(
    ("options", "seconds"),
    [("", 3), (":network=link", 3), (":network=sender", 5), (":network=port", 5)],
)
def test_the_network_is_an_option(options: str, seconds: float) -> None:
    """Free: all three streams at once; sender: one after the other."""
    problem = Problem(FAN, CLUSTER)
    told = simulate(problem, APART, objective=f"makespan{options}")
    assert told.value == pytest.approx(seconds)
    placement = problem.placement([0, 1, 2, 3])
    assert named_objective(f"makespan{options}").value(problem, placement) == told.value


def test_streams_of_differing_selectivity_are_messages_of_their_own() -> None:
    """One output goes to left and right, half of it to the third: two transfers, not three."""
    operators = [Operator("src", ipt=1e9, payload=1e6, rate=1.0)]
    operators += [Operator(name, ipt=1e9) for name in ("left", "right", "half")]
    streams = [Stream("src", "left"), Stream("src", "right"), Stream("src", "half", 0.5)]
    graph = StreamGraph.of("split", operators, streams)
    problem = Problem(graph, Cluster.uniform(2, mips=1000, bandwidth=8e6))
    judge = named_objective("makespan:network=sender")
    there = problem.placement([0, 1, 1, 1])
    told = judge.explained(problem, there).document()
    sent = sorted(transfer["arrival"] for transfer in told["transfers"])
    assert sent == pytest.approx([2, 2, 2.5])


def test_a_preset_has_an_order_of_its_own() -> None:
    """Priorities of a placement do not count there, as they do not in the papers' simulators."""
    problem = Problem(FAN, Cluster.uniform(1, mips=1000))
    first = problem.placement([0, 0, 0, 0], [0, 0, 0, 9])
    usual, preset = named_objective("makespan"), named_objective("makespan:preset=giph")
    starts = [
        judge.explained(problem, first).document()["schedule"]["t2"]["start"]
        for judge in (usual, preset)
    ]
    assert starts == [1, 3]
    assert (usual.ordered, preset.ordered) == (True, False)


def test_conditions_take_options_too() -> None:
    assert Condition.of("makespan:network=sender<=5s").text == "makespan:network=sender<=5"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("makespan:preset=heft", "has no preset 'heft'; it has giph, placeto, doppler"),
        ("makespan:speed=1", "has no option 'speed'; it has preset, queue, network"),
        ("makespan:queue=lifo", "queue is 'lifo'; choose one of fifo"),
        ("makespan:queue", "'queue' of objective makespan cannot be read; write KEY=VALUE"),
        ("makespan:queue=fifo:queue=rows", "given twice"),
        ("energy:preset=giph", "energy takes no options"),
        ("throughput:preset=giph", "throughput takes no options"),
        ("mkspan:preset=giph", "did you mean 'makespan'"),
    ],
)
def test_what_is_wrong_with_a_name_is_told(name: str, complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        named_objective(name)
