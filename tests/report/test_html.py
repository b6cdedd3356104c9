"""The file of a report: nothing from outside, and every name is text."""

import json
from base64 import b64encode
from collections import Counter
from hashlib import sha256

import pytest
from hostile import HOSTILE
from html_elements import Elements
from report_example import check_document, example

from streamplace import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.display.report import Bar, Heading, Report, Sheet
from streamplace.drawing.graphs import NamedPlacements
from streamplace.errors import FormatError
from streamplace.model.devices import Device, Devices
from streamplace.objectives.registry import OBJECTIVES
from streamplace.report.pages import SCRIPT, STYLE, as_json, as_page, page_file


def pipe(graph, first, second, device):
    """Report about two operators of these names."""
    operators = [Operator(first, ipt=1e5, rate=1e4, kind=graph), Operator(second, ipt=2e5)]
    stream_graph = StreamGraph.of(graph, operators, [Stream(first, second)])
    devices = Devices.of([Device(device), Device(f"{device}'")])
    problem = Problem(stream_graph, Cluster(devices, [[1e9, 1e9]] * 2, [[0, 0]] * 2))
    placed = ((second, problem.placement([0, 1])),)
    return NamedPlacements(problem, placed, OBJECTIVES["throughput"]).report()


def test_the_example_is_a_document_with_every_field_described():
    check_document(as_json(example()))


def test_a_page_loads_nothing_and_runs_nothing_but_its_script():
    """Policy, one style sheet, the document and one script; no address and no handler anywhere."""
    page = as_page(example(), Report(("An example.",)))
    shown = Elements(page)
    policy = next(given["content"] for tag, given in shown.elements if "http-equiv" in given)
    hashes = {
        name: b64encode(sha256(page_file(name).encode()).digest()).decode()
        for name in (SCRIPT, STYLE)
    }
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[SCRIPT]}'; style-src "
        f"'sha256-{hashes[STYLE]}'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    assert page.index("Content-Security-Policy") < page.index("<style>")
    tags = Counter(tag for tag, _ in shown.elements)
    assert (tags["style"], tags["script"]) == (1, 2)
    for _, given in shown.elements:
        assert not {"src", "href", "style", "action", "srcdoc"} & given.keys()
        assert not any(name.startswith("on") for name in given)
    assert page.count(f"<script>{page_file(SCRIPT)}</script>") == 1
    assert "</script" not in page_file(SCRIPT).lower()
    assert "</style" not in page_file(STYLE).lower()
    assert json.loads(shown.texts["script#report"]) == json.loads(json.dumps(example()))


def test_every_hostile_name_is_text():
    """As many elements as with plain names, and the document has the names as they are."""
    usual = [tag for tag, _ in Elements(pipe("graph", "first", "second", "device").html()).elements]
    for name in HOSTILE:
        page = pipe(name, f"{name}1", f"{name}2", f"{name}d").html()
        shown = Elements(page)
        assert [tag for tag, _ in shown.elements] == usual, name
        document = check_document(shown.texts["script#report"])
        (problem,) = document["problems"]
        assert problem["operators"]["name"] == [f"{name}1", f"{name}2"]
        assert problem["devices"]["name"][0] == f"{name}d"
        page.encode("utf-8")


def test_words_are_readable_without_a_script():
    """Sentences, headings and tables are elements; a load is a bar and a percentage."""
    parts = ("One & all.", Heading("g", ": x"), Sheet(("device", "load"), (("d<0", Bar(0.5)),)))
    page = Report(parts, "Title").html()
    assert "<h1>Title</h1><p>One &amp; all.</p><p><strong>g</strong>: x</p>" in page
    assert '<tr><td>d&lt;0</td><td><meter value="0.500" low="0.7"' in page
    assert "</meter> 50.0 %</td></tr>" in page
    assert "<noscript>" in page


def test_notebooks_show_a_frame_and_tables_without_a_subject():
    """The page is an attribute of the frame, in which nothing ends it."""
    frame = pipe("g", "a", 'b"><script>', "d")._repr_html_()
    ((tag, given),) = Elements(frame).elements
    assert tag == "iframe"
    assert given["sandbox"] == "allow-scripts allow-downloads"
    assert given["srcdoc"] == pipe("g", "a", 'b"><script>', "d").html()
    assert Report(("Fine.",))._repr_html_().startswith("<div")


def test_a_report_has_the_name_of_a_page(tmp_path):
    report = pipe("g", "a", "b", "d")
    with pytest.raises(FormatError, match=r"must end in \.html"):
        report.save(tmp_path / "report.htm")
    assert not list(tmp_path.iterdir())
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html()
