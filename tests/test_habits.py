"""Habits of Python users: lengths, frames, conversions, files, and errors that are ValueErrors."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest
from problems import chain, diamond, fork_join

import streamplace
from streamplace import Cluster, Constraints, Operator, Problem, errors

TABLES: dict[str, Any] = {
    "name": "pipe",
    "operators": [{"name": "a", "ipt": 2e5, "rate": 1e4}, {"name": "b", "ipt": 2e5}],
    "streams": [{"from": "a", "to": "b"}],
}


@pytest.fixture(scope="module")
def result():
    """Placement of a fork-join graph by METIS."""
    return streamplace.place(fork_join(), placer="metis")


def test_a_graph_has_a_length_names_and_tables():
    graph = diamond()
    assert len(graph) == graph.n_operators == len(list(graph))
    assert tuple(graph) == graph.operators.name
    assert graph.operators.name[1] in graph
    assert "nothing" not in graph
    table = graph.to_pandas()
    assert table.operator.tolist() == list(graph)
    assert table.input_rate.tolist() == graph.input_rate.tolist()
    assert streamplace.from_networkx(graph.to_networkx()) == graph


def networkx_graph():
    """The graph of `TABLES`."""
    graph: nx.DiGraph[str] = nx.DiGraph(name="pipe")
    graph.add_node("a", ipt=2e5, rate=1e4)
    graph.add_node("b", ipt=2e5)
    graph.add_edge("a", "b")
    return graph


@pytest.mark.parametrize("graph", [networkx_graph(), TABLES], ids=["networkx", "dictionary"])
def test_graphs_of_networkx_and_dictionaries_are_graphs_everywhere(graph):
    placed = streamplace.place(graph, 2, placer="metis")
    assert placed.problem.graph.name == "pipe"
    pandas = pd.Series(placed.placement.as_dict())
    assert streamplace.simulate(graph, pandas, 2).value == placed.value
    assert "b" in streamplace.draw(graph, pandas, 2).svg()
    assert streamplace.export(graph, pandas, "csv", 2) == streamplace.export(
        graph, placed, "csv", 2
    )
    assert streamplace.describe(graph).operators == (2,)
    assert streamplace.describe([graph, graph]).operators == (2, 2)


def test_paths_are_graphs_of_every_function(tmp_path):
    """A file with a cluster is a problem where one is of use."""
    graph, problem = tmp_path / "graph.json", tmp_path / "problem.json"
    streamplace.write_graph(diamond(), graph)
    streamplace.write_problem(Problem(diamond(), Cluster.uniform(2)), problem)
    assert streamplace.what_if(graph, change={"src.rate": 7}).source_rate == 7
    assert isinstance(streamplace.what_if(str(problem)), Problem)
    assert streamplace.expand(graph).graph == streamplace.expand(diamond()).graph
    assert nx.utils.graphs_equal(streamplace.to_networkx(problem), diamond().to_networkx())


def test_a_cluster_is_a_sequence_of_devices_and_placements_are_tables(result):
    cluster = Cluster.uniform(3)
    assert len(cluster) == 3
    assert [device.name for device in cluster] == list(cluster.devices.name)
    table = result.to_pandas()
    assert dict(zip(table.operator, table.device, strict=True)) == result.placement.as_dict()
    assert result.placement.to_pandas().equals(table)


def test_a_repr_is_short_and_leaves_out_defaults(result):
    assert repr(Operator("a", rate=5)) == "Operator(name='a', rate=5)"
    assert repr(Cluster.uniform(2)) == "<Cluster of 2 devices: 2500 MIPS>"
    assert repr(streamplace.Budget(2)) == "Budget(seconds=2)"
    assert len(repr(Constraints(pin={f"operator {i}": "d0" for i in range(99)}))) == 120
    assert repr(result.bottleneck).startswith("<FullestResource: ")


def test_a_result_has_verdict_bottleneck_plot_and_files(result, tmp_path):
    explanation = result.explain()
    assert result.verdict.endswith(explanation.verdict)
    assert result.bottleneck == explanation.bottleneck
    assert result.bottleneck.load > 0
    assert result.plot().svg() == result._repr_svg_()
    for name in ("a.json", "a.html", "a.svg"):
        result.save(tmp_path / name)
    read = streamplace.read_placement(tmp_path / "a.json", result.problem)
    assert read == result.placement
    assert (tmp_path / "a.svg").read_text() == result.plot().svg()
    assert "<html" in (tmp_path / "a.html").read_text()
    with pytest.raises(ValueError, match=r"a\.txt must end in \.json"):
        result.save(tmp_path / "a.txt")
    scheduled = streamplace.place(fork_join(), placer="heft", objective="makespan")
    assert scheduled.bottleneck is None
    assert scheduled.verdict
    least = streamplace.place(fork_join(), placer="metis", objective="devices")
    assert least.bottleneck == result.bottleneck


@pytest.mark.parametrize("subtasks", [False, True])
def test_a_saved_placement_is_the_file_of_the_command(run, subtasks):
    """With the parallelism of the graph, which engines start the job with."""
    a, b = TABLES["operators"]
    Path("pipe.json").write_text(json.dumps(TABLES | {"operators": [a, b | {"parallelism": 2}]}))
    option = ["--subtasks"] if subtasks else []
    assert run("place", "pipe.json", "--placer", "metis", *option, "-o", "a.json").status == 0
    streamplace.place("pipe.json", placer="metis", subtasks=subtasks).save("b.json")
    assert Path("b.json").read_bytes() == Path("a.json").read_bytes()
    assert json.loads(Path("b.json").read_text())["parallelism"] == {"b": 2}


def test_a_comparison_has_a_frame_by_graph_and_plots():
    graphs = [chain(), diamond()]
    comparison = streamplace.compare(graphs, "metis,exact,metis:k=9", jobs=1)
    frame = comparison.frame()
    assert len(frame) == 6
    metis = frame[frame.placer == "metis"].set_index("graph")
    for graph in graphs:
        assert metis.value[graph.name] == streamplace.place(graph, placer="metis").value
        assert metis.optimum[graph.name] >= metis.value[graph.name]
    failed = frame[frame.placer == "metis:k=9"]
    assert failed[["value", "milliseconds"]].isna().all().all()
    assert comparison.plot().axes
    assert comparison.plot("devices", "throughput").axes
    for words, mistake in {
        "there is no plot 'pie'": ("pie", None),
        "has no objective 'cost'": ("distribution", "cost"),
    }.items():
        with pytest.raises(ValueError, match=words):
            comparison.plot(*mistake)
    slowed = streamplace.compare(graphs, "round-robin", rate="1 M/s")
    with pytest.raises(ValueError, match="steps"):
        slowed.plot("steps")


def test_errors_of_invalid_input_are_value_errors():
    kinds = [k for k in vars(errors).values() if isinstance(k, type)]
    plain = [kind for kind in kinds if not issubclass(kind, ValueError)]
    assert plain == [errors.StreamplaceError, errors.DefectError]
    with pytest.raises(ValueError, match="needs directed edges"):
        streamplace.place(nx.Graph())  # type: ignore[arg-type]
