"""Documents of problems."""

import gzip
import json
import pickle

import numpy as np
import pytest
from fuzz.documents import CLUSTER, GRAPH, to_json
from hypothesis import given
from problems import PROBLEMS, chain, same
from refusals import refusal_of
from strategies import problems

from streamplace.io.graphs import read_graph, read_graphs, write_graph
from streamplace.io.problems import (
    problem_line,
    problem_to_dict,
    read_problem,
    read_problems,
    write_problem,
    write_problems,
)
from streamplace.model import Cluster, Constraints, Device, Problem
from streamplace.model.problem import Moving

SMALL = {"operators": [{"name": name, "rate": 1} for name in ("a", "b")]}


def read(tmp_path, document, **given):
    """Problem of a document."""
    path = tmp_path / "p.json"
    path.write_bytes(to_json(document))
    return read_problem(path, **given)


def refusal(tmp_path, document, **given):
    """Message that refuses a document."""
    return refusal_of(tmp_path / "p.json", read, tmp_path, document, **given)


@pytest.mark.parametrize("file", ["p.json", "p.jsonl", "p.jsonl.gz"])
def test_problems_survive_their_file(tmp_path, file):
    path = tmp_path / file
    for name, problem in PROBLEMS.items():
        if file == "p.json":
            write_problem(problem, path)
        else:
            assert write_problems([problem, problem], path) == 2
        for found in read_problems(path):
            assert same(found, problem), name
            assert found.instance.load.tobytes() == problem.instance.load.tobytes()


@given(problems())
def test_any_problem_survives_its_line(tmp_path_factory, problem):
    path = tmp_path_factory.mktemp("p") / "p.jsonl"
    path.write_bytes(problem_line(problem))
    assert same(read_problem(path), problem)


def test_every_fact_of_a_cluster_is_kept(tmp_path):
    devices = [
        Device("x", 100, 2, frozenset({"gpu"}), 1e9, 1e8, 1e7, 30.0),
        Device("y", 250.5),
        Device("z", 250.5),
    ]
    bandwidth = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]]) * 1e6
    latency = np.array([[0, 1, 1], [1, 0, 2], [1, 1, 0]]) * 1e-3
    cluster = Cluster.of(devices, bandwidth=bandwidth, latency=latency, overhead=1e-6, gap=2e-6)
    problem = Problem(chain(3), cluster, Constraints(pin={"v0": "x"}), np.arange(9).reshape(3, 3))
    for file in ("p.json", "p.jsonl"):
        write_problem(problem, tmp_path / file)
        assert same(read_problem(tmp_path / file), problem)


def test_a_graph_alone_is_a_problem_that_leaves_all_else_open(tmp_path):
    write_graph(chain(), tmp_path / "g.json")
    assert read_problem(tmp_path / "g.json").n_devices == 5
    pinned = Constraints(pin={"v1": "d1"})
    problem = read_problem(tmp_path / "g.json", Cluster.uniform(2), pinned)
    assert (problem.n_devices, problem.constraints) == (2, pinned)


def test_a_problem_is_read_wherever_a_graph_is(tmp_path):
    write_problem(Problem(chain(), Cluster.uniform(2)), tmp_path / "a.json")
    write_graph(chain(3), tmp_path / "b.json")
    assert read_graph(tmp_path / "a.json") == chain()
    assert [graph.n_operators for graph in read_graphs(tmp_path)] == [4, 3]
    assert [problem.n_devices for problem in read_problems(tmp_path)] == [2, 5]


def test_graphs_and_problems_share_a_data_set(tmp_path):
    lines = [json.dumps(SMALL), json.dumps({"cluster": CLUSTER, "graph": GRAPH}), ""]
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    found = list(read_problems(path, constraints=None))
    assert [(one.graph.name, one.n_devices) for one in found] == [("p.jsonl.gz:1", 5), ("g", 3)]


def test_the_word_graph_makes_no_problem(tmp_path):
    named = {"name": "graph", "attributes": {"graph": 1}, **SMALL}
    assert read(tmp_path, named).graph.attributes == {"graph": 1}


def test_a_byte_order_mark_is_ignored(tmp_path):
    path = tmp_path / "p.json"
    path.write_bytes(b"\xef\xbb\xbf" + to_json({"graph": GRAPH, "cluster": CLUSTER}))
    assert read_problem(path).n_devices == 3
    assert read_graph(path).name == "g"


def test_what_a_document_says_and_the_reader_does_too_is_refused(tmp_path):
    document = {"graph": SMALL, "cluster": {"devices": [{"name": "x"}]}}
    assert "cluster" in refusal(tmp_path, document, cluster=Cluster.uniform(2))
    document = {"graph": SMALL, "constraints": {"pin": {"a": "d0"}}}
    assert "constraints" in refusal(tmp_path, document, constraints=Constraints(pin={"a": "d1"}))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"seconds": [[1, 2], [1]]}, "the cost matrix"),
        ({"seconds": [[1, -2], [1, 1]]}, "seconds[0][1]"),
        ({"second": []}, "second"),
        ({"moving": {"state": [1]}}, "moving: state"),
        ({"moving": {"startup": [[1, 2], [3]]}}, "moving: startup"),
        ({"moving": {"state": [1, 1e16]}}, "moving: state[1]"),
        ({"moving": {"state": [1, -1]}}, "moving.state[1]"),
        ({"cluster": {"devices": [{"name": "x", "mps": 1}]}}, "cluster.devices[0].mps"),
        ({"constraints": {"pin": {"c": "x"}}}, "'c'"),
    ],
)
def test_mistakes_have_their_place(tmp_path, change, place):
    document = {
        "graph": SMALL,
        "cluster": {"devices": [{"name": "x"}, {"name": "y"}]},
        "constraints": {"pin": {"a": "x"}},
    }
    assert place in refusal(tmp_path, {**document, **change})


def test_moving_takes_the_memory_and_no_time_where_nothing_is_said(tmp_path):
    operators = [{"name": "a", "rate": 1, "memory": "1 MB"}, {"name": "b", "rate": 1}]
    document = {"graph": {"operators": operators}, "cluster": {"devices": [{"name": "x"}]}}
    assert read(tmp_path, document).moving is None
    half = read(tmp_path, {**document, "moving": {"startup": [[2], [3]]}})
    assert half.moving == Moving([1e6, 0], [[2], [3]])
    other = read(tmp_path, {**document, "moving": {"state": [5, 6]}})
    assert other.moving == Moving([5, 6], [[0], [0]])
    assert same(half, read(tmp_path, problem_to_dict(half)))
    assert same(half.at_rate(2), read(tmp_path, problem_to_dict(half.at_rate(2))))
    assert half.at_rate(2).moving == pickle.loads(pickle.dumps(half)).moving == half.moving


def test_what_most_links_have_is_said_once():
    bandwidth = np.full((4, 4), 1e9)
    bandwidth[1, 2] = 1e6
    tables = problem_to_dict(
        Problem(chain(), Cluster.of([Device(f"d{i}") for i in range(4)], bandwidth=bandwidth))
    )["cluster"]
    assert tables["bandwidth"] == 1e9
    assert tables["links"] == [{"from": "d1", "to": "d2", "bandwidth": 1e6}]
