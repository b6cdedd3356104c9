"""Where Flink itself would run the subtasks of a job: by the rules, and on a real cluster."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from flink_clusters import pipeline
from hypothesis import given
from hypothesis import strategies as st

from streamplace import Operator, Stream, StreamGraph
from streamplace.engines.flink.decide.candidates import (
    MODE_SETTING,
    MODES,
    Mode,
    balanced_bundles,
    layouts,
    local_bundles,
)
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import local_cluster
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import layout_of

DEVICES = ["dev-0", "dev-1", "dev-2"]
SLOTS = dict.fromkeys(DEVICES, 4)


def chain(*parallelism: int, kind: str = "rebalance", groups: str = "") -> StreamGraph:
    """Operators op0 → op1 → … of these parallelisms; a letter of groups for each."""
    operators = [
        Operator(
            f"op{i}",
            rate=float(not i),
            parallelism=p,
            slot_sharing_group=groups[i : i + 1],
        )
        for i, p in enumerate(parallelism)
    ]
    streams = [
        Stream(f"op{i}", f"op{i + 1}", partitioning=kind) for i in range(len(parallelism) - 1)
    ]
    return StreamGraph.of("chain", operators, streams)


def numbers(layout: Layout) -> list[int]:
    """Subtasks on each device that has any, the fewest first."""
    return sorted(Counter(device for devices in layout.values() for device in devices).values())


def test_subtasks_share_a_slot_with_one_that_they_read_from() -> None:
    """The others open slots of their own, which later operators enter in order.

    Of four rescaled ones, the first two read from the first of two; groups share nothing.
    """
    assert local_bundles(chain(1, 2, 4)) == [
        [(0, 0), (1, 0), (2, 0)],
        [(1, 1), (2, 1)],
        [(2, 2)],
        [(2, 3)],
    ]
    assert local_bundles(chain(2, 4, kind="rescale")) == [
        [(0, 0), (1, 0)],
        [(0, 1), (1, 2)],
        [(1, 1)],
        [(1, 3)],
    ]
    assert local_bundles(chain(2, 2, groups="ab")) == [[(0, 0)], [(0, 1)], [(1, 0)], [(1, 1)]]


def test_tasks_deals_small_operators_in_turn() -> None:
    """Each begins after the last of the one before it; those of full parallelism begin at 0."""
    assert balanced_bundles(chain(1, 2, 4)) == [
        [(0, 0), (2, 0)],
        [(1, 0), (2, 1)],
        [(1, 1), (2, 2)],
        [(2, 3)],
    ]


@pytest.mark.parametrize(
    ("mode", "used"), [("NONE", [3, 9]), ("SLOTS", [3, 3, 6]), ("TASKS", [3, 9])]
)
def test_modes_fill_or_spread(mode: Mode, used: list[int]) -> None:
    """Four slots and three operators in each of the bundles, on devices of three slots."""
    found = layouts(chain(4, 4, 4), dict.fromkeys(DEVICES, 3), mode)
    assert {tuple(numbers(one)) for one in found} == {tuple(used)}


def test_slots_takes_the_share_of_slots_and_not_their_number() -> None:
    """Of six slots beside two, three are taken before the second of the two."""
    (found,) = {tuple(numbers(one)) for one in layouts(chain(4), {"a": 6, "b": 2}, "SLOTS")}
    assert found == (1, 3)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.sampled_from(MODES),
)
def test_layouts_are_complete_and_keep_to_the_slots(
    parallelism: list[int], slots: list[int], mode: Mode
) -> None:
    """No device has more subtasks of one operator than it has slots."""
    free = {f"d{i}": number for i, number in enumerate(slots)}
    found = layouts(chain(*parallelism), free, mode)
    assert bool(found) == (sum(slots) >= max(parallelism))
    for layout in found:
        assert [len(devices) for devices in layout.values()] == parallelism
        for devices in layout.values():
            assert all(number <= free[device] for device, number in Counter(devices).items())


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_real_cluster_does_the_same(mode: Mode, flink: Flink, graph_jar: Path) -> None:
    """As many subtasks on the devices, and subtasks in slots together, as in one of the layouts."""
    settings: dict[str, str | int | float] = {
        MODE_SETTING: mode,
        "taskmanager.numberOfTaskSlots": 4,
    }
    with local_cluster(flink, DEVICES, layers=0, settings=settings) as cluster:
        rest = Rest(cluster.url)
        jar = rest.upload(graph_jar)
        for parallelism in [(1, 2, 4), (3, 3, 3), (6, 6), (2, 5, 3)]:
            graph = chain(*parallelism)
            job = rest.run_jar(jar, "GraphJob", [json.dumps(pipeline(*parallelism))])
            rest.wait_running(job)
            ran = [*layout_of(rest, job, rest.running_job(job)).values()]
            together = balanced_bundles(graph) if mode == "TASKS" else local_bundles(graph)
            for bundle in together:
                assert len({ran[v][i] for v, i in bundle}) == 1
            slots = Counter(ran[v][i] for v, i in (bundle[0] for bundle in together))
            expected = layouts(graph, SLOTS, mode)
            assert sorted(slots.values()) in [_slots_of(one, together) for one in expected]
            rest.cancel(job)
            rest.wait_released()


def _slots_of(layout: Layout, together: list[list[tuple[int, int]]]) -> list[int]:
    rows = [*layout.values()]
    return sorted(Counter(rows[v][i] for v, i in (bundle[0] for bundle in together)).values())


def test_many_subtasks_are_bundled_as_few_are() -> None:
    """Each joins the first bundle that lacks its operator, in a time that grows as they do."""
    graph = chain(*[512] * 30)
    began = time.process_time()
    bundles = local_bundles(graph)
    assert time.process_time() - began < 2
    assert bundles == [[(v, i) for v in range(30)] for i in range(512)]
