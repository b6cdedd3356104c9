from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.drawing.figures import empty_figure
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.makespan.gantt import common_prefixes, gantt, shortened
from streamplace.objectives.makespan.options import PassOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def drawn(payload: float, work: float = 2.5e9, n: int = 6) -> "tuple[str, Figure]":
    """Title and chart of a chain over two devices in turn."""
    names = [f"a_long_name_of_a_task_{i:08d}" for i in range(n)]
    operators = [Operator(name, ipt=work, payload=payload) for name in names]
    streams = [Stream(*pair) for pair in pairwise(names)]
    graph = StreamGraph.of("g", operators, streams, fires="all")
    problem = Problem(graph, Cluster.uniform(2))
    figure = empty_figure()
    placement = problem.placement([i % 2 for i in range(n)])
    return gantt(problem, placement, PassOptions(), figure), figure


def test_every_device_and_every_link_with_something_to_do_has_a_row() -> None:
    """A transfer of 100 MB takes as long as the task before it."""
    title, figure = drawn(payload=1e8)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == ["d0", "d1", "d0→d1", "d1→d0"]
    assert "left out" not in title


def test_the_names_of_tasks_are_cut_where_they_are_alike() -> None:
    """The end, which differs, is there."""
    _, figure = drawn(payload=0, n=12)
    tasks = {text.get_text() for text in figure.axes[0].texts}
    assert len(tasks) == 12
    assert all(text[-2:].isdigit() for text in tasks)


@given(st.lists(st.text("ab", max_size=12), unique=True, max_size=8), st.integers(3, 12))
def test_two_names_with_a_common_beginning_stay_different_at_their_ends(
    names: list[str], room: int
) -> None:
    """A cut name has no more characters than there is room for, and is a part of the name."""
    for name, shared in zip(names, common_prefixes(names), strict=True):
        text = shortened(name, room, shared)
        assert len(text) <= room
        assert text.replace("…", "") in name
        if len(name) <= room:
            assert text == name


@pytest.mark.parametrize(
    ("seconds", "unit"), [(1e-5, "microseconds"), (0.1, "milliseconds"), (10, "seconds"),
                          (1000, "minutes"), (20_000, "hours")]
)  # fmt: skip
def test_the_axis_has_the_unit_that_reads_best(seconds: float, unit: str) -> None:
    """Each task runs for a sixth of the time."""
    _, figure = drawn(payload=0, work=2.5e9 * seconds / 6)
    assert figure.axes[0].get_xlabel() == unit


def test_links_of_which_nothing_could_be_seen_are_left_out() -> None:
    """A hundred tasks at once, none of them but one on the way to the end."""
    names = [f"t{i}" for i in range(10)]
    operators = [Operator("a", ipt=1e3, payload=1), Operator("z", ipt=2.5e10)]
    operators += [Operator(name, ipt=1e3, payload=1) for name in names]
    graph = StreamGraph.of("g", operators, [Stream("a", name) for name in names], fires="all")
    problem = Problem(graph, Cluster.uniform(3))
    figure = empty_figure()
    row = [0, 0, *(1 + i % 2 for i in range(10))]
    title = gantt(problem, problem.placement(row), PassOptions(), figure)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == ["d0", "d1", "d2"]
    assert "2 links with little to do left out" in title
