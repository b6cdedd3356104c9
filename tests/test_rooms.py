"""Optional rooms: found where they exist; broken and missing ones are told in one line."""

import ast
import re
import sys
from pathlib import Path

import pytest

import streamplace
from streamplace import rooms
from streamplace.cli import main
from streamplace.registry import Registry

ROOT = Path(__file__).parents[1]
COMMAND = """
import click

@click.command(short_help="A command.")
def command():
    click.echo("done")
"""


@pytest.fixture
def room(tmp_path, monkeypatch):
    """Write a file of the only room, which is called attic."""
    monkeypatch.setattr(streamplace, "__path__", [*streamplace.__path__, str(tmp_path)])
    monkeypatch.setattr(rooms, "ROOMS", ("attic",))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(name, text=""):
        path = tmp_path / "attic" / name
        for folder in (path.parent, *path.parent.relative_to(tmp_path).parents):
            folder = tmp_path / folder
            if folder != tmp_path:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "__init__.py").touch()
        path.write_text(text)

    forget()
    yield write
    forget()


def forget():
    """Forget which rooms there are, and their modules."""
    rooms.extensions.cache_clear()
    main._modules.cache_clear()
    for name in [name for name in sys.modules if name.startswith("streamplace.attic")]:
        del sys.modules[name]


def register(name):
    return f"import streamplace\nstreamplace.KINDS.add({name!r}, 1)\n"


@pytest.fixture
def kinds(monkeypatch):
    """A registry of the modules of a package, and one of its folders."""
    made = Registry("streamplace.display", "kind")
    monkeypatch.setattr(streamplace, "KINDS", made, raising=False)
    return made


def test_a_room_extends_a_registry(room, kinds):
    room("display/odd.py", register("odd"))
    assert kinds["odd"] == 1
    assert list(kinds) == ["odd"]


def test_folders_of_a_room_register_in_their_module(room, monkeypatch):
    """Those without that module are passed over."""
    folders = Registry("streamplace.learn.models", "model", "registered")
    monkeypatch.setattr(streamplace, "KINDS", folders, raising=False)
    room("odd/registered.py", register("odd"))
    room("shared/tables.py")
    assert folders["odd"] == 1
    assert list(folders) == ["odd"]


def test_a_broken_module_of_a_room_is_left_out(room, kinds, caplog):
    room("display/odd.py", register("odd"))
    room("display/rotten.py", "import nothing_like_it")
    assert list(kinds) == ["odd"]
    assert caplog.messages == [
        "streamplace.attic.display.rotten is left out: "
        "ModuleNotFoundError: No module named 'nothing_like_it'"
    ]


def test_a_broken_room_is_left_out(room, kinds, caplog):
    room("__init__.py", "1 / 0")
    assert list(kinds) == []
    assert set(caplog.messages) == {
        "streamplace.attic.display is left out: ZeroDivisionError: division by zero",
    }


def test_a_room_that_is_missing_is_named_where_a_name_is_unknown(room, kinds):
    with pytest.raises(ValueError, match=r"no kind 'odd'.*pip install 'streamplace\[attic\]'"):
        kinds["odd"]


def test_a_room_has_commands(room, run):
    room("cli/sweep.py", COMMAND)
    assert run("sweep") == (0, "done\n", "")
    assert "  sweep       A command." in run("--help").out


def test_a_broken_command_is_told_in_one_line(room, run, refusal):
    room("cli/sweep.py", "1 / 0")
    line = "streamplace.attic.cli.sweep cannot be used: ZeroDivisionError: division by zero"
    assert refusal("sweep", "--dust", "all", "--help") == f"error: {line}\n"
    assert "  sweep       streamplace.attic.cli.sweep cannot be used" in run("--help").out


def test_commands_of_a_missing_room_say_how_to_install_it(room, run, refusal):
    line = "streamplace.attic is not installed; install it with: pip install 'streamplace[attic]'"
    assert refusal("attic", "move", "--yes") == f"error: {line}\n"
    assert "attic" not in run("--help").out


def surface():
    """Modules that the reference lists for rooms."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    lines = page.partition("## Modules for rooms")[2].split("\n- ")[1:]
    first, *others = ([*re.findall("`(.*?)`", line)] for line in lines)
    return {*first, *(f"{package}.{name}" for package, *names in others for name in names)}


@pytest.mark.parametrize("package", rooms.extensions(""))
def test_a_room_imports_listed_modules_only(package):
    imported = {
        node.module
        for file in ROOT.joinpath(*package.split(".")).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    ours = {name for name in imported if name.startswith(("streamplace", "streamsim"))}
    assert {name for name in ours if not f"{name}.".startswith(f"{package}.")} <= surface()
