from collections.abc import Callable
from pathlib import Path

import pytest
from fake_flink import FakeFlink, job

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.pin.pinning import (
    pinning,
)
from streamplace.engines.flink.pin.spread import SpreadLimits
from streamplace.engines.flink.rest.plan import read_plan
from streamplace.errors import PlacementError
from streamplace.io.graphs import write_graph
from streamplace.model import Operator, Stream, StreamGraph

DEVICES = ["a", "b", "c"]


def test_operators_on_one_device_share_its_group() -> None:
    """A group is a processing element; parallelism inside it is free."""
    answer = pinning(
        Layout({"src": ["a"], "map": ["a", "a"], "sink": ["b"]}), SpreadLimits.untouched(DEVICES)
    )
    assert answer.operators == {"src": "a", "map": "a", "sink": "b"}
    assert answer.parallelism == {"src": 1, "map": 2, "sink": 1}
    assert answer.spread == {}


def test_operators_placed_alike_subtask_by_subtask_share_a_spread_group() -> None:
    """So that Flink may fuse them; equal counts in another order are another group."""
    answer = pinning(
        Layout({"u": ["a", "b"], "v": ["a", "b"], "w": ["b", "a"]}), SpreadLimits.untouched(DEVICES)
    )
    assert answer.operators == {"u": "spread-0", "v": "spread-0", "w": "spread-1"}


def test_spread_groups_take_what_is_left() -> None:
    """What other jobs hold is left alone, and running out of it is told by where it is scarce."""
    vectors = {"u": ["a", "b"], "v": ["b", "a"]}
    limits = SpreadLimits.untouched(DEVICES)
    limits.indexes["a"] &= {1, 4, 9}
    limits.indexes["b"] &= {2, 4, 9}
    groups = pinning(Layout(vectors), limits).groups
    assert [min(demand) for demand in groups.values()] == ["lim-0-dev-c", "lim-0-dev-c"]
    assert [{"lim-4", "lim-9"} & set(demand) for demand in groups.values()] == [
        {"lim-4"},
        {"lim-9"},
    ]
    with pytest.raises(PlacementError, match="no one number of the group indexes is free on all"):
        pinning(Layout(vectors), limits)
    limits.indexes["a"].clear()
    with pytest.raises(PlacementError, match="TaskManager 'a' has no free group indexes left"):
        pinning(Layout(vectors), limits)


def test_uneven_groups_use_up_layers_only_where_they_have_less_than_elsewhere() -> None:
    """Even ones none at all, and groups that share no device the same ones."""
    limits = SpreadLimits.untouched([*DEVICES, "d"], layers=1)
    pinning(Layout({"even": ["a", "b"], "same": ["b", "a"], "ab": ["a", "a", "b"]}), limits)
    pinning(Layout({"ba": ["b", "b", "a"], "cd": ["c", "d", "d"]}), limits)
    assert limits.layers == {"a": set(), "b": set(), "c": set(), "d": {0}}
    with pytest.raises(PlacementError, match="'b' has no free layers for uneven numbers"):
        pinning(Layout({"again": ["a", "a", "b"]}), limits)


LONG = f"m#{'9' * 5000}"


@pytest.mark.parametrize(
    ("assignment", "vectors"),
    [
        (
            {"src -> trim": "a", "map -> out#0": "a", "map -> out#1": "b"},
            {"src": "a", "trim": "a", "map": ["a", "b"], "out": ["a", "b"]},
        ),
        ({"m#0": "a", "m#1": "b", "n#1": "c", "k": "a"}, {"m": ["a", "b"], "n#1": "c", "k": "a"}),
        (
            {f"m#{i}": f"d{i}" for i in sorted(range(11), key=str)},
            {"m": [f"d{i}" for i in range(11)]},
        ),
        ({"m#0": "a", LONG: "b"}, {"m": ["a"], LONG: "b"}),
        (
            {"Calc(select=[id -> start, x]) -> out": "a", "in": "b"},
            {"Calc(select=[id -> start, x])": "a", "out": "a", "in": "b"},
        ),
    ],
    ids=["fused operators", "subtasks", "sorted by name", "a long number", "arrows within names"],
)
def test_a_placement_is_read_by_operators(
    assignment: dict[str, str], vectors: dict[str, list[str] | str]
) -> None:
    """The job knows fused operators by their own names, and subtasks by numbers without gaps."""
    assert Layout.of(assignment) == vectors


