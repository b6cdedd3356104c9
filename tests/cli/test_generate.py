"""Graphs that are generated, and imported from the formats of other tools."""

import json
import os
import shutil
from pathlib import Path

import pytest
from fuzz.targets import SEEDS
from rooms import needs_papers


def test_graphs_of_a_benchmark_need_their_devices(run):
    """The CPU of each is that of its devices; a fifth of the graphs is for testing."""
    size = ("--branches", "2", "--depth", "2", "--devices", "2", "--copies", "10")
    run("generate", "branched", *size, "-o", "b.jsonl.gz")
    document = json.loads(run("describe", "b.jsonl.gz", "--json").out)
    assert document["graphs"] == 10
    assert document["splits"] == {"train": 8, "test": 2}
    assert document["cpu"]["min"] == pytest.approx(2)
    assert document["cpu"]["max"] == pytest.approx(2)


def test_a_recipe_generates_what_it_prescribes(run):
    parameters = "branches = 1\ndepth = 2\ndevices = 2\ncopies = 2\n"
    Path("r.toml").write_text(f'family = "branched"\nseed = 4\n[parameters]\n{parameters}')
    answer = run("generate", "recipe", "r.toml", "-o", "b.jsonl", "--json")
    assert json.loads(answer.out)["graphs"] == 2


@needs_papers
def test_problems_are_generated_described_and_placed(run):
    answer = run("generate", "giph", "--problems", "1", "-o", "g.jsonl")
    assert "2 problems (1 test, 1 train)" in answer.out + answer.err
    described = json.loads(run("describe", "g.jsonl", "--json").out)
    assert described["devices"]["min"] == 20
    assert described["splits"] == {"train": 1, "test": 1}
    assert run("compare", "g.jsonl", "--placers", "random,round-robin").status == 0


@pytest.mark.parametrize(
    "family",
    [
        pytest.param("chainmm", marks=needs_papers),
        pytest.param("nmt", marks=[needs_papers, pytest.mark.slow]),
        pytest.param("giph", marks=needs_papers),
        "random-dag",
    ],
)
def test_help_of_a_family_begins_with_a_command_that_works(run, family):
    _, _, help = run("generate", family, "--help").out.partition("Example: streamplace ")
    example, _, _ = help.partition("\n\n")
    assert run(*example.split()).status == 0


@pytest.mark.parametrize("name", ["pipe.jsonl", "pipe.jsonl.gz", "pipe.json"])
def test_a_pipe_is_refused_and_stays_one(refusal, tmp_path, name):
    """A data set's checksums are of a file; nothing waits for a reader that never comes."""
    os.mkfifo(tmp_path / name)
    assert name in refusal("generate", "random-dag", "-o", name)
    assert Path(name).is_fifo()


def test_published_graphs_are_imported(run, refusal, tmp_path):
    """As a data set, as one graph that can be placed, and not all of them as one graph."""
    (tmp_path / "in").mkdir()
    for i in range(3):
        shutil.copy(SEEDS / "dream.json", tmp_path / f"in/{i}.json")
    answer = run("import", "dream", "in", "-o", "out.jsonl.gz", "--json")
    assert json.loads(answer.out) == {"graphs": 3, "output": "out.jsonl.gz"}
    assert json.loads(run("describe", "out.jsonl.gz", "--json").out)["graphs"] == 3
    assert run("import", "dream", "in/0.json", "-o", "g.json").status == 0
    assert run("place", "g.json", "--placer", "round-robin").status == 0
    assert ".jsonl.gz" in refusal("import", "dream", "in", "-o", "out.json")
