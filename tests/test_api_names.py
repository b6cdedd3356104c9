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
from streamplace.api.comparing import Compare
from streamplace.api.data_sets import Describe, Generate, Import
from streamplace.api.drawing import Draw
from streamplace.api.exporting import ExportPlacement
from streamplace.api.placing import Place
from streamplace.api.planning import Plan
from streamplace.api.simulating import Simulate
from streamplace.api.training import Train
from streamplace.cli.main import cli
from streamplace.placers.request import PlacementRequest
from streamplace.rooms import ROOMS
from streamplace.settings.base import VerbSettings

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
OTHERS = {"demo", "library", "objectives", "placers", "schema"}
"""Commands that show something, or that have a package of their own."""
DEVICES, CHANGES = {"devices", "mips", "bandwidth"}, {"set"}
VERBS: dict[str, tuple[type[VerbSettings], set[str], set[str]]] = {
    "place": (
        Place,
        set(),
        DEVICES | CHANGES | {"evaluations", "present", "passes", "moves", "startup"}
        | {"split", "limit", "jobs", "on", "out"},
    ),
    "simulate simulate_queues": (
        Simulate,
        set(),
        DEVICES | CHANGES | {"present", "passes", "startup", "engine", "out"},
    ),
    "compare": (Compare, set(), DEVICES | {"evaluations"}),
    "plan_schedule plan_frontier plan": (
        Plan,
        {"rates"},
        CHANGES | {"evaluations", "schedule", "move_price", "lag", "restart", "keep", "out"},
    ),
    "train": (Train, set(), DEVICES),
    "draw": (Draw, set(), DEVICES),
    "export": (ExportPlacement, set(), {"devices"}),
    "describe": (Describe, set(), {"out"}),
    "import_graphs": (Import, {"options"}, {"reader_options", "out"}),
    "generate": (Generate, set(), {"recipe_file", "shards", "jobs", "on", "out"}),
}  # fmt: skip
"""Verb of each function, arguments of the function that are no fields, and fields of commands."""
EMPTY = inspect.Parameter.empty
OF_PYTHON = {
    "compare": {"jobs": 1},
    "train": {"seed": 0},
    "export": {"graph": EMPTY, "to": EMPTY},
    "generate": {"family": EMPTY, "parameters": EMPTY},
}
"""Defaults of Python alone: scripts start processes behind a guard only; a call trains once."""


@pytest.mark.parametrize("functions", VERBS)
def test_keywords_of_a_function_are_the_fields_of_its_verb(functions):
    """With the same defaults; what a command takes as an argument stands first in Python, too."""
    verb, others, of_commands = VERBS[functions]
    found = {}
    for name in functions.split():
        found |= inspect.signature(getattr(streamplace, name)).parameters
    keywords = {name: word for name, word in found.items() if name not in others}
    fields = {name: f for name, f in verb.model_fields.items() if name not in of_commands}
    assert keywords.keys() == fields.keys()
    usual = {name: EMPTY if f.is_required() else f.default for name, f in fields.items()}
    defaults = {name: word.default for name, word in keywords.items()}
    assert defaults == usual | OF_PYTHON.get(functions, {})
    for name in verb.marked("argument").keys() & keywords.keys():
        assert keywords[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def test_a_parameter_object_has_the_fields_of_its_names():
    """Of a verb, and what the verb computes; no layer below knows the verb."""
    verb = Place.of({"graph": "g.json", "placer": "metis", "seed": 3, "rate": "10 k/s"})
    assert verb.request() == PlacementRequest("metis", rate=1e4, seed=3)


@pytest.mark.parametrize(
    "words", [" ".join(words) for words in commands() if words[0] not in ("library", "generate")]
)
def test_a_command_has_twenty_options_at_most(words):
    found: click.Command = cli
    for name in words.split():
        found = found.get_command(click.Context(found), name) or found
    options = [param for param in found.params if isinstance(param, click.Option)]
    assert len(options) <= 20


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_imported_and_documented(name):
    assert getattr(streamplace, name).__doc__
    assert re.search(rf"^- `{name}(\.of)?(\(.*\))?`: ", REFERENCE, re.MULTILINE)


def test_every_command_has_a_function():
    commands = set(cli.list_commands(click.Context(cli)))
    assert commands - {*ROOMS} == FUNCTIONS.keys() | OTHERS
    others = {
        "simulate_queues", "plan_frontier", "plan_schedule",
        "expand", "to_networkx", "to_torch_geometric", "what_if",
    }  # fmt: skip
    assert set(FUNCTIONS.values()) | others == set(api.__all__)
    assert set(api.__all__) <= set(NAMES)


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
