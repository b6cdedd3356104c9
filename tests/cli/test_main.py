"""What the command line prints: help, lists, schemas, and messages about what is in its way."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import commands

from streamplace.io.schema import FILES
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS

STREAMPLACE = f"{sys.executable} -m streamplace"
FULL = "error: No space left on device\n"


def test_every_command_explains_itself_with_an_example(run):
    for words in commands():
        answer = run(*words, "--help")
        assert answer.status == 0, words
        assert "Example: streamplace " + " ".join(words[:1]) in answer.out, words


@pytest.mark.parametrize("words", [[], ["generate"]], ids=["bare", "generate"])
def test_a_bare_group_prints_its_help(run, words):
    assert run(*words) == run(*words, "--help")


LONG_TEXTS = [
    "{}",
    "schema {}",
    "place {}",
    "place graph.json -o {}",
    "place --{}",
    "place graph.json --require {}",
    "place graph.json --placer metis:{}=1",
]
LONG_NUMBERS = [
    *(f"place graph.json --{option} {{}}" for option in ("seed", "budget", "mips", "rate")),
    "place graph.json --placer metis:k={}",
]


@pytest.mark.parametrize("line", [*LONG_TEXTS, *LONG_NUMBERS])
def test_a_message_does_not_echo_long_arguments(refusal, graph, line):
    """Nor does one about a path; numbers may be too long to be read."""
    for character in ("x y ", "9") if line in LONG_NUMBERS else ("x y ",):
        word_of_5000 = (character * 5000)[:5000]
        assert len(refusal(*(word.format(word_of_5000) for word in line.split()))) < 1000


HELP = """
import json, sys
from streamplace.cli.main import main

for words, heavy in json.loads(sys.argv[1]):
    try:
        main([*words, "--help"])
    except SystemExit:
        pass
    if loaded := {"torch", "matplotlib", *heavy} & sys.modules.keys():
        sys.exit(f"{words} loads {sorted(loaded)}")
"""


def test_help_loads_no_heavy_library():
    """The command line answers at once because heavy libraries wait until they are used.

    One process asks for the help that may load least first.
    """
    heavy = ["rich", "networkx", "ortools", "pymetis"]
    helps = [
        (["demo"], [*heavy, "numpy", "pydantic"]),
        (["describe"], [*heavy, "numpy"]),
        ([], [*heavy, "numpy"]),
        (["place"], heavy),
        (["simulate"], heavy),
        (["train"], []),
    ]
    command = [sys.executable, "-c", HELP, json.dumps(helps)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    ("error", "status", "place"),
    [
        (MemoryError(), 2, "memory"),
        (OSError(errno.ENOSPC, "No space left", "x.bin"), 2, "x.bin: No space left"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_ends_a_command_from_outside_is_told_in_one_line(
    run, graph, monkeypatch, error, status, place
):
    def fail(*_):
        raise error

    monkeypatch.setattr("streamplace.io.graphs.lines_of", fail)
    answer = run("place", graph)
    line = answer.err.removeprefix("\n")  # after the ^C of a terminal
    assert (answer.status, line.count("\n")) == (status, 1)
    assert place in line


@pytest.mark.parametrize(
    ("command", "registry"), [("placers", PLACERS), ("objectives", OBJECTIVES)]
)
def test_the_registry_is_printed(run, command, registry):
    rows = json.loads(run(command, "--json").out)
    assert [row["name"] for row in rows] == list(registry)
    printed = run(command).out
    assert all(row["name"] in printed for row in rows)


@pytest.mark.parametrize("name", FILES)
def test_every_format_has_a_schema_that_forbids_unknown_fields(run, name):
    schema = json.loads(run("schema", name).out)
    assert "properties" in schema
    assert schema["additionalProperties"] is False


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("ending", "status", "message"),
    [
        (">&- 2>&-", 0, ""),  # as in a service that was started without any
        ("> /dev/full", 2, FULL),
        ("| true; exit ${PIPESTATUS[0]}", 141, ""),
    ],
    ids=["closed", "full", "a reader that has gone"],
)
@pytest.mark.parametrize("words", ["placers --json", "place --help"])
def test_a_stdout_that_takes_nothing_is_told_in_one_line_at_most(words, ending, status, message):
    command = ["bash", "-c", f"{STREAMPLACE} {words} {ending}"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (status, "", message)
