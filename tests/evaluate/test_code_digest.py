"""Results are computed anew after any change of the code that they depend on."""

import importlib
import json
import sys

import pytest
from problems import chain
from registered import forgetting
from third_parties import run_with

import streamplace
from streamplace.errors import FormatError
from streamplace.evaluate.code_digest import code_digest
from streamplace.evaluate.placing import Placing, place_all
from streamplace.evaluate.records import read_records
from streamplace.evaluate.runner import ComparisonRun, records_of
from streamplace.io.datasets import DataSet
from streamplace.io.graphs import write_graphs
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget
from streamplace.placers.request import PlacementRequest

FILES = {
    "__init__.py": "",
    "helper.py": "DEVICE = 0",
    "placers.py": """
from streamplace.placers.registry import placer
@placer("foreign")
def foreign(problem, objective, *, seed, budget):
    "All on one device."
    from foreigners.helper import DEVICE
    return problem.placement([DEVICE] * problem.n_operators)
""",
    "objectives.py": """
import numpy as np
from streamplace.objectives.registry import objective
@objective("foreign", sense="min")
def foreign(problem, placements):
    "The number of the first operator's device."
    from foreigners.helper import DEVICE
    return placements[:, 0] + float(DEVICE)
""",
    "policies.py": """
from streamplace.learn.registry import LearnedModel
from streamplace.placers.learned import placer_that_allocates
from streamplace.placers.registry import PLACERS
def read(path):
    from foreigners.helper import DEVICE
    class Policy:
        def place_many(self, problems):
            return [p.placement([DEVICE] * p.n_operators) for p in problems]
    return Policy()
MODEL = LearnedModel("foreign", "A policy.", None, {}, None, read)
PLACER = placer_that_allocates(MODEL, read)
PLACERS.add("foreign", PLACER, read)
""",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of others, of whose modules one is imported by another."""
    folder = tmp_path / "foreigners"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with forgetting(PLACERS), forgetting(OBJECTIVES):
        yield folder
    for name in [name for name in sys.modules if name.startswith("foreigners")]:
        del sys.modules[name]


def change_helper(package):
    """Another device in the helper, for the code that is imported next."""
    (package / "helper.py").write_text("DEVICE = 1  # changed")
    importlib.invalidate_caches()
    sys.modules.pop("foreigners.helper", None)


@pytest.mark.parametrize(
    ("module", "placer", "objective"),
    [
        ("placers", "foreign", "throughput"),
        ("objectives", "round-robin", "foreign"),
        ("policies", "foreign:weights={weights}", "throughput"),
    ],
)
def test_a_changed_helper_makes_results_stale(package, tmp_path, module, placer, objective):
    """Of a placer, of an objective, and of a policy whose weights are the same."""
    importlib.import_module(f"foreigners.{module}")
    weights = tmp_path / "same.safetensors"
    weights.write_bytes(b"same")
    budget, spec = Budget(evaluations=10), placer.format(weights=weights)
    run = ComparisonRun((spec,), objectives=(objective,), budget=budget)
    file, reused = tmp_path / "results.jsonl", []
    for change, n_results in ((None, 1), (None, 1), (change_helper, 2)):
        if change is not None:
            change(package)
        list(records_of(run, [Problem(chain(), Cluster.uniform(2))], file, on_reused=reused.append))
        records = list(read_records(file))
        assert len(records) == n_results
    assert reused == [0, 1, 0]
    by_helper = [r.devices[0] if module != "objectives" else r.value for r in records]
    assert by_helper == [0, 1]


def test_values_by_other_objectives_are_those_of_their_code(package, tmp_path):
    importlib.import_module("foreigners.objectives")
    run = ComparisonRun(("round-robin",), objectives=("throughput", "foreign"))
    file, problem = tmp_path / "results.jsonl", Problem(chain(), Cluster.uniform(2))
    for value in (0.0, 1.0):
        ((record, _),) = records_of(run, [problem], file)
        assert record.measures["foreign"] == value
        change_helper(package)


def test_another_build_of_streamplace_makes_results_stale(tmp_path, monkeypatch):
    before = code_digest()
    monkeypatch.setattr(streamplace, "__path__", [*streamplace.__path__, str(tmp_path)])
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "kernel.nbi").write_text("made")
    assert code_digest() == before
    digests = {before}
    for text in ("1", "22"):
        (tmp_path / "module.py").write_text(text)
        digests.add(code_digest())
    assert len(digests) == 3


def test_lines_of_other_code_are_not_continued(package, tmp_path):
    importlib.import_module("foreigners.placers")
    write_graphs([chain(3)], tmp_path / "set.jsonl")
    data, path = DataSet(tmp_path / "set.jsonl"), tmp_path / "placed.jsonl"
    saved = [
        placed.is_saved
        for _ in range(2)
        for placed in place_all(Placing(PlacementRequest("foreign")), data, path, jobs=1)
    ]
    assert saved == [False, True]
    change_helper(package)
    with pytest.raises(FormatError, match="or by other code"):
        list(place_all(Placing(PlacementRequest("foreign")), data, path, jobs=1))


def test_what_is_reused_is_said_in_one_line(tmp_path):
    write_graphs([chain(3), chain(4)], tmp_path / "set.jsonl")
    compare = "compare", "set.jsonl", "--placers", "round-robin,random", "-o", "out"
    place = "place", "set.jsonl", "--placer", "round-robin", "-o", "placed.jsonl"
    for words, reused in ((compare, "4 results"), (place, "2 results")):
        assert "reused" not in run_with(tmp_path, tmp_path, *words, "--evaluations", "9").err
        said = run_with(tmp_path, tmp_path, *words, "--evaluations", "9").err
        assert [line for line in said.splitlines() if "reused" in line] == [
            line for line in said.splitlines() if line.startswith(f"{reused} reused from ")
        ]
        assert said.count("reused") == 1


def test_a_broken_plugin_is_named_and_the_others_work(tmp_path):
    """In one line, in every listing and in every command that looks for its name."""
    about = tmp_path / "spoiled-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: spoiled\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[streamplace.placers]\nrotten = rotten\n")
    (tmp_path / "rotten.py").write_text("import nothing_of_this_name\n")
    answer = run_with(tmp_path, tmp_path, "placers", "--json")
    assert answer.status == 0
    assert "metis" in json.dumps(json.loads(answer.out))
    (line,) = answer.err.splitlines()
    assert "'rotten' of spoiled" in line
