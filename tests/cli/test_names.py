"""Names are data on every way to the terminal."""

import io
import json
import logging
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hostile import FRAGMENTS, names
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from streamplace.cli._printing import print_json, progress, say, say_notes, waiting
from streamplace.cli.main import main
from streamplace.model.message_text import printable

STYLES = ("\x1b[1m", "\x1b[0m")
TO_SIMULATE = ["simulate", "g.json", "p.json", "--cluster", "c.toml"]
COMMANDS = [
    ["place", "g.json", "--cluster", "c.toml", "--placer", "round-robin", "-o", "p.json", "-v"],
    [*TO_SIMULATE, "--engine", "--duration", "1"],
    [*TO_SIMULATE, "--json"],
    ["describe", "set.jsonl"],
    ["compare", "set.jsonl", "--cluster", "c.toml", "--placers", "round-robin", "--jobs", "1"],
    ["export", "p.json", "--to", "ray", "--graph", "g.json", "--json"],
    ["export", "p.json", "--to", "csv"],  # which graph? An error that names the one it missed
    ["place", "g.json", "--cluster", "c.toml", "--constraints", "stray.toml"],
]
"""Commands whose answers name operators, devices, tags, kinds, attributes or graphs."""
one_of_each = st.lists(names, min_size=6, max_size=6, unique=True)


def write_files(graph, source, sink, device, other, tag):
    """Graphs, a cluster and constraints of these names, in the working folder."""
    document: dict[str, Any] = {
        "name": graph,
        "attributes": {tag: other},
        "operators": [
            {"name": source, "ipt": 100_000, "payload": 1000, "rate": 10_000, "kind": tag},
            {"name": sink, "ipt": 200_000},
        ],
        "streams": [{"from": source, "to": sink}],
    }
    second = {**document, "name": other, "attributes": {tag: graph}}
    Path("set.jsonl").write_text("".join(json.dumps(graph) + "\n" for graph in (document, second)))
    document["operators"][1]["requires"] = [tag]
    Path("g.json").write_text(json.dumps(document))
    devices = [{"name": name, "mips": 2500, "tags": [tag]} for name in (device, other)]
    rows = ", ".join(
        f"{{name = {_toml(d['name'])}, mips = 2500, tags = [{_toml(tag)}]}}" for d in devices
    )
    Path("c.toml").write_text(f"bandwidth = '1 Gbps'\ndevices = [{rows}]\n", encoding="utf-8")
    Path("stray.toml").write_text(f"[pin]\n{_toml(other)} = {_toml(device)}\n", encoding="utf-8")


def _toml(text):
    return '"' + "".join(f"\\U{ord(c):08x}" for c in text) + '"'


def is_data(text):
    """Whether nothing but lines of printable characters is in a text, and styles of our own."""
    for style in STYLES:
        text = text.replace(style, "")
    return text.replace("\n", "").isprintable()


FEW = settings(
    max_examples=settings().max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
"""Each example runs all commands."""


@FEW
@given(one_of_each)
@example([f"{i}{fragment}" for i, fragment in enumerate(FRAGMENTS[:6])])
def test_no_command_lets_a_name_be_more_than_a_name(run, called):
    """Nothing crashes, nothing but printable lines appears, in answers as in errors."""
    write_files(*called)
    for command in COMMANDS:
        answer = run(*command)
        if "ray" in command and "\0" in "".join(called):  # in no name that a shell passes on
            assert answer.status in (0, 2), answer
        else:
            assert answer.status == (2 if {"stray.toml", "csv"} & {*command} else 0), answer
        assert is_data(answer.out + answer.err)
        assert answer.status == 0 or answer.err.count("\n") == 1


def test_names_are_printed_as_they_are(run):
    """What looks like markup or like an emoji is neither dropped nor taken for a style."""
    called = ["[red]g", "src[/queue]", "src[kafka]", "[bold]d0", ":smile:", "[blink]"]
    write_files(*called)
    placed = run("place", "g.json", "--cluster", "c.toml", "--placer", "round-robin", "-v").out
    assert all(name in placed for name in called[:5])


def test_figures_hold_names_and_no_formulas(run, tmp_path):
    """Neither what matplotlib would compute nor what no SVG file can hold."""
    write_files("$\\frac{$", "$x$\x07", "_sink", "$d0$", "d1\x1b", "t")
    run(*COMMANDS[0])
    assert run("draw", "g.json", "p.json", "--cluster", "c.toml", "-o", "p.svg").status == 0
    assert run(*TO_SIMULATE, "--engine", "--duration", "1", "-o", "run.svg").status == 0
    drawn, plotted = (ElementTree.parse(name) for name in ("p.svg", "run.svg"))
    assert drawn.getroot().tag == plotted.getroot().tag == "{http://www.w3.org/2000/svg}svg"
    text = Path("p.svg").read_text()
    assert ">$x$\\x07</text>" in text


@given(names)
def test_a_json_document_is_equal_however_it_is_printed(name):
    with pytest.MonkeyPatch.context() as patch:
        out = stdout_of(patch, "utf-8")
        print_json({"name": name})
        text = out.getvalue().decode()
    assert is_data(text)
    assert json.loads(text) == {"name": name}


def stdout_of(patch, encoding):
    """Put a stdout of an encoding in place; returns where its bytes go."""
    buffer = io.BytesIO()
    patch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding=encoding, write_through=True))
    return buffer


def test_a_file_that_goes_to_stdout_keeps_its_bytes_and_a_terminal_its_screen(
    tmp_path, monkeypatch
):
    """A pipe of any locale gets what -o would write; a terminal only what can be shown."""
    monkeypatch.chdir(tmp_path)
    write_files("g", "a\x1b[2J大", "b\u202e", "d0", "d1", "t")
    for words in (COMMANDS[0], export := ["export", "p.json", "--to", "csv", "--graph", "g.json"]):
        with pytest.raises(SystemExit):
            main(words if words is COMMANDS[0] else [*words, "-o", "p.csv"])
    out = stdout_of(monkeypatch, "ascii")
    with pytest.raises(SystemExit):
        main(export)
    assert out.getvalue() == Path("p.csv").read_bytes()
    out = stdout_of(monkeypatch, "utf-8")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(SystemExit):
        main(export)
    assert "a\\x1b[2J大" in out.getvalue().decode()
    assert is_data(out.getvalue().decode())


@given(names, names)
@settings(max_examples=30)
def test_bars_spinners_and_notes_are_no_markup_either(title, note):
    """They appear on terminals, where the title is as it was given."""
    err = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(err, "isatty", lambda: True, raising=False)
        patch.setattr(sys, "stderr", err)
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "500")
        with progress(title, 1) as tick:
            tick(note)
        with waiting(title):
            logging.getLogger("streamplace").info("%s", note)
        say(note)
    written = err.getvalue()
    assert printable(title) in written
    assert printable(note) in written
    if not title.isprintable():
        assert title not in written


def test_equal_notes_on_several_names_are_one_line(capsys):
    say_notes([*(f"{name}: no name of its own" for name in "abcdea"), "a: rate: guessed", "cold"])
    assert capsys.readouterr().err.splitlines() == [
        "note: a, b, c and 2 more: no name of its own",
        "note: a: rate: guessed",
        "note: cold",
    ]
