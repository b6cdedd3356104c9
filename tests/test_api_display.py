"""What objects show when they are printed, in notebooks, and as tables of pandas."""

import re
import sys
from collections import Counter
from io import StringIO
from xml.etree import ElementTree

import pytest
from html_elements import Elements

import streamplace
from streamplace import (
    Cluster,
    Device,
    Operator,
    Problem,
    Stream,
    StreamGraph,
    StreamplaceError,
    compare,
    describe,
    place,
    simulate,
    simulate_queues,
)

EVIL = "<script>alert(1)</script>"
GRAPH = StreamGraph.of(
    "shop & co",
    [
        Operator("orders", ipt=1e5, payload=200, rate=1e4),
        Operator(EVIL, ipt=2e5, payload=100, about="counts <b>bold</b>"),
        Operator("sink", ipt=5e4),
    ],
    [Stream("orders", EVIL), Stream(EVIL, "sink", selectivity=0.5)],
)
TASKS = StreamGraph.of(
    "tasks", [Operator("load", ipt=1e6), Operator("add", ipt=2e6)], [Stream("load", "add")],
    fires="all",
)  # fmt: skip
NAMES = (
    "graph", "tasks", "problem", "cluster", "placement", "result", "pass", "explanation",
    "explanation of a pass", "plain explanation", "profile", "comparison", "queues", "report",
)  # fmt: skip
DRAWN = ("graph", "tasks", "problem", "result", "pass")


@pytest.fixture(scope="module")
def objects():
    """Objects that users meet, by name."""
    result = place(GRAPH, 3, placer="metis-oracle")
    return {
        "graph": GRAPH,
        "tasks": TASKS,
        "problem": Problem(GRAPH, Cluster.uniform(2)),
        "cluster": Cluster.of([Device("box"), Device("gpu", 9000, tags={EVIL}, memory="16 GB")]),
        "placement": result.placement,
        "result": result,
        "pass": place(TASKS, 2, placer="heft"),
        "explanation": simulate(GRAPH, result, 3),
        "explanation of a pass": place(TASKS, 2, placer="heft").explain(),
        "plain explanation": place(GRAPH, 2, placer="metis", objective="devices").explain(),
        "profile": describe([GRAPH, GRAPH.at_rate(5)]),
        "comparison": compare([GRAPH], "metis,round-robin", 2),
        "queues": simulate_queues(GRAPH, result, 3, duration=2),
        "report": result.report(),
    }


@pytest.mark.parametrize("name", NAMES)
def test_print_shows_no_control_characters_and_repr_a_short_line(objects, name):
    lines = str(objects[name]).split("\n")
    assert all(line.isprintable() for line in lines)
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines)
    text = repr(objects[name])
    assert text.startswith("<")
    assert text.isprintable()
    assert len(text) <= 120


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_show_tables_without_scripts_and_whole_pictures(objects, name):
    html = objects[name]._repr_html_()
    elements = Elements(html).elements
    opened = Counter(tag for tag, _ in elements)
    assert "script" not in opened
    assert "<b>bold" not in html
    assert not [a for _, attributes in elements for a in attributes if a.startswith("on")]
    for tag in ("div", "table", "tr", "td", "p"):
        assert opened[tag] == html.count(f"</{tag}>"), tag
    assert ("svg" in opened) == (name in DRAWN)
    if name in DRAWN:
        svg = objects[name]._repr_svg_()
        assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_graph_too_large_to_read_has_no_picture():
    many = [Operator("s", rate=1.0), *(Operator(f"v{i}") for i in range(1500))]
    star = StreamGraph.of("star", many, [Stream("s", f"v{i}") for i in range(1500)])
    assert star._repr_svg_() is None
    assert "and 1489 more" in star._repr_html_()


def test_print_shows_what_the_commands_show(objects, run):
    def printed(*words):
        return "\n".join(line.rstrip() for line in run(*words).out.splitlines())

    streamplace.write_graph(GRAPH, "graph.json")
    result = objects["result"]
    streamplace.write_placement(result.placement, "placement.json")
    size = ["--devices", "3"]
    placed = printed("place", "graph.json", *size, "--placer", "metis-oracle")
    assert without_time(placed) == without_time(str(result))
    explained = printed("simulate", "graph.json", "placement.json", *size)
    assert explained.splitlines()[1:] == str(simulate(GRAPH, result, 3)).splitlines()[1:]
    described = printed("describe", "graph.json")
    assert described.splitlines()[1:] == str(describe(GRAPH)).splitlines()[1:]


def without_time(text):
    return re.sub(r"search time [\d.]+ \S+", "", " ".join(text.split()))


@pytest.mark.parametrize(
    ("name", "rows"),
    [("cluster", 2), ("explanation", 3), ("explanation of a pass", 2), ("plain explanation", 3),
     ("profile", 2), ("comparison", 2)],
)  # fmt: skip
def test_tables_of_pandas_have_a_row_each(objects, name, rows):
    pytest.importorskip("pandas")
    assert len(objects[name].to_pandas()) == rows


class Terminal(StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self):
        """Return true."""
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (StringIO, False)])
def test_terminals_show_progress(stream, shown, monkeypatch):
    output = stream()
    monkeypatch.setattr(sys, "stderr", output)
    compare([GRAPH], "metis", 2)
    place(GRAPH, 2, placer="metis", budget="3 s")
    for title in ("comparing", f"placing {GRAPH.name}"):
        assert (title in output.getvalue()) == shown
    place(GRAPH, 2, placer="metis", budget="1 s")
    assert output.getvalue().count(f"placing {GRAPH.name}") <= 1


def test_without_pandas_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(StreamplaceError, match="pip install pandas"):
        Cluster.uniform(2).to_pandas()
