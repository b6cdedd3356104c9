"""Placements in the formats of other tools: CSV, GraphML and DOT."""

import shutil
import subprocess

import networkx as nx
import pytest
from engine_deployments import DEPLOYMENTS, shop
from refusals import refusal_of

from streamplace.engines.csv import read_csv
from streamplace.engines.deployment import Deployment
from streamplace.engines.graphml import as_graphml, read_graphml
from streamplace.engines.registry import EXPORTS
from streamplace.errors import FormatError
from streamplace.model import Cluster, Operator, Problem, StreamGraph


def test_a_table_from_elsewhere_needs_two_columns_only():
    assert read_csv(b"\xef\xbb\xbfdevice,note,operator\r\nd0,x,src\r\n", "f") == {"src": "d0"}


@pytest.mark.parametrize("mark", [";", "\t"])
def test_what_spreadsheets_of_other_languages_write_is_read(mark):
    rows = [("operator", "device"), ("a, b", "d0"), ("sink", "d,1")]
    text = "".join(f"{mark.join(row)}\r\n" for row in rows)
    assert read_csv(text.encode(), "f") == {"a, b": "d0", "sink": "d,1"}


def test_networkx_finds_operators_streams_and_costs(written):
    """Placement and groups at the nodes, rates at the edges, of which some are parallel.

    A file that it saves again can be read: only the attribute device matters.
    """
    graph = nx.read_graphml(written("graphml") / "placement.graphml")
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph.nodes["score"]["device"] == "gpu"
    assert graph.nodes["score"]["requires"] == "gpu"
    assert graph.nodes["join"]["exlocate"] == "0"
    assert graph.number_of_edges() == shop().graph.n_streams
    (hop,) = graph["parse"]["join"].values()
    assert {"tuples_per_s": 5000.0, "bytes_per_s": 600000.0, "remote": True}.items() <= hop.items()
    text = "\n".join(nx.generate_graphml(nx.DiGraph(graph)))
    assert read_graphml(text.encode(), "f") == DEPLOYMENTS["shop"].placement.as_dict()


def test_a_file_without_types_is_read_in_silence(recwarn):
    text = (
        b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="device" for="node" '
        b'attr.name="device"/><graph edgedefault="directed"><node id="a"><data key="device">d0'
        b"</data></node></graph></graphml>"
    )
    assert read_graphml(text, "f") == {"a": "d0"}
    assert not recwarn.list


HEAD = b"operator,device\n"
UNPLACED = (
    b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
    b'<node id="a"/></graph></graphml>'
)


@pytest.mark.parametrize(
    ("read", "text", "place"),
    [
        (read_csv, b"", "operator and device"),
        (read_csv, HEAD, ""),
        (read_csv, HEAD + b"src,d0\nsrc,d1\n", "'src'"),
        (read_csv, HEAD + b"src,\n", "'src'"),
        (read_csv, HEAD + b"\xff,d0\n", ""),
        (read_csv, HEAD + b'"src,d0\nsink,d1\n', ""),
        (read_graphml, b"", ""),
        (read_graphml, b"<graphml", ""),
        (read_graphml, b"<html/>", ""),
        (read_graphml, UNPLACED, "'a'"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(read, text, place):
    assert place in refusal_of("table", read, text, "table", kind=FormatError)


def test_what_no_xml_file_can_hold_is_refused():
    graph = StreamGraph.of("bell", [Operator("a\x07", rate=1.0)])
    problem = Problem(graph, Cluster.uniform(1))
    with pytest.raises(FormatError, match=r"'a\\x07'.*json"):
        as_graphml(Deployment(problem, problem.placement([0])))


def test_what_tasks_hand_on_is_told_in_bytes():
    (text,) = EXPORTS["dot"].files(DEPLOYMENTS["tasks"]).values()
    assert '"load" -> "left" [label="4 MB", style=dashed]' in text
    assert '"right" -> "add" [label="1 MB"]' in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("deployment", ["shop", "odd names"])
def test_graphviz_draws_it(written, deployment):
    file = written("dot", deployment) / "placement.dot"
    drawn = subprocess.run(["dot", "-Tsvg", str(file)], capture_output=True, check=True).stdout
    assert all(
        f"PE {element.number} on ".encode() in drawn for element in DEPLOYMENTS[deployment].elements
    )