@pytest.mark.parametrize(
    ("name", "tree", "operators"),
    [
        (
            "Source: orders -> parsed -> parsed -> scored",
            "Source: orders -&gt; parsed<br/>+- parsed -&gt; scored<br/>",
            ["orders -> parsed", "parsed -> scored"],
        ),
        ("[a -> b] -> c", "[a -&gt; b]<br/>+- c<br/>", ["[a -> b]", "c"]),
        ("parsed -> scored", "parsed -&gt; scored<br/>", ["parsed -> scored"]),
        ("[x] -> (y, z)", "[x]<br/>:- y<br/>+- z<br/>", ["[x]", "y", "z"]),
    ],
)
def test_operators_whose_names_contain_arrows_are_found_again(
    name: str, tree: str, operators: list[str]
) -> None:
    """By the name that their task has in graphs and placements."""
    document = job("shop", "RUNNING", {"v0": "RUNNING"})
    document["vertices"][0] |= {"name": name, "parallelism": 2}
    plan = {"plan": {"nodes": [{"id": "v0", "description": tree}]}}
    flink = FakeFlink({"GET /jobs/j": document, "GET /jobs/j/plan": plan})
    _, (task,), _ = read_plan(flink.rest, "j")
    layout = Layout({operator: ["a", "b"] for operator in operators})
    assert Layout.of({f"{task.name}#0": "a", f"{task.name}#1": "b"}) == layout
    graph = StreamGraph.of("shop", [Operator(task.name, rate=1.0, parallelism=2)], [])
    assert layout.by_task(graph).by_operator() == layout


def test_a_placement_file_says_how_many_subtasks_its_operators_have(
    run: Callable, tmp_path: Path
) -> None:
    """As the graph says it; fused operators and those of one subtask, too."""
    operators = [
        Operator("src", rate=10.0),
        Operator("map -> trim", parallelism=4),
        Operator("out", parallelism=2),
    ]
    streams = [Stream("src", "map -> trim"), Stream("map -> trim", "out")]
    write_graph(StreamGraph.of("pipe", operators, streams), tmp_path / "graph.json")
    for option in ((), ("--subtasks",)):
        dealt = ("--placer", "round-robin", "--devices", "2", *option)
        assert run("place", "graph.json", *dealt, "-o", "p.json").status == 0
        vectors = Layout.read(tmp_path / "p.json")
        assert {name: len(devices) for name, devices in vectors.items()} == {
            "src": 1,
            "map": 4,
            "trim": 4,
            "out": 2,
        }
        assert not any(isinstance(devices, str) for devices in vectors.values())
        for kind, written in (("json", "q"), ("flink", "f")):
            options = ("--graph", "graph.json", "--devices", "2", "--to", kind, "-o", written)
            run("export", "p.json", *options)
        assert Layout.read(tmp_path / "q") == vectors
        assert Layout.read(tmp_path / "f" / "placement.json") == vectors


@pytest.mark.parametrize(
    ("assignment", "told"),
    [({"m#0": "a", "m#1": "b"}, "'m' has 2 placed subtasks"), ({"k": "a"}, "'m' has 0 placed")],
)
def test_numbers_of_subtasks_that_contradict_the_placement_are_refused(
    assignment: dict[str, str], told: str
) -> None:
    with pytest.raises(PlacementError, match=told):
        Layout.of(assignment, {"m": 3})
