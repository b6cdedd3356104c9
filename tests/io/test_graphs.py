"""Native graph files."""

import gzip
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from fuzz.documents import GRAPH, to_json
from hypothesis import given
from problems import PROBLEMS, chain, parse_graph, whole
from refusals import refusal_of
from strategies import graphs

from streamplace.errors import FormatError
from streamplace.io.files import MAX_LINE_BYTES
from streamplace.io.graphs import (
    graph_from_dict,
    graph_line,
    graph_to_dict,
    read_graph,
    read_graphs,
    write_graphs,
)
from streamplace.io.networkx import from_networkx, to_networkx
from streamplace.io.schema import json_schema
from streamplace.model import Operator, Stream, StreamGraph, Window

DATASETS = Path(__file__).parents[2] / "datasets"


def refusal(document):
    """The message that a document (or text) gets."""
    content = document if isinstance(document, bytes) else to_json(document)
    return refusal_of("g.json", parse_graph, content, "g.json")


def changed(*path, to):
    """The model document with one value changed."""
    document = json.loads(json.dumps(GRAPH))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return document


@pytest.mark.parametrize("name", ["set.jsonl", "set.jsonl.gz"])
def test_a_data_set_survives_its_file(tmp_path, name):
    graphs = [problem.graph for problem in PROBLEMS.values()]
    assert write_graphs(graphs, tmp_path / name) == len(graphs)
    assert list(read_graphs(tmp_path / name)) == graphs


def test_applications_can_be_read():
    """The calls of one are partitioned by the caller and by the person called."""
    for path in sorted((DATASETS / "applications").glob("*.json")):
        assert read_graph(path).name == path.stem


def test_a_graph_without_a_name_is_called_after_its_file(tmp_path):
    document = {key: value for key, value in GRAPH.items() if key != "name"}
    (tmp_path / "jobs.json").write_bytes(to_json(document))
    (tmp_path / "jobs.jsonl").write_bytes(b"\n" + to_json(document))
    (tmp_path / "layered-0.25.json.gz").write_bytes(gzip.compress(to_json(document)))
    assert read_graph(tmp_path / "jobs.json").name == "jobs"
    assert read_graph(tmp_path / "layered-0.25.json.gz").name == "layered-0.25"
    assert read_graph(tmp_path / "jobs.jsonl").name == "jobs.jsonl:2"


def test_units_are_read_and_defaults_left_out():
    graph = parse_graph(to_json(GRAPH), "g")
    assert graph.operators["src"].rate == 10_000
    assert graph.operators["join"].memory == 2e9
    assert graph.operators["sink"].window == Window(2, 1, 1, 0.5, 9)
    windowed = changed("operators", 2, "window", to={"size": "1 min", "advance": "10 s"})
    assert parse_graph(to_json(windowed), "g").operators["sink"].window == Window(60, 10)
    assert graph_to_dict(graph)["streams"][1] == {
        "from": "join",
        "to": "sink",
        "partitioning": "hash",
    }


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (("operators", 1, "ipt"), -1, "operators[1].ipt"),
        (("operators", 1, "ipt"), float("nan"), "operators[1].ipt"),
        (("operators", 1, "rte"), 1, "operators[1].rte"),
        (("operators", 0), {}, "operators[0].name"),
        (("operators", 2, "window", "size"), 0, "operator 'sink': window"),
        (("operators",), {}, "operators"),
        (("streams", 0, "to"), "a\nb", r"stream src→a\nb"),
        (("streams", 0, "payload"), "7 Q", "stream src→join: size '7 Q'"),
        (("attributes", "x"), None, "attributes.x"),
    ],
)
def test_a_bad_value_is_named(path, value, place):
    assert refusal(changed(*path, to=value)).startswith(place)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"\x00\xff\xfe", b'{"operators": [', b'{"operators": [{"name": "\\ud800"}]}'],
)
def test_what_is_no_graph_is_refused(content):
    refusal(content)


def test_a_document_of_another_tool_is_no_graph():
    assert "is no graph; make a graph" in refusal(b'{"name": "x", "workflow": {"tasks": []}}')


def test_files_without_or_with_too_many_graphs_are_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    write_graphs([chain(), chain()], tmp_path / "two.jsonl")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b.manifest.json").write_text("{}")  # of a data set
    for name in ("empty.jsonl", "two.jsonl", "folder"):
        refusal_of(tmp_path / name, read_graph, tmp_path / name, kind=FormatError)


def test_a_bad_line_is_named(tmp_path):
    path = tmp_path / "set.jsonl.gz"
    path.write_bytes(gzip.compress(graph_line(chain()) + b'{"operators": 3}\n'))
    graphs = read_graphs(path)
    assert next(graphs) == chain()
    with pytest.raises(FormatError, match=r"set.jsonl.gz:2: operators"):
        next(graphs)


def test_a_data_set_has_the_name_of_one(tmp_path):
    with pytest.raises(FormatError, match=r"set\.json.*\.jsonl\.gz"):
        write_graphs([chain()], tmp_path / "set.json")
    assert not list(tmp_path.iterdir())


def test_a_graph_too_long_for_a_line_is_not_written(tmp_path):
    """Graphs that could not be read back are refused, and no file appears."""
    graph = StreamGraph.of("long", [Operator("a", rate=1)], [], {"about": "x" * MAX_LINE_BYTES})
    with pytest.raises(FormatError, match=r"'long'.*\.json"):
        write_graphs([graph], tmp_path / "x.jsonl")
    assert not list(tmp_path.iterdir())


def by_torch_geometric(graph):
    """A graph that was one of torch-geometric."""
    pytest.importorskip("torch_geometric")
    from streamplace.io.torch_geometric import from_torch_geometric, to_torch_geometric

    return from_torch_geometric(to_torch_geometric(graph))


WAYS: dict[str, Callable[[StreamGraph], StreamGraph]] = {
    "document": lambda graph: graph_from_dict(graph_to_dict(graph)),
    "line": lambda graph: parse_graph(graph_line(graph), "line"),
    "networkx": lambda graph: from_networkx(to_networkx(graph)),
    "torch-geometric": by_torch_geometric,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_field_of_a_graph_is_kept(way):
    graph = whole()
    rows = [*graph.operators, *graph.streams, graph.operators["b"].window]
    for kind in (Operator, Stream, Window):
        for field in fields(kind):
            values = [getattr(row, field.name) for row in rows if isinstance(row, kind)]
            assert any(value != field.default for value in values), field.name
    assert WAYS[way](graph) == graph


@pytest.mark.parametrize("way", WAYS)
@given(graph=graphs(most_subtasks=4, windowed=True, any_names=True))
def test_any_graph_is_kept(way, graph):
    assert WAYS[way](graph) == graph


def test_fields_of_operators_are_described_and_left_out_where_they_are_usual():
    described = json.dumps(json_schema("graph"))
    assert all(f'"{field.name}"' in described for field in fields(Operator))
    plain = StreamGraph.of("one", [Operator("a", rate=1)])
    assert graph_to_dict(plain)["operators"] == [{"name": "a", "ipt": 0, "rate": 1}]


def test_that_all_operators_fire_all_is_said_once():
    tasks = StreamGraph.of("tasks", [Operator("a"), Operator("b")], [Stream("a", "b")], fires="all")
    document = graph_to_dict(tasks)
    assert document["fires"] == "all"
    assert not any("fires" in row for row in document["operators"])
    assert all(way(tasks) == tasks for name, way in WAYS.items() if name != "torch-geometric")
