"""Groups and resources of placements; placements as files and names of tasks have them."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.pin.pinning import (
    INDEXES,
    MOST_PER_DEVICE,
    SpreadLimits,
    cluster_settings,
    future_devices,
    offers,
    pinning,
)
from streamplace.errors import PlacementError
from streamplace.io.graphs import write_graph
from streamplace.model import Operator, Stream, StreamGraph

DEVICES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("vectors", "groups"),
    [
        # a group is a processing element; parallelism inside it is free
        ({"src": ["a"], "map": ["a", "a"], "sink": ["b"]}, {"src": "a", "map": "a", "sink": "b"}),
        # so that Flink may fuse them; equal counts in another order are another group
        (
            {"u": ["a", "b"], "v": ["a", "b"], "w": ["b", "a"]},
            {"u": "spread-0", "v": "spread-0", "w": "spread-1"},
        ),
    ],
)
def test_operators_that_are_placed_alike_share_a_group(
    vectors: dict[str, list[str]], groups: dict[str, str]
) -> None:
    answer = pinning(Layout(vectors), SpreadLimits.untouched(DEVICES))
    assert answer.operators == groups
    assert answer.parallelism == {name: len(devices) for name, devices in vectors.items()}


def test_a_device_is_not_called_like_a_group_of_spread_operators() -> None:
    """Its operators would be in that group."""
    layout = Layout({"u": ["a", "spread-0"], "v": ["spread-0"]})
    with pytest.raises(PlacementError, match="'spread-0' has the name of a group of spread oper"):
        pinning(layout, SpreadLimits.untouched(["a", "spread-0"]))


def test_spread_groups_take_what_is_left() -> None:
    """What other jobs hold is left alone."""
    vectors = {"u": ["a", "b"], "v": ["b", "a"]}
    limits = SpreadLimits.untouched(DEVICES)
    limits.indexes["a"] &= {1, 4, 9}
    limits.indexes["b"] &= {2, 4, 9}
    groups = pinning(Layout(vectors), limits).groups.values()
    assert [demand.keys() & {"lim-4", "lim-9"} for demand in groups] == [{"lim-4"}, {"lim-9"}]
    with pytest.raises(PlacementError, match="over 'a', 'b': no group indexes are free on all"):
        pinning(Layout(vectors), limits)


def test_uneven_groups_use_up_layers_only_where_they_have_less_than_elsewhere() -> None:
    """Even ones none at all, and groups that share no device the same ones."""
    limits = SpreadLimits.untouched([*DEVICES, "d"], layers=1)
    pinning(Layout({"even": ["a", "b"], "same": ["b", "a"], "ab": ["a", "a", "b"]}), limits)
    pinning(Layout({"ba": ["b", "b", "a"], "cd": ["c", "d", "d"]}), limits)
    assert limits.layers == {"a": set(), "b": set(), "c": set(), "d": {0}}
    with pytest.raises(PlacementError, match="over 'b': no layers for uneven numbers"):
        pinning(Layout({"again": ["a", "a", "b"]}), limits)


class TaskManager:
    """What Flink keeps of a TaskManager: what is left of each resource."""

    def __init__(self, left: dict[str, int]) -> None:
        self.left = left

    def fits(self, demand: dict[str, int]) -> bool:
        """Whether a slot can be cut from it."""
        return all(self.left.get(name, 0) >= amount for name, amount in demand.items())

    def take(self, demand: dict[str, int]) -> None:
        """Cut a slot."""
        for name, amount in demand.items():
            self.left[name] -= amount


def filled(
    managers: dict[str, TaskManager], demands: Sequence[dict[str, int]], slots: list[int]
) -> list[Counter[str]]:
    """Number of slots by TaskManager, each on the first in a random order that fits."""
    random, found = Random(repr(slots)), [Counter[str]() for _ in demands]
    for j in slots:
        device = random.choice([d for d in managers if managers[d].fits(demands[j])])
        managers[device].take(demands[j])
        found[j][device] += 1
    return found


@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 7), min_size=n, max_size=n).filter(any), max_size=6
        )
    ),
    st.integers(0, 2),
    st.randoms(use_true_random=False),
)
def test_any_order_of_slots_ends_with_the_counts(
    vectors: list[list[int]], room: int, random: Random
) -> None:
    """Several groups at once, slots in random order, each on a random TaskManager that fits.

    Devices that came later, and those that are not prepared, take none.
    """
    size = len(vectors[0]) if vectors else 2
    devices = [f"dev-{d}" for d in range(size)]
    every = [*devices, *future_devices(devices, room)]
    limits = SpreadLimits.untouched(every, layers=len(vectors))
    managers = {d: TaskManager(offers(d, every, len(vectors))) for d in every}
    managers["bare"] = TaskManager({"dev-bare": 10_000})
    wanted = [{d: n for d, n in zip(devices, vector, strict=True) if n} for vector in vectors]
    demands = [limits.take(counts) for counts in wanted]
    slots = [j for j, counts in enumerate(wanted) for _ in range(sum(counts.values()))]
    random.shuffle(slots)
    assert [dict(counts) for counts in filled(managers, demands, slots)] == wanted
    for demand in demands:  # and there is no room for one more
        assert not any(manager.fits(demand) for manager in managers.values())


@pytest.mark.parametrize("count", [7, 500, 998, MOST_PER_DEVICE])
def test_the_limit_is_exact_up_to_the_largest_count(count: int) -> None:
    """Count slots fit, one more does not, be it the largest number of the group or not."""
    demand = SpreadLimits.untouched(["a", "b"]).take({"a": count, "b": MOST_PER_DEVICE})
    for device, number in {"a": count, "b": MOST_PER_DEVICE}.items():
        offered = offers(device, ["a", "b"])
        assert min(offered[name] // amount for name, amount in demand.items()) == number


def test_what_the_scheme_cannot_count_is_refused() -> None:
    """More slots than the amounts can tell apart, and devices that are not there."""
    for counts, told in (({"a": 1000}, "at most 999"), ({"z": 1}, "'z' is not a device")):
        with pytest.raises(PlacementError, match=told):
            SpreadLimits.untouched(["a"]).take(counts)


def test_what_a_task_manager_offers_does_not_grow_with_the_cluster() -> None:
    """Of a hundred devices, with room for ten more; beyond 256 each needs to be named once."""
    sizes = {n: len(offers("dev-0", [f"dev-{i}" for i in range(n)])) for n in (5, 100, 1000)}
    assert sizes[5] == 1 + INDEXES + 5 * INDEXES
    assert sizes[100] < sizes[5] * 1.3
    assert sizes[1000] == 1 + INDEXES + 1000
    written = cluster_settings([f"dev-{i}" for i in range(100)], room=10)
    assert len(written) == 110
    assert max(map(len, written.values())) < 20_000


LONG = f"m#{'9' * 5000}"


@pytest.mark.parametrize(
    ("assignment", "vectors"),
    [
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
    ids=["subtasks", "sorted by name", "a long number", "arrows within names"],
)
def test_a_placement_is_read_by_operators(
    assignment: dict[str, str], vectors: dict[str, list[str] | str]
) -> None:
    """The job knows fused operators by their own names, and subtasks by numbers without gaps."""
    assert Layout.of(assignment).to_json() == vectors


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
        layout = Layout.read(tmp_path / "p.json")
        numbers = {name: len(devices) for name, devices in layout.items()}
        assert numbers == {"src": 1, "map": 4, "trim": 4, "out": 2}
        assert not layout.uncounted
        for kind, written in (("json", "q"), ("flink", "f")):
            options = ("--graph", "graph.json", "--devices", "2", "--to", kind, "-o", written)
            run("export", "p.json", *options)
        assert Layout.read(tmp_path / "q") == layout
        assert Layout.read(tmp_path / "f" / "placement.json") == layout


@pytest.mark.parametrize(
    ("assignment", "told"),
    [({"m#0": "a", "m#1": "b"}, "'m' has 2 placed subtasks"), ({"k": "a"}, "'m' has 0 placed")],
)
def test_numbers_of_subtasks_that_contradict_the_placement_are_refused(
    assignment: dict[str, str], told: str
) -> None:
    with pytest.raises(PlacementError, match=told):
        Layout.of(assignment, {"m": 3})
