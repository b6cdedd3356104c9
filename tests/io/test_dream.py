"""The published format of the DREAM benchmark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dream_format import write_dream

from streamplace.errors import FormatError, StreamplaceError
from streamplace.families.branched import Branched, branched
from streamplace.io.dream import read_dream
from streamplace.io.registry import FORMATS
from streamplace.model import StreamGraph

Document = dict[str, Any]


@pytest.fixture
def document() -> Document:
    """Source → two branches → sink, operators out of order."""
    cpu = {0: 100, 1: 200, 2: 200, 3: 50}
    weight = {0: 1.0, 1: 0.5, 2: 0.5, 3: 1.0}
    return {
        "operators": [
            {
                "idx": i,
                "is_source": i == 0,
                "is_sink": i == 3,
                "name": f"n{i}",
                "cpu": cpu[i],
                "payload": 0.0 if i == 3 else 0.5,
                "weight": weight[i],
            }
            for i in (3, 1, 0, 2)
        ],
        "connections": [
            {"from_vertex": 0, "to_vertex": 1, "selectivity": 0.5, "weight": 0.5},
            {"from_vertex": 0, "to_vertex": 2, "selectivity": 0.5, "weight": 0.5},
            {"from_vertex": 1, "to_vertex": 3, "selectivity": 1.0, "weight": 0.5},
            {"from_vertex": 2, "to_vertex": 3, "selectivity": 1.0, "weight": 0.5},
        ],
        "event_rate": 1e4,
        "num_vms": 2,
    }


def read_text(tmp_path: Path, text: str) -> StreamGraph | None:
    """Graph of a file with this text."""
    path = tmp_path / "g.json"
    path.write_text(text)
    return next(read_dream(path))


def test_a_published_graph_is_read(tmp_path: Path, document: Document) -> None:
    """In the order of idx; megabit become bytes."""
    graph = read_text(tmp_path, json.dumps(document))
    assert graph.operators.name == ("n0", "n1", "n2", "n3")
    assert graph.operators.ipt.tolist() == [100, 200, 200, 50]
    assert graph.operators.payload.tolist() == [62_500, 62_500, 62_500, 0]
    assert graph.operators.kind == ("source", "work", "work", "sink")
    assert graph.input_rate.tolist() == [1e4, 5e3, 5e3, 1e4]
    assert (graph.name, graph.attributes["devices"]) == ("g", 2)


def test_what_can_be_derived_may_be_left_out(tmp_path: Path, document: Document) -> None:
    """Flags, names, weights, selectivities of 1, the sink's payload and the number of devices."""
    whole = read_text(tmp_path, json.dumps(document))
    for row in document["operators"]:
        for key in ("is_source", "is_sink", "weight"):
            del row[key]
        if row["idx"] == 3:
            del row["payload"]
    for line in document["connections"]:
        del line["weight"]
        if line["selectivity"] == 1:
            del line["selectivity"]
    assert read_text(tmp_path, json.dumps(document)) == whole
    del document["num_vms"], document["operators"][0]["name"]
    graph = read_text(tmp_path, json.dumps(document))
    assert (graph.operators.name[3], dict(graph.attributes)) == ("op3", {})


def test_graphs_survive_the_round_trip(tmp_path: Path) -> None:
    for graph in branched(Branched(branches=3, depth=4, devices=3, copies=20), 0):
        write_dream(graph, tmp_path / f"{graph.name}.json")
        (again,) = read_dream(tmp_path / f"{graph.name}.json")
        assert (again.name, again.operators) == (graph.name, graph.operators)
        assert again.streams == graph.streams
        assert dict(again.attributes) == {"devices": 3}


def test_a_folder_with_graphs_is_read_in_order(tmp_path: Path, document: Document) -> None:
    with pytest.raises(FormatError, match=r"holds no \.json file"):
        next(read_dream(tmp_path))
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "notes.txt").write_text("not a graph")
    assert [graph.name for graph in FORMATS["dream"].read(tmp_path)] == ["a", "b"]


def _set(*path_and_value: Any) -> Callable[..., Any]:
    *path, last, value = path_and_value

    def change(document: Document) -> None:
        for key in path:
            document = document[key]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("event_rate"), "event_rate is missing; add it"),
        (lambda d: d["connections"][0].pop("from_vertex"), r"\[0\].from_vertex is missing; add it"),
        (_set("event_rate", 0), "event_rate is 0; it should be greater than 0"),
        (_set("operators", 1, "idx", 3), "two operators have the idx 3"),
        (_set("operators", 1, "idx", 10**30), r"from_vertex is 1, but no operator"),
        (lambda d: d["operators"][1].pop("payload"), "operator 1 has no payload; add it"),
        (_set("connections", 2, "to_vertex", 9), r"connections\[2\].to_vertex is 9, but no"),
    ],
)
def test_a_bad_document_is_refused_in_one_line(
    tmp_path: Path, document: Document, change: Callable[..., Any], message: str
) -> None:
    change(document)
    with pytest.raises(StreamplaceError, match=message) as caught:
        read_text(tmp_path, json.dumps(document))
    assert str(caught.value).startswith(str(tmp_path / "g.json"))
    assert "\n" not in str(caught.value)
