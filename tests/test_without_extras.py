"""What an installation without the extras of learning does, and what it says of the rest."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from everything import OF_STREAMS, OF_TASKS, OTHERS, write_examples

from streamplace.learn.registry import MODELS
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS

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
        except BaseException as error:
            answers.append([-1, out.getvalue(), repr(error)])
print(json.dumps(answers))
"""
"""Runs command lines in one process; prints the status, stdout and stderr of each."""
LINE = "{} is not installed; install it with: pip install 'streamplace[{}]'\n"
SHIPPED = ["pilot", "pilot-makespan", "auto", "anneal", "exact", "heft"]
OF_PAPERS = [name for name in MODELS if not name.startswith("pilot")]
"""Placers that need the extra ``learn``."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with graphs and problems, and a Python without torch."""
    made = tmp_path_factory.mktemp("bare")
    write_examples(made)
    (made / "site").mkdir()
    (made / "site" / "sitecustomize.py").write_text(SITE)
    return made


def bare(folder, *words):
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
    found: list[Any] = json.loads(bare(folder, "-c", COMMANDS, *lines))
    assert len(found) == len(lines)
    return found


def check_all_work(folder, lines):
    """Report every command line that fails, not only the first."""
    done = zip(lines, answers(folder, lines), strict=True)
    failed = "".join(f"{line}: {err.strip()}\n" for line, (status, _, err) in done if status)
    assert failed == ""


@pytest.mark.parametrize("lines", [OF_STREAMS, OF_TASKS], ids=["streams", "tasks"])
def test_everything_but_learning_works(folder, lines):
    check_all_work(folder, lines)


def test_what_is_made_of_placements_works(folder):
    check_all_work(folder, [OF_STREAMS[0], *OTHERS])


@pytest.mark.parametrize(
    ("graph", "objective"), [("graph.json", "throughput"), ("tasks.json", "makespan")]
)
def test_every_placer_works_but_those_of_papers(folder, graph, objective):
    names = [
        name
        for name in PLACERS
        if name not in OF_PAPERS and PLACERS[name].judges(OBJECTIVES[objective])
    ]
    assert "anneal" in names
    lines = (f"place {graph} --placer {name} --budget 0.02" for name in names)
    check_all_work(folder, [*lines])


@pytest.mark.slow
def test_shipped_placers_work_from_python(folder):
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
    told = bare(folder, "-c", script, *SHIPPED).splitlines()
    assert told == [*(f"{name} True" for name in SHIPPED), "no torch"]


def test_placers_of_papers_say_how_to_install_what_they_need(folder):
    lines = [f"place tasks.json --placer {name}" for name in OF_PAPERS]
    for name, answer in zip(OF_PAPERS, answers(folder, lines), strict=True):
        assert answer == [2, "", f"error: {LINE.format('torch', 'learn')}"], name


@pytest.mark.slow
def test_what_needs_torch_says_how_to_install_it(folder):
    lines = [
        "train pilot --data graph.json --out run",
        "import torch package.module:function -o net.json",
    ]
    before = set(folder.iterdir())
    line = f"error: {LINE.format('torch', 'learn')}"
    assert answers(folder, lines) == [[2, "", line]] * len(lines)
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
    lines = [LINE.format("torch", extra) for extra in calls.values()]
    assert bare(folder, "-c", script) == "".join(lines)


@pytest.mark.slow
def test_a_star_imports_all_but_the_data_set_of_torch_geometric(folder):
    script = "from streamplace import *; import streamplace; print(*{*dir(streamplace)} - {*dir()})"
    assert set(bare(folder, "-c", script).split()) == {"PlacementDataset", "__version__"}
