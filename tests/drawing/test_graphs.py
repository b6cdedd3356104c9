import itertools
import xml.etree.ElementTree as ET

import hostile
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import PROBLEMS, chain

from streamplace.drawing.figures import DEVICE_COLOURS, LIMIT
from streamplace.drawing.graphs import draw_graph, draw_placements
from streamplace.drawing.scene import Curve, Label, Rectangle
from streamplace.drawing.style import cut_to, text_width
from streamplace.errors import FormatError, SettingError
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph

SVG = "{http://www.w3.org/2000/svg}"


def boxes(drawing):
    """Boxes of operators: what shows a hint."""
    shapes = drawing.scene.shapes
    return [shape for shape in shapes if isinstance(shape, Rectangle) and shape.hint]


def curves(drawing):
    """Streams."""
    return [shape for shape in drawing.scene.shapes if isinstance(shape, Curve) and shape.hint]


def labels(drawing):
    """All texts."""
    return [shape for shape in drawing.scene.shapes if isinstance(shape, Label)]


def inside(label, box):
    """Whether a text begins within a box."""
    return box.x < label.x < box.x + box.width and box.y < label.y < box.y + box.height


def placed(name):
    """A problem of the tests, all operators as near to the first device as they may be."""
    problem = PROBLEMS[name]
    zeros = problem.repaired(np.zeros(problem.n_operators, np.int32))
    return draw_placements(problem, [("mine", problem.placement(zeros))])


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_kind_of_problem_is_drawn_and_texts_fit_their_boxes_and_the_page(name):
    """With a box per operator and a curve per stream; by the widest of common fonts."""
    graph = PROBLEMS[name].graph
    for drawing in (draw_graph(graph), placed(name)):
        assert len(boxes(drawing)) == graph.n_operators
        assert len(curves(drawing)) == graph.n_streams
        ET.fromstring(drawing.svg())
        for label in labels(drawing):
            width = text_width(label.text, label.size, label.bold)
            left = label.x - width / 2 if label.centred else label.x
            assert left >= 0
            assert left + width <= drawing.scene.width
            for box in boxes(drawing):
                if inside(label, box):
                    assert box.x <= left
                    assert left + width <= box.x + box.width


@given(st.lists(hostile.names, min_size=3, max_size=3, unique=True), hostile.names)
def test_hostile_names_are_text(names, title):
    """Whatever names say, there are as many elements, none of them a script or a link."""
    operators = [Operator(n, ipt=1e5, rate=1e4 if i == 0 else 0) for i, n in enumerate(names)]
    streams = [Stream(a, b) for a, b in itertools.pairwise(names)]
    problem = Problem(StreamGraph.of(title, operators, streams), Cluster.uniform(2))
    drawing = draw_placements(problem, [(title, problem.placement([0, 1, 1]))])
    root = ET.fromstring(drawing.svg())
    assert {element.tag for element in root.iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "title", "rect", "path", "text")
    }
    assert len(list(root.iter(f"{SVG}text"))) == len(labels(drawing))
    assert all("\n" not in label.text for label in labels(drawing))


def cut_diamond():
    """A diamond with its source alone on a device."""
    problem = PROBLEMS["diamond"]
    return draw_placements(problem, [("p", problem.placement([0, 1, 1, 1]))])


def test_dashed_streams_cross_the_network_and_colours_are_devices():
    drawing = cut_diamond()
    assert [box.fill for box in boxes(drawing)] == [DEVICE_COLOURS[d] for d in (0, 1, 1, 1)]
    dashed = {curve.hint.partition(":")[0]: curve.dashed for curve in curves(drawing)}
    assert dashed == {"src→left": True, "src→right": True, "left→sink": False, "right→sink": False}
    keys = [shape.text for shape in labels(drawing)]
    assert "crosses the network" in keys
    assert any(text.startswith("d1 CPU") for text in keys)
    assert drawing._repr_svg_() == drawing.svg()  # what notebooks show


@pytest.mark.parametrize(
    ("devices", "limited"),
    [((0, 0, 0, 0), {"src", "left", "right", "sink"}), ((0, 1, 2, 0), set())],
)
def test_a_full_device_has_red_operators(devices, limited):
    graph = PROBLEMS["diamond"].graph.at_rate(12_000)
    problem = Problem(graph, Cluster.uniform(3))
    drawing = draw_placements(problem, [("p", problem.placement(devices))])
    red = {box.hint.split()[0] for box in boxes(drawing) if box.stroke == LIMIT}
    assert red == limited


def test_streams_of_a_full_link_are_red():
    problem = PROBLEMS["diamond"]
    graph = problem.graph.at_rate(9_000)
    narrow = Problem(graph, Cluster.uniform(2, bandwidth="100 Mbps"))
    drawing = draw_placements(narrow, [("p", narrow.placement([0, 1, 0, 0]))])
    red = {c.hint.partition(":")[0] for c in curves(drawing) if c.colour == LIMIT}
    assert red == {"src→left"}


def test_chains_of_a_large_graph_share_a_box_unless_a_placement_cuts_them():
    graph = chain(600)
    problem = Problem(graph, Cluster.uniform(2))
    halves = problem.placement(np.arange(600) // 300)
    assert len(boxes(draw_graph(graph))) == 1
    drawing = draw_placements(problem, [("halves", halves)])
    assert [box.fill for box in boxes(drawing)] == list(DEVICE_COLOURS[:2])
    assert "v0 +299" in [label.text for label in labels(drawing)]


def test_a_graph_too_large_to_see_is_refused():
    with pytest.raises(SettingError, match="5000"):
        draw_graph(chain(5001))


def test_equal_drawings_are_equal_bytes(tmp_path):
    for name in ("a.svg", "b.svg"):
        cut_diamond().save(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.svg").stat().st_size > 1000


def test_a_file_without_a_known_suffix_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"two\\nlines\.txt: .*\.svg or \.html"):
        cut_diamond().save(tmp_path / "two\nlines.txt")


COMMON = st.text(
    st.characters(max_codepoint=0x4FF, categories=["Lu", "Ll", "Nd", "Po", "Ps", "Pe", "Sm"]),
    max_size=20,
)


@pytest.mark.filterwarnings("ignore:Glyph")
@given(COMMON)
def test_no_text_is_wider_than_said(text):
    """The font that matplotlib brings, and browsers on Linux use, is the measure."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    if not text.strip():
        return
    for bold in (False, True):
        font = FontProperties(family="DejaVu Sans", size=100, weight="bold" if bold else "normal")
        width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
        assert text_width(text, 100, bold) >= 0.99 * width


@given(st.text(max_size=60), st.floats(30, 300))
def test_a_text_that_was_cut_fits(text, widest):
    cut = cut_to(text, 12, widest)
    assert text_width(cut, 12) <= widest
    assert (cut == text) == (text_width(text, 12) <= widest)


@pytest.mark.parametrize("n", [3, 12, 407])
def test_names_that_differ_at_their_ends_differ_when_cut(n):
    a, b = (f"a_task_with_a_long_name_{i:08d}" for i in (n, n + 1))
    assert cut_to(a, 12, 120) != cut_to(b, 12, 120)
