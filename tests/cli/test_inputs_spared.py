"""No command writes over what it reads."""

import os
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from command_lines import commands

from streamplace.cli._options import FILE, read_problem
from streamplace.cli.main import cli

LINES = """\
compare folder --placers round-robin -o folder
describe graph.json -o graph.json
draw graph.json placement.json -o placement.json
export placement.json --to json -o placement.json
export placement.json --to json -o graph.json
export placement.json --to flink -o .
export placement.json --to json --constraints folder/graph.json -o folder/graph.json
flink advise --rate 5 --authorization folder/graph.json -o folder
flink cluster --authorization graph.json -o graph.json
flink profile --authorization graph.json -o graph.json
flink config --cluster folder -o folder
flink jar placement.json --placement graph.json -o graph.json
flink watch j --placement graph.json --spare d1 -o graph.json
generate recipe graph.json -o graph.json
import dream graph.json -o graph.json
library check graph.json placement.json -o placement.json
library list --library folder -o folder
library run --library folder --placer metis -o folder
library show a --library folder -o folder
library submit graph.json -o graph.json
library table graph.json -o graph.json
place -o graph.json graph.json
place graph.json --cluster placement.json -o placement.json
place graph.json --constraints placement.json -o placement.json
place graph.json --settings move.toml -o placement.json
simulate graph.json placement.json --settings move.toml -o move.toml
place graph.json -o hard-link.json
place graph.json -o soft-link.json
plan folder/graph.json --rate 5 --offers offers.toml -o folder
plan folder/schedule.json --trace day.csv --schedule --offers offers.toml -o folder
simulate graph.json placement.json -o folder/../placement.json
""".splitlines()


@pytest.mark.parametrize("line", LINES)
def test_an_output_that_is_an_input_is_refused(
    refusal: Callable, graph: str, placement: str, line: str
) -> None:
    """By whatever name, and the file stays as it is."""
    Path("folder").mkdir()
    for name in ("graph.json", "schedule.json"):
        Path("folder", name).write_bytes(Path(graph).read_bytes())
    Path("move.toml").write_text("from = 'placement.json'\npasses = 5\n")
    Path("offers.toml").write_text("offers = [{name = 'small', price = 0.1}]\n")
    Path("day.csv").write_text("time,rate\n0,5\n3600,9\n")
    os.link(graph, "hard-link.json")
    Path("soft-link.json").symlink_to(graph)
    assert "-o would overwrite the input" in refusal(*line.split())


def test_these_are_all_commands_that_read_and_write() -> None:
    """A new one belongs into the list above."""
    found = set()
    for words in commands():
        command: click.Command = cli
        for word in words:
            assert isinstance(command, click.Group)
            child = command.get_command(click.Context(command), word)
            assert child is not None
            command = child
        files = [p.name for p in command.params if p.type is FILE]
        if "output" in files and len(files) > 1:
            found.add(" ".join(words))
    assert all(any(line.startswith(words) for line in LINES) for words in found)


def test_a_pipe_may_be_both(run: Callable, graph: str) -> None:
    """A terminal or a device is read and written as one likes."""
    assert run("place", graph, "--constraints", "/dev/null", "-o", "/dev/null").status == 0


@pytest.mark.parametrize(
    "line",
    [
        "export placement.json --to kubernetes",
        "place graph.json",
        "draw graph.json",
        "generate random-dag",
        "export placement.json --to flink",
        "compare graph.json",
        "demo",
    ],
)
def test_a_name_that_ends_in_a_slash_is_a_folder(
    refusal: Callable, graph: str, placement: str, line: str
) -> None:
    """A file of that name is kept, whether the command writes a file or a folder."""
    Path("rules.toml").write_text("[pin]\n")
    assert "-o rules.toml/: " in refusal(*line.split(), "-o", "rules.toml/")


def test_every_file_that_is_written_is_named(run: Callable, graph: str, placement: str) -> None:
    """On stderr, after an arrow, with --json as without."""
    Path("offers.toml").write_text(
        '[[offers]]\nname = "small"\nmips = 2500\ncores = 64\nprice = 1\n'
    )
    plan = ["plan", graph, "--rate", "1", "--offers", "offers.toml", "--evaluations", "9"]
    written = {
        "placed.json": ["place", graph, "--placer", "round-robin"],
        "explained.json": ["simulate", graph, placement],
        "schema.json": ["schema", "graph"],
        "placers.json": ["placers"],
        "entries.json": ["library", "list", "--class", "cav"],
        "plan": plan,
        "plan.html": plan,
    }
    for name, words in written.items():
        for more in ([], ["--json"]):
            answer = run(*words, *more, "-o", name)
            assert answer.status == 0, answer.err
            assert f" → {name}\n" in answer.err
        assert Path(name).exists()


def test_a_dash_is_a_standard_stream(
    run: Callable, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read where a file is read, and written where one is written."""
    seen = []
    monkeypatch.setattr(
        "streamplace.cli._options.read_problem",
        lambda path, *rest: seen.append(path) or read_problem(path_of[str(path)], *rest),
    )
    path_of = {"/dev/stdin": Path(graph)}
    answer = run("place", "-", "--placer", "round-robin", "-o", "/dev/null")
    assert (answer.status, seen) == (0, [Path("/dev/stdin")])


def test_a_placement_is_written_to_a_name_that_says_so(refusal: Callable, graph: str) -> None:
    """Not JSON to a text file; a pipe takes it."""
    refused = refusal("place", graph, "-o", "out.txt")
    assert "the name must end in .json for a placement" in refused
