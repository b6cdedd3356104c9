from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.drawing.figures import finish, legend_text, line_style, panels, save, wrapped

HARD = ["metis", "pilot:weights=" + "a-folder/" * 12 + "best.safetensors", "x" * 150, "$a_b$"]


def chart(names, n_panels=1):
    """A line for every name in every panel."""
    figure, axes = panels([f"panel {i}" for i in range(n_panels)])
    for axis in axes:
        for i, name in enumerate(names):
            axis.plot([0, 1], [0, i], label=legend_text(name), **line_style(i))
    return finish(figure, "What it shows\nmine.jsonl: 12 graphs")


@pytest.mark.parametrize("n_panels", [1, 3])
@pytest.mark.parametrize("names", [HARD, [f"placer-{i}" for i in range(20)]])
def test_the_legend_is_whole_and_covers_no_axes(names, n_panels):
    figure = chart(names, n_panels)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    for axis in figure.axes:
        assert axis.get_tightbbox().y0 >= box.y1
        assert axis.get_window_extent().height > 150


def test_no_two_texts_of_a_legend_overlap():
    figure = chart(HARD, 3)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.legends[0].get_texts()]
    boxes += [text.get_window_extent() for text in figure.texts]
    boxes += [axis.title.get_window_extent() for axis in figure.axes]
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)


@given(st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=200))
def test_wrapping_loses_nothing_but_spaces(text):
    lines = wrapped(text, 20)
    assert lines.replace("\n", "").replace(" ", "") == text.replace(" ", "")
    assert all(len(line) <= 20 for line in lines.split("\n"))


def test_equal_charts_are_equal_files(tmp_path):
    for suffix in ("png", "svg", "pdf"):
        for name in ("a", "b"):
            save(chart(HARD), tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
