"""Data sets, manifests, recipes and the registry of families."""

import gzip
import hashlib
from dataclasses import asdict
from pathlib import Path

import pytest
from manifests import verify
from refusals import refusal_of
from rooms import needs_papers

from streamplace.errors import FormatError, SettingError
from streamplace.families.branched import Branched, branched
from streamplace.families.dataset import read_recipe, write_dataset
from streamplace.families.parameters import options
from streamplace.families.random_dag import RandomDag
from streamplace.families.registry import FAMILIES
from streamplace.io.graphs import graph_line, read_graph, read_graphs
from streamplace.io.manifests import manifest_path, read_manifest
from streamplace.io.problems import problem_line
from streamplace.model import Problem

DATASETS = Path(__file__).parents[2] / "datasets"
SMALL = Branched(branches=1, depth=2, devices=2, copies=5)


@needs_papers
@pytest.mark.parametrize("name", ["giph", "giph-grid"])
def test_a_shipped_recipe_makes_the_content_of_its_manifest(name):
    recipe = read_recipe(DATASETS / f"{name}.toml")
    digest = hashlib.sha256()
    for one in recipe.generate():
        digest.update(problem_line(one) if isinstance(one, Problem) else graph_line(one))
    manifest = read_manifest(DATASETS / f"{name}.manifest.json")
    assert digest.hexdigest() == manifest.content_sha256
    assert (manifest.family, manifest.seed) == (recipe.family, recipe.seed)


def test_every_manifest_that_is_shipped_is_tested():
    manifests = {path.name.split(".")[0] for path in DATASETS.glob("*.manifest.json")}
    assert manifests <= {"branched", "giph", "giph-grid"}
    assert read_recipe(DATASETS / "branched.toml").parameters == Branched()
    assert verify(DATASETS / "branched.jsonl.gz").splits == {"test": 630, "train": 2520}
    assert verify(DATASETS / "giph-grid.jsonl.gz").splits == {"test": 50, "train": 50}


def test_a_data_set_reads_back_and_its_manifest_stands_beside_it(tmp_path):
    """With progress, counts, every parameter that has a value, and both checksums."""
    seen = []
    path = tmp_path / "b.jsonl.gz"
    manifest = write_dataset("branched", SMALL, 7, path, seen.append)
    assert list(read_graphs(path)) == list(branched(SMALL, 7)) == seen
    assert (manifest.graphs, manifest.splits) == (5, {"test": 1, "train": 4})
    assert read_manifest(tmp_path / "b.manifest.json") == manifest == verify(path)
    assert manifest.parameters["copies"] == 5
    content = gzip.decompress(path.read_bytes())
    assert manifest.content_sha256 == hashlib.sha256(content).hexdigest()
    assert manifest.packed_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_one_graph_goes_into_a_json_file_without_a_manifest(tmp_path):
    """So that a folder of such files stays a folder of graphs."""
    path = tmp_path / "dag.json"
    assert write_dataset("random-dag", RandomDag(operators=9), 0, path).graphs == 1
    assert read_graph(path).n_operators == 9
    assert not manifest_path(path).exists()


@pytest.mark.parametrize(("name", "error"), [("b.json", SettingError), ("b.txt", FormatError)])
def test_other_files_hold_one_graph(tmp_path, name, error):
    with pytest.raises(error, match=r"\.jsonl"):
        write_dataset("branched", SMALL, 0, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_recipe_fills_in_defaults(tmp_path):
    """Seed 0, and every parameter it does not name."""
    path = tmp_path / "r.toml"
    path.write_text('family = "random-dag"\n[parameters]\noperators = 12\ndevices = 3\n')
    recipe = read_recipe(path)
    assert (recipe.parameters, recipe.seed) == (RandomDag(operators=12, devices=3.0), 0)
    assert next(recipe.generate()).n_operators == 12


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("seed = 1", "family"),
        ('family = "branche"', "'branche'"),
        ('family = "branched"\nseed = -1', "seed is -1"),
        ('family = "branched"\n[parameters]\ncopy = 1', "'copy'"),
        ('family = "branched"\n[parameters]\ncopies = "x"', "copies is 'x'"),
        ("family =", ""),
    ],
)
def test_a_bad_recipe_is_refused(tmp_path, text, place):
    path = tmp_path / "r.toml"
    path.write_text(text)
    assert place in refusal_of(path, read_recipe, path, kind=FormatError)


def test_every_family_has_documented_options_with_defaults():
    assert {"branched", "random-dag"} <= set(FAMILIES)
    for name in FAMILIES:
        family = FAMILIES[name]
        assert family.summary.endswith(".")
        assert all(option.help for option in options(family.parameters))
        assert {option.type for option in options(family.parameters)} <= {int, float, str, bool}
        assert len(options(family.parameters)) == len(asdict(family.parameters()))


def test_a_family_refuses_foreign_parameters_and_bad_seeds():
    with pytest.raises(SettingError, match="Branched"):
        FAMILIES["branched"].generate(RandomDag())
    with pytest.raises(SettingError, match="seed is -1"):
        FAMILIES["branched"].generate(seed=-1)
