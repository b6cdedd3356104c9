"""What an installation without the extras of torch does, and what it says of the rest."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamplace.families.registry import FAMILIES
from streamplace.io.graphs import write_graph
from streamplace.io.problems import write_problem

SITE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torch_geometric"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from streamplace.cli.main import main

answers = []
for line in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(line.split())
        except SystemExit as stop:
            answers.append([stop.code or 0, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""
"""Runs command lines in one process; prints the status, stdout and stderr of each."""
LINE = "torch is not installed; install it with: pip install 'streamplace[learn]'\n"
SHIPPED = ["pilot", "pilot-makespan", "giph", "placeto", "auto", "anneal", "exact", "heft"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a graph, a problem of tasks, and a Python that has no torch."""
    made = tmp_path_factory.mktemp("bare")
    family = FAMILIES["branched"]
    parameters = family.parameters(branches=2, depth=2, devices=2, copies=1)
    write_graph(next(iter(family.generate(parameters, seed=0))), made / "graph.json")
    tasks = next(iter(FAMILIES["giph"].generate(seed=0)))
    write_problem(tasks, made / "tasks.json")
    (made / "site").mkdir()
    (made / "site" / "sitecustomize.py").write_text(SITE)
    return made


def without_torch(folder, *words):
    """What Python prints in the folder."""
    paths = [str(folder / "site"), *(str(Path(entry).absolute()) for entry in sys.path)]
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(folder, lines):
    """Status, stdout and stderr of command lines."""
    found: list[Any] = json.loads(without_torch(folder, "-c", COMMANDS, *lines))
    assert len(found) == len(lines)
    return found


@pytest.mark.slow
def test_shipped_placers_work_without_torch(folder):
    script = (
        "import sys, streamplace\n"
        "problem = streamplace.read_problem('tasks.json')\n"
        "for name in sys.argv[1:]:\n"
        "    placer = name if name != 'exact' else 'exact:budget=0.1'\n"
        "    print(name, streamplace.place(problem, placer=placer).value > 0)\n"
        "try:\n"
        "    import torch\n"
        "except ModuleNotFoundError:\n"
        "    print('no torch')\n"
    )
    told = without_torch(folder, "-c", script, *SHIPPED).splitlines()
    assert told == [*(f"{name} True" for name in SHIPPED), "no torch"]


def test_everything_but_learning_works(folder):
    lines = [
        "place graph.json -o placement.json",
        "simulate graph.json placement.json",
        "compare graph.json --placers metis,pilot --budget 0.05",
        "export placement.json --graph graph.json --to csv",
        "draw graph.json placement.json -o drawing.svg",
        "describe graph.json",
        "placers",
        "train --help",
    ]
    for line, (status, _, err) in zip(lines, answers(folder, lines), strict=True):
        assert status == 0, (line, err)


@pytest.mark.slow
def test_what_needs_torch_says_how_to_install_it(folder):
    lines = [
        "place graph.json --placer dream",
        "train pilot --data graph.json --out run",
        "import torch package.module:function -o net.json",
    ]
    before = set(folder.iterdir())
    assert answers(folder, lines) == [[2, "", f"error: {LINE}"]] * len(lines)
    assert set(folder.iterdir()) == before
    ((_, _, message),) = answers(folder, ["train pilott --data graph.json --out run"])
    assert "'pilot'" in message  # installing torch would not help


@pytest.mark.slow
def test_python_says_so_too(folder):
    """As an error of the one family: of training, and of what makes tensors."""
    calls = {
        "streamplace.train('pilot', [streamplace.read_graph('graph.json')], 'run')": "learn",
        "streamplace.to_torch_geometric(streamplace.read_graph('graph.json'))": "torch-geometric",
        "streamplace.PlacementDataset('graph.json')": "torch-geometric",
    }
    script = "import streamplace\n" + "".join(
        f"try:\n    {call}\nexcept streamplace.StreamplaceError as error:\n    print(error)\n"
        for call in calls
    )
    lines = [LINE.replace("learn", extra) for extra in calls.values()]
    assert without_torch(folder, "-c", script) == "".join(lines)


@pytest.mark.slow
def test_a_star_imports_all_but_the_data_set_of_torch_geometric(folder):
    script = "from streamplace import *; import streamplace; print(*{*dir(streamplace)} - {*dir()})"
    assert set(without_torch(folder, "-c", script).split()) == {"PlacementDataset", "__version__"}
