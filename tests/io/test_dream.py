"""The published format of the DREAM benchmark."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dream_format import write_dream
from formats import read_as

from streamplace.errors import FormatError
from streamplace.families.branched import Branched, branched
from streamplace.io.dream import read_dream
from streamplace.io.registry import FORMATS

Document = dict[str, Any]
read = partial(read_as, "dream", "g.json")


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


def test_a_published_graph_is_read(tmp_path: Path, document: Document) -> None:
    """In the order of idx; megabit become bytes."""
    graph = read(tmp_path, document)
    assert graph.operators.name == ("n0", "n1", "n2", "n3")
    assert graph.operators.ipt.tolist() == [100, 200, 200, 50]
    assert graph.operators.payload.tolist() == [62_500, 62_500, 62_500, 0]
    assert graph.operators.kind == ("source", "work", "work", "sink")
    assert graph.input_rate.tolist() == [1e4, 5e3, 5e3, 1e4]
    assert (graph.name, graph.attributes["devices"]) == ("g", 2)


def test_what_can_be_derived_may_be_left_out(tmp_path: Path, document: Document) -> None:
    """Flags, names, weights, selectivities of 1, the sink's payload and the number of devices."""
    whole = read(tmp_path, document)
    for row in document["operators"]:
        for key in ("is_source", "is_sink", "weight"):
            del row[key]
        if row["idx"] == 3:
            del row["payload"]
    for line in document["connections"]:
        del line["weight"]
        if line["selectivity"] == 1:
            del line["selectivity"]
    assert read(tmp_path, document) == whole
    del document["num_vms"], document["operators"][0]["name"]
    graph = read(tmp_path, document)
    assert (graph.operators.name[3], dict(graph.attributes)) == ("op3", {})


def test_graphs_survive_the_round_trip(tmp_path: Path) -> None:
    for graph in branched(Branched(branches=3, depth=4, devices=3, copies=20), 0):
        write_dream(graph, tmp_path / f"{graph.name}.json")
        (again,) = read_dream(tmp_path / f"{graph.name}.json")
        assert (again.name, again.operators) == (graph.name, graph.operators)
        assert again.streams == graph.streams
        assert dict(again.attributes) == {"devices": 3}


def test_a_folder_with_graphs_is_read_in_order(tmp_path: Path, document: Document) -> None:
    with pytest.raises(FormatError, match=tmp_path.name):
        next(read_dream(tmp_path))
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "notes.txt").write_text("not a graph")
    assert [graph.name for graph in FORMATS["dream"].read(tmp_path)] == ["a", "b"]
