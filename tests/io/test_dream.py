"""The published format of the DREAM benchmark."""

import json
from functools import partial
from typing import Any

import pytest
from formats import read_as
from fuzz.targets import SEEDS

from streamplace.errors import FormatError
from streamplace.io.dream import read_dream
from streamplace.io.registry import FORMATS

Document = dict[str, Any]
read = partial(read_as, "dream", "g.json")


@pytest.fixture
def document():
    """Source → two branches → sink, operators out of order."""
    document: Document = json.loads((SEEDS / "dream.json").read_text())
    document["operators"].reverse()
    return document | {"num_vms": 2}


def test_a_published_graph_is_read(tmp_path, document):
    graph = read(tmp_path, document)
    assert graph.operators.name == ("src", "left", "right", "sink")
    assert graph.operators.ipt.tolist() == [1e4, 2e5, 3e5, 1e4]
    assert graph.operators.payload.tolist() == [30_000, 10_000, 20_000, 0]
    assert graph.operators.kind == ("source", "work", "work", "sink")
    assert graph.input_rate.tolist() == [1e4, 5e3, 5e3, 1e4]
    assert (graph.name, graph.attributes["devices"]) == ("g", 2)


def test_what_can_be_derived_may_be_left_out(tmp_path, document):
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


def test_a_folder_with_graphs_is_read_in_order(tmp_path, document):
    with pytest.raises(FormatError, match=tmp_path.name):
        next(read_dream(tmp_path))
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "notes.txt").write_text("not a graph")
    assert [graph.name for graph in FORMATS["dream"].read(tmp_path)] == ["a", "b"]
