"""Files to run a command line on."""

import json
from pathlib import Path

import pytest
from problems import fork_join

from streamplace.io.graphs import write_graph


@pytest.fixture
def graph(tmp_path: Path) -> str:
    """A fork-join graph of ten operators, in graph.json."""
    write_graph(fork_join(), tmp_path / "graph.json")
    return "graph.json"


@pytest.fixture
def placement(tmp_path: Path) -> str:
    """Everything on d0 but the sink, in placement.json."""
    names = fork_join().operators.name
    assignment = {name: "d1" if name == "sink" else "d0" for name in names}
    (tmp_path / "placement.json").write_text(json.dumps({"assignment": assignment}))
    return "placement.json"
