"""A command line in this process, and files to run it on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from problems import fork_join

from streamplace.cli.main import main
from streamplace.io.graphs import write_graph


class Answer(NamedTuple):
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Answer:
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        out, err = capsys.readouterr()
        return Answer(int(stop.value.code or 0), out, err)

    return call


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
