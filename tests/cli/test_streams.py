"""What commands do when nobody can read what they print."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import command_lines
import pytest
from command_lines import commands
from dream_format import write_dream
from problems import fork_join

from streamplace.cli.main import cli

IN_FORKS = """
import json, os, sys
from command_lines import commands
from streamplace.cli.main import main

commands()  # loads them once, not in every fork

def broken(kind):
    if kind == "closed":
        os.close(1)
        sys.stdout = sys.__stdout__ = None
        return
    reader, writer = os.pipe()
    os.dup2(os.open("/dev/full", os.O_WRONLY) if kind == "full" else writer, 1)
    os.close(reader)
    os.close(writer)

def answer(kind, words):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 2)
        broken(kind)
        main(words)
    os.close(writer)
    with os.fdopen(reader) as stderr:
        said = stderr.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said

kinds, lines = json.loads(sys.argv[1])
print(json.dumps([[kind, words, *answer(kind, words)] for kind in kinds for words in lines]))
"""
DOCUMENTS = [
    ["compare", "graph.json", "--placers", "round-robin", "--json"],
    ["demo", "-o", "demo", "--json"],
    ["describe", "graph.json", "--json"],
    ["draw", "graph.json", "placement.json", "-o", "d.svg", "--json"],
    ["export", "placement.json", "--graph", "graph.json", "--to", "json"],
    ["generate", "random-dag", "-o", "b.jsonl", "--json"],
    ["import", "dream", "dream.json", "-o", "i.json", "--json"],
    ["library", "list", "--json"],
    ["objectives", "--json"],
    ["place", "graph.json", "--placer", "round-robin", "--json"],
    ["placers", "--json"],
    ["plan", "graph.json", "--rate", "10", "--offers", "offers.toml", "--json"],
    ["schema", "graph"],
    ["simulate", "graph.json", "placement.json", "--json"],
]
STATUS = {"full": 2, "gone": 141, "closed": 0}
SAYS = {"full": "error: cannot write to stdout: No space left on device", "gone": "", "closed": ""}


def answers(kinds: list[str], lines: list[list[str]], folder: Path) -> list[Any]:
    """Ways to break stdout and command lines, and what they answer: exit status and stderr."""
    script = [sys.executable, "-c", IN_FORKS, json.dumps([kinds, lines])]
    path = {**os.environ, "PYTHONPATH": str(Path(command_lines.__file__).parent)}
    run = subprocess.run(script, capture_output=True, text=True, cwd=folder, env=path, check=True)
    answers: list[Any] = json.loads(run.stdout)
    assert len(answers) == len(kinds) * len(lines)
    return answers


EVERY = [[], *commands()]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "names",
    [
        pytest.param([[], ["flink", "move"]], id="two"),
        pytest.param(EVERY, id="every", marks=pytest.mark.slow),
    ],
)
def test_help_survives_a_broken_stdout(names: list[list[str]], tmp_path: Path) -> None:
    lines = [[*words, "--help"] for words in names]
    for kind, words, status, said in answers(list(STATUS), lines, tmp_path):
        assert status == STATUS[kind], words
        assert said.startswith(SAYS[kind]), words
        assert said.count("\n") == bool(SAYS[kind]), words


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_documents_of_every_command_survive_a_full_stdout(
    graph: str, placement: str, tmp_path: Path
) -> None:
    """What was asked for with -o is there all the same."""
    write_dream(fork_join(), tmp_path / "dream.json")
    offer = '[[offers]]\nname = "large"\nprice = 1\ncores = 8\nmips = 10000\n'
    (tmp_path / "offers.toml").write_text(offer)
    for _, words, status, said in answers(["full"], DOCUMENTS, tmp_path):
        assert status == 2, words
        assert said.splitlines()[-1].startswith(SAYS["full"]), words
        assert "Traceback" not in said, words
    assert {"d.svg", "b.jsonl", "i.json"} <= {path.name for path in tmp_path.iterdir()}


def test_the_documents_are_those_of_all_commands_that_print_one() -> None:
    """A new command belongs into the list above."""
    silent = {"flink", "train"}  # need a cluster, need minutes
    context = click.Context(cli)
    assert {words[0] for words in DOCUMENTS} | silent == set(cli.list_commands(context))


SHUT = ["<&-", ">&- 2>&-", *(pytest.param(one, marks=pytest.mark.slow) for one in (">&-", "2>&-"))]


@pytest.mark.parametrize("ending", [*SHUT, "2>/dev/full"])
def test_closed_streams_of_a_shell_are_no_failure(ending: str) -> None:
    """As in a service that was started without any."""
    line = f"{sys.executable} -c 'from streamplace.cli.main import main; main()' placers --json"
    run = subprocess.run(["sh", "-c", f"{line} {ending}"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_full_stderr_hides_the_message_and_not_the_status() -> None:
    """Nobody can be told, and scripts read the status."""
    script = "from streamplace.cli.main import main; main(['place'])"
    with Path("/dev/full").open("w") as full:
        assert subprocess.run([sys.executable, "-c", script], stderr=full).returncode == 2
