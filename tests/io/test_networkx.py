"""Graphs of networkx in and out."""

import json
from warnings import catch_warnings

import networkx as nx
import numpy as np
import pytest
from problems import chain, whole
from refusals import refusal_of

from streamplace import export, read_graph
from streamplace.errors import FormatError, GraphError
from streamplace.io.networkx import RARE, from_networkx, to_networkx
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph


def test_graphs_without_tags_and_windows_can_be_written_as_graphml():
    """Nor has a graph the rare fields that none of its operators has."""
    g = to_networkx(whole())
    for node in g.nodes.values():
        del node["requires"], node["window"]
    assert all(name in "".join(nx.generate_graphml(g)) for name in ("constant", "max_rate"))
    assert not RARE.keys() & to_networkx(chain()).nodes["v0"].keys()


@pytest.mark.parametrize("copies", [1, 2])
def test_a_graph_survives_graphml(copies):
    """Networkx reads ids of edges as keys only where edges are parallel."""
    graph = StreamGraph.of(
        "pipe",
        [Operator("a", rate=9, ipt=5, payload=7), Operator("b"), Operator("c")],
        [Stream("b", "c", payload=3), *[Stream("a", "b", 0.5 ** (i + 1)) for i in range(copies)]],
    )
    back = from_networkx(nx.parse_graphml("\n".join(nx.generate_graphml(to_networkx(graph)))))
    assert back.operators == graph.operators
    assert list(map(repr, back.streams)) == list(map(repr, graph.streams))


def test_keys_that_number_no_edges_are_passed_over():
    """Networkx's own begin at 0 for every pair, and anything may be one."""
    g = nx.MultiDiGraph()
    g.add_node("a", rate=1)
    for target, key in [("c", None), ("b", None), ("b", "x"), ("b", 7)]:
        g.add_edge("a", target, key=key, selectivity=1 / (1 + g.number_of_edges()))
    targets = [stream.target for stream in from_networkx(g).streams]
    assert targets == ["c", "b", "b", "b"]


def test_numbers_of_numpy_are_read():
    g = nx.DiGraph(copies=np.int64(2))
    g.add_node(0, rate=np.float64(3), ipt=np.int64(5))
    graph = from_networkx(g)
    assert graph.operators.name == ("0",)
    assert graph.attributes == {"copies": 2}


@pytest.mark.parametrize("name", ["name", "fires"])
def test_an_attribute_with_the_name_of_a_field_of_the_graph_is_refused(name):
    """Both would stand in one place, and one would be lost."""
    graph = StreamGraph.of("pipe", [Operator("a", rate=1)], attributes={name: "all"})
    with pytest.raises(GraphError, match=f"'{name}' of graph 'pipe'"):
        to_networkx(graph)


@pytest.mark.parametrize(
    ("facts", "error", "place"),
    [({"ipt": -1}, FormatError, r"operators\[0\].ipt"), ({}, GraphError, "operator 'a'")],
)
def test_bad_facts_are_refused(facts, error, place):
    g = nx.DiGraph()
    g.add_node("a", **facts)
    with pytest.raises(error, match=place):
        from_networkx(g)


def test_the_export_to_graphml_is_read_as_the_graph(tmp_path):
    graph = whole()
    problem = Problem(graph, Cluster.of([Device("d0", tags=graph_tags(graph))]))
    files = export(problem, problem.placement([0] * graph.n_operators), "graphml")
    path = tmp_path / "x.graphml"
    path.write_text(files["placement.graphml"])
    back = read_graph(path)
    assert back.operators == graph.operators
    assert list(back.streams) == list(graph.streams)
    assert back.attributes.items() >= graph.attributes.items()


def graph_tags(graph):
    return frozenset().union(*graph.operators.requires)


PIPE = StreamGraph.of(
    "pipe", [Operator("1", rate=9), Operator("b", ipt=7, payload=12)], [Stream("1", "b", 0.5)]
)
DOT = """// by hand
digraph pipe { node [payload=0]
  subgraph cluster_0 { 1 [rate=9 label="in"]; b [ipt="7", payload="12 B"] }
  1 -> {b} [selectivity=0.5, color=red] }"""


def node_link(name):
    g = nx.DiGraph(name="pipe")
    g.add_node(1, rate=9, owner="me")
    g.add_node("b", ipt=7, payload=12)
    g.add_edge(1, "b", selectivity=0.5, weight=2)
    with catch_warnings(action="ignore"):
        document = nx.node_link_data(g)
    document[name] = document.pop("links", document.pop("edges", None))
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        (DOT, ["'label' of operators", "'color' of streams"]),
        (node_link("links"), ["'owner' of operators", "'weight' of streams"]),
        (node_link("edges"), ["'owner' of operators", "'weight' of streams"]),
    ],
)
def test_graphs_of_other_tools_are_read_where_graphs_are(tmp_path, caplog, text, unread):
    path = tmp_path / "x.txt"
    path.write_text(text)
    graph = read_graph(path)
    assert (graph.operators, graph.streams) == (PIPE.operators, PIPE.streams)
    (warning,) = caplog.messages
    assert str(path) in warning
    assert all(name in warning for name in unread)


