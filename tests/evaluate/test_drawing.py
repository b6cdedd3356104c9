from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import PROBLEMS, chain, fork_join

from streamplace.drawing.figures import save
from streamplace.errors import FormatError, SettingError
from streamplace.evaluate.drawing import draw_placements
from streamplace.evaluate.layout import layered_layout
from streamplace.model import Cluster, Problem


def test_streams_always_point_right() -> None:
    """Every target stands right of its source."""
    for problem in PROBLEMS.values():
        graph = problem.graph
        x = layered_layout(graph)[:, 0]
        assert (x[graph.streams.source] < x[graph.streams.target]).all()


@given(st.integers(2, 12))
@settings(max_examples=10)
def test_no_two_operators_stand_on_each_other(branches: int) -> None:
    """Places are distinct."""
    at = layered_layout(fork_join(branches))
    assert len(np.unique(at, axis=0)) == len(at)


def test_equal_branches_do_not_cross() -> None:
    """The stages of a branch stand at one height."""
    graph = fork_join(5)
    at = layered_layout(graph)
    for b in range(5):
        first, second = (graph.operators.index(f"b{b}s{s}") for s in (1, 2))
        assert at[first, 1] == at[second, 1]


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_kind_of_problem_can_be_drawn(name: str, tmp_path: Path) -> None:
    """A panel per placement, titled with its throughput."""
    problem = PROBLEMS[name]
    zeros = problem.repaired(np.zeros(problem.n_operators, np.int32))
    shown: Sequence = [("one", problem.placement(zeros)), ("two", problem.placement(zeros))]
    figure = draw_placements(problem, shown)
    assert len(figure.axes) == 2
    assert figure.axes[0].get_title().startswith("one: ")
    save(figure, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_equal_figures_are_equal_bytes(tmp_path: Path) -> None:
    """SVGs carry no date and no random names."""
    problem = PROBLEMS["diamond"]
    for name in ("a.svg", "b.svg"):
        save(draw_placements(problem, [("p", problem.placement([0, 0, 1, 1]))]), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_graph_too_large_to_see_is_refused() -> None:
    """Five hundred operators are enough for a picture."""
    problem = Problem(chain(600), Cluster.uniform(2))
    with pytest.raises(SettingError, match="at most 500"):
        draw_placements(problem, [("p", problem.placement([0] * 600))])


def test_a_figure_without_a_known_suffix_is_refused(tmp_path: Path) -> None:
    """The formats are named."""
    problem = PROBLEMS["diamond"]
    figure = draw_placements(problem, [("p", problem.placement([0] * 4))])
    with pytest.raises(FormatError, match=r"\.png, \.svg, \.pdf"):
        save(figure, tmp_path / "x.txt")
