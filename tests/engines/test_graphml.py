from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
from engine_deployments import DEPLOYMENTS, shop

from streamplace.engines.deployment import Deployment
from streamplace.engines.graphml import as_graphml, read_graphml
from streamplace.errors import FormatError
from streamplace.model import Cluster, Operator, Problem, StreamGraph


def test_networkx_finds_operators_streams_and_costs(written: Callable[..., Path]) -> None:
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
    assert hop == {"tuples_per_s": 5000.0, "bytes_per_s": 600000.0, "remote": True}
    text = "\n".join(nx.generate_graphml(nx.DiGraph(graph)))
    assert read_graphml(text.encode(), "f") == DEPLOYMENTS["shop"].placement.as_dict()


def test_a_file_without_types_is_read_in_silence(recwarn: pytest.WarningsRecorder) -> None:
    """Other tools leave out what no placement needs."""
    text = (
        b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="device" for="node" '
        b'attr.name="device"/><graph edgedefault="directed"><node id="a"><data key="device">d0'
        b"</data></node></graph></graphml>"
    )
    assert read_graphml(text, "f") == {"a": "d0"}
    assert not recwarn.list


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "not valid GraphML"),
        (b"<graphml", "not valid GraphML"),
        (b"<html/>", "not valid GraphML"),
        (
            b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
            b'<node id="a"/></graph></graphml>',
            "operator 'a' has no partner",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_line(text: bytes, complaint: str) -> None:
    """With the file's name in front."""
    with pytest.raises(FormatError, match=f"^t.graphml: .*{complaint}"):
        read_graphml(text, "t.graphml")


def test_what_no_xml_file_can_hold_is_refused() -> None:
    """With the name, and a form that can hold it."""
    graph = StreamGraph.of("bell", [Operator("a\x07", rate=1.0)])
    problem = Problem(graph, Cluster.uniform(1))
    with pytest.raises(FormatError, match=r"'a\\x07'.*export to json"):
        as_graphml(Deployment(problem, problem.placement([0])))
