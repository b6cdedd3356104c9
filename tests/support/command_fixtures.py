"""Files to run a command line on."""

import json

import pytest
from problems import fork_join, four_tasks

from streamplace.io.graphs import graph_to_dict


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
    (tmp_path / "tasks.json").write_text(json.dumps(graph_to_dict(four_tasks())))
    together = dict.fromkeys(four_tasks().operators.name, "d0")
    (tmp_path / "present.json").write_text(json.dumps({"assignment": together}))
    return "tasks.json"