def test_names_in_dot_may_have_quotes_and_ports(tmp_path):
    path = tmp_path / "x.dot"
    path.write_text('digraph x { a [rate=9]; b:in; "c:1"; "a":out:e -> b:in; b -> "c:1":"in" }')
    graph = read_graph(path)
    assert set(graph.operators.name) == {"a", "b", "c:1"}
    assert graph.n_operators - 1 == len(graph.streams)


def test_nodes_of_dot_have_the_defaults_that_stand_before_them(tmp_path):
    """Also nodes that only edges name."""
    path = tmp_path / "x.dot"
    path.write_text(
        """digraph x { node [ipt=1]; a [rate=9]; a -> b; node [ipt=2]; b -> e;
        edge [selectivity=3]; subgraph s { node [ipt=4]; c -> d [selectivity=5] } b -> c }"""
    )
    graph = read_graph(path)
    cost = dict(zip(graph.operators.name, graph.operators.ipt.tolist(), strict=True))
    assert cost == {"a": 1, "b": 1, "e": 2, "c": 4, "d": 4}
    assert sorted(graph.streams.selectivity) == [1, 1, 3, 5]


@pytest.mark.parametrize("fires", ["fires=all", 'graph [rankdir=LR fires="all"]'])
def test_a_task_graph_may_be_written_in_dot(tmp_path, fires):
    path = tmp_path / "x.dot"
    path.write_text(f"digraph x {{ {fires}; a -> b }}")
    assert read_graph(path).operators.fires_all.all()


@pytest.mark.parametrize(
    ("name", "field"), [("paylod", "payload"), ("cost", "ipt"), ("Load", "ipt"), ("ram", "memory")]
)
def test_a_field_under_another_name_is_asked_about(caplog, name, field):
    g = nx.DiGraph()
    g.add_node("a", rate=1, **{name: 5})
    from_networkx(g)
    assert f"'{name}' of operators (did you mean '{field}'?)" in caplog.text


def test_costs_that_tables_lack_are_refused():
    """As those of the holes of a pandas table; the payload of an edge may be that of its node."""
    g = nx.DiGraph([("a", "parse"), ("parse", "b")])
    nx.set_node_attributes(g, {"a": 5.0, "parse": np.nan, "b": None}, "ipt")
    nx.set_node_attributes(g, {"a": 1}, "rate")
    nx.set_edge_attributes(g, np.nan, "payload")
    with pytest.raises(FormatError, match="ipt of 'parse', 'b' is missing"):
        from_networkx(g)


def test_an_edge_that_is_written_twice_is_refused():
    """It would double the traffic; edges that differ, or partition by two keys, are two streams."""
    g = nx.MultiDiGraph([("a", "b"), ("a", "b")])
    g.add_node("a", rate=1)
    with pytest.raises(FormatError, match="stream a→b is written twice"):
        from_networkx(g)
    g.edges["a", "b", 1]["selectivity"] = 0.5
    assert from_networkx(g).n_streams == 2
    nx.set_edge_attributes(g, {edge: {"partitioning": "hash"} for edge in g.edges(keys=True)})
    g.edges["a", "b", 1].pop("selectivity")
    assert from_networkx(g).n_streams == 2


OTHERS = {
    "graph x { a -- b }": "needs directed edges",
    "digraph x { a -> ": "",
    "digraph x {" * 300: "",
    "digraph x { a [rate=1e5] }": "quotes",
    "digraph x { é }": "is not UTF-8 text (byte",
    "<graphml/>": "",
    "<graphml>é</graphml>": "is not UTF-8 text (byte",
    "<html/>": "",
    'graph [ directed 1 node [ id 0 label "a" ] ]': "save it as GraphML",
    '{"directed": true, "nodes": [{"id": "a"}], "adjacency": [[]]}': "node_link_data",
    '{"nodes": []}': "",
    '{"nodes": [{"id": 1}], "links": [{"source": 1}]}': "",
    '{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 0, "target": 1}]}': "at 0,",
    '{"nodes": [{"id": 1}], "links": [], "directed": false}': "needs directed edges",
    '{"nodes": 5, "links": 5}': "",
    '{"nodes": [{"id": 1, "rate": -1}], "links": []}': "rate",
}
"""Texts in Latin-1, and what their refusals say."""


@pytest.mark.parametrize("text", OTHERS, ids=range(len(OTHERS)))
def test_what_is_no_directed_graph_is_refused(tmp_path, text):
    path = tmp_path / "x.txt"
    path.write_text(text, encoding="latin-1")
    assert OTHERS[text] in refusal_of(path, read_graph, path, kind=FormatError)
