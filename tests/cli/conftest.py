"""Files to run a command line on."""

import json

import pytest
from problems import fork_join

from streamplace.io.graphs import graph_to_dict

TASKS = {
    "name": "tasks",
    "fires": "all",
    "operators": [
        {"name": "load", "ipt": 1e9, "payload": "4 MB"},
        {"name": "left", "ipt": 6e9, "payload": "1 MB"},
        {"name": "right", "ipt": 4e9, "payload": "1 MB"},
        {"name": "add", "ipt": 1e9},
    ],
    "streams": [
        {"from": "load", "to": "left"},
        {"from": "load", "to": "right"},
        {"from": "left", "to": "add"},
        {"from": "right", "to": "add"},
    ],
}


@pytest.fixture
def graph(tmp_path):
    """A fork-join graph of ten operators, in graph.json."""
    (tmp_path / "graph.json").write_text(json.dumps(graph_to_dict(fork_join())))
    return "graph.json"


@pytest.fixture
def placement(tmp_path):
    """Everything on d0 but the sink, in placement.json."""
    names = fork_join().operators.name
    assignment = {name: "d1" if name == "sink" else "d0" for name in names}
    (tmp_path / "placement.json").write_text(json.dumps({"assignment": assignment}))
    return "placement.json"


@pytest.fixture
def tasks(tmp_path):
    """A task graph of four operators, and in present.json all of them on d0."""
    (tmp_path / "tasks.json").write_text(json.dumps(TASKS))
    together = {operator["name"]: "d0" for operator in TASKS["operators"]}
    (tmp_path / "present.json").write_text(json.dumps({"assignment": together}))
    return "tasks.json"
