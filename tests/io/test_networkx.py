"""Graphs of networkx in and out."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from problems import chain, whole

from streamplace.errors import FormatError, GraphError
from streamplace.io.networkx import RARE, from_networkx, to_networkx
from streamplace.model import Operator, Stream, StreamGraph


def test_graphs_without_tags_and_windows_can_be_written_as_graphml() -> None:
    """Nor has a graph the rare fields that none of its operators has."""
    g = to_networkx(whole())
    for node in g.nodes.values():
        del node["requires"], node["window"]
    assert all(name in "".join(nx.generate_graphml(g)) for name in ("constant", "max_rate"))
    assert not RARE.keys() & to_networkx(chain()).nodes["v0"].keys()


@pytest.mark.parametrize("copies", [1, 2])
def test_a_graph_survives_graphml(copies: int) -> None:
    """Networkx reads ids of edges as keys only where edges are parallel."""
    graph = StreamGraph.of(
        "pipe",
        [Operator("a", rate=9, ipt=5, payload=7), Operator("b"), Operator("c")],
        [Stream("b", "c", payload=3), *[Stream("a", "b", 0.5)] * copies],
    )
    back = from_networkx(nx.parse_graphml("\n".join(nx.generate_graphml(to_networkx(graph)))))
    assert back.operators == graph.operators
    assert list(map(repr, back.streams)) == list(map(repr, graph.streams))


def test_keys_that_number_no_edges_are_passed_over() -> None:
    """Networkx's own begin at 0 for every pair, and anything may be one."""
    g = nx.MultiDiGraph()
    g.add_node("a", rate=1)
    for target, key in [("c", None), ("b", None), ("b", "x"), ("b", 7)]:
        g.add_edge("a", target, key=key)
    targets = [stream.target for stream in from_networkx(g).streams]
    assert targets == ["c", "b", "b", "b"]


def test_numbers_of_numpy_are_read() -> None:
    """They are what notebooks compute."""
    g = nx.DiGraph(copies=np.int64(2))
    g.add_node(0, rate=np.float64(3), ipt=np.int64(5))
    graph = from_networkx(g)
    assert graph.operators.name == ("0",)
    assert graph.attributes == {"copies": 2}


@pytest.mark.parametrize("name", ["name", "fires"])
def test_an_attribute_with_the_name_of_a_field_of_the_graph_is_refused(name: str) -> None:
    """Both would stand in one place, and one would be lost."""
    graph = StreamGraph.of("pipe", [Operator("a", rate=1)], attributes={name: "all"})
    with pytest.raises(GraphError, match=f"'{name}' of graph 'pipe'"):
        to_networkx(graph)


@pytest.mark.parametrize(
    ("facts", "error", "place"),
    [({"ipt": -1}, FormatError, r"operators\[0\].ipt"), ({}, GraphError, "operator 'a'")],
)
def test_bad_facts_are_refused(facts: Any, error: Any, place: str) -> None:
    g = nx.DiGraph()
    g.add_node("a", **facts)
    with pytest.raises(error, match=place):
        from_networkx(g)
