"""Python is as wide as the command line, and every public name is documented."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from command_lines import commands

import streamplace
from streamplace import api
from streamplace.cli.main import cli
from streamplace.settings.base import VerbSettings
from streamplace.settings.compare import CompareSettings
from streamplace.settings.place import PlaceSettings
from streamplace.settings.plan import PlanSettings
from streamplace.settings.simulate import SimulateSettings
from streamplace.settings.train import TrainSettings

ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
NAMES = sorted(set(dir(streamplace)) - {"__version__"})

FUNCTIONS = {
    "compare": "compare",
    "describe": "describe",
    "draw": "draw",
    "export": "export",
    "generate": "generate",
    "import": "import_graphs",
    "place": "place",
    "plan": "plan",
    "simulate": "simulate",
    "train": "train",
}
"""Function of every command that works on graphs."""
OTHERS = {"demo", "flink", "library", "objectives", "placers", "schema"}
"""Commands that show something, that need a Flink cluster, or that have a package of their own."""
PARAMETERS = {
    "as_json": "", "verbose": "", "data": "data", "devices": "cluster", "mips": "cluster",
    "bandwidth": "cluster", "output": "out", "format_name": "format",
}  # fmt: skip
"""Parameter of the function that does what an option does, where the names differ."""
SINGLE = {"describe": {"output"}, "import": {"output"}}
"""Options of a command that its function leaves to another function or to a loop."""
DEVICES, CHANGES = {"devices", "mips", "bandwidth"}, {"set"}
MODELS: dict[str, tuple[type[VerbSettings], set[str], set[str]]] = {
    "place": (
        PlaceSettings,
        {"graph"},
        DEVICES | CHANGES | {"evaluations", "present", "passes", "moves", "startup"}
        | {"split", "limit", "jobs", "on"},
    ),
    "simulate simulate_queues": (
        SimulateSettings,
        {"graph", "placement"},
        DEVICES | CHANGES | {"present", "passes", "startup", "engine"},
    ),
    "compare": (CompareSettings, {"data"}, DEVICES | {"evaluations"}),
    "plan_schedule plan_frontier plan": (
        PlanSettings,
        {"graph", "rates"},
        CHANGES | {"evaluations", "schedule", "move_price", "lag", "restart", "keep"},
    ),
    "train": (TrainSettings, {"model", "graphs", "out", "watcher", "track", "command"}, DEVICES),
}  # fmt: skip
"""Settings of each verb, arguments of its functions that are none, and fields of commands alone."""
OF_PYTHON = {"compare": {"jobs": 1}, "train": {"seed": 0}}
"""Defaults of Python alone: scripts start processes behind a guard only; a call trains once."""


@pytest.mark.parametrize("functions", MODELS)
def test_keywords_of_a_function_are_the_fields_of_its_settings(functions):
    """With the same defaults; objects of Python take the place of some."""
    model, others, of_commands = MODELS[functions]
    found = {}
    for name in functions.split():
        found |= inspect.signature(getattr(streamplace, name)).parameters
    keywords = {name: word.default for name, word in found.items() if name not in others}
    assert keywords.keys() == model.model_fields.keys() - of_commands
    usual = {name: model.model_fields[name].default for name in keywords}
    assert keywords == usual | OF_PYTHON.get(functions, {})


@pytest.mark.parametrize(
    "words", [" ".join(words) for words in commands() if words[0] not in ("library", "generate")]
)
def test_a_command_has_twenty_options_at_most(words):
    found: click.Command = cli
    for name in words.split():
        found = found.get_command(click.Context(found), name) or found
    options = [param for param in found.params if isinstance(param, click.Option)]
    assert len(options) <= 20


def command(name):
    return cli.get_command(click.Context(cli), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_imported_and_documented(name):
    assert getattr(streamplace, name).__doc__
    assert re.search(rf"^- `{name}(\.of)?(\(.*\))?`: ", REFERENCE, re.MULTILINE)


def test_every_command_has_a_function():
    commands = set(cli.list_commands(click.Context(cli)))
    assert commands == FUNCTIONS.keys() | OTHERS
    others = {
        "simulate_queues", "plan_frontier", "plan_schedule",
        "expand", "to_networkx", "to_torch_geometric", "what_if",
    }  # fmt: skip
    assert set(FUNCTIONS.values()) | others == set(api.__all__)
    assert set(api.__all__) <= set(NAMES)


@pytest.mark.parametrize("name", ["describe", "draw", "export", "import"])
def test_every_option_has_a_parameter(name):
    parameters = set(inspect.signature(getattr(streamplace, FUNCTIONS[name])).parameters)
    for option in command(name).params:
        text = option.name or ""
        if getattr(option, "hidden", False) or text in SINGLE.get(name, set()):
            continue
        wanted = PARAMETERS.get(text, text)
        also = "graphs" if text == "data" else text
        assert not wanted or {also, wanted} & parameters, text


@pytest.mark.parametrize("name", api.__all__)
def test_every_parameter_is_documented(name):
    function = getattr(streamplace, name)
    _, _, section = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")
    heads = re.findall(r"^(\w.*)$", re.split(r"\n\n\w+\n-+\n", section)[0], re.MULTILINE)
    documented = {name for head in heads for name in head.split(", ")}
    assert documented == set(inspect.signature(function).parameters)


IMPORTS = """
import sys, streamplace

print({"numpy", "torch", "matplotlib", "rich", "pandas", "click"} & set(sys.modules))
from streamplace import Operator, StreamGraph

graph = StreamGraph.of("g", [Operator("a", rate=1)])
streamplace.simulate(graph, {"a": "d0"})
print({"pandas", "networkx", "matplotlib"} & set(sys.modules))
"""


def test_libraries_are_loaded_for_those_who_use_them():
    """Importing streamplace loads nothing heavy, and simulating a graph no library of others."""
    run = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert run.stdout == "set()\nset()\n", run.stderr
