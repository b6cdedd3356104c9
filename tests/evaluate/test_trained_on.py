"""Comparisons on graphs that a placer was trained on say so."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pilots import weights_file
from problems import chain, diamond, fork_join

import streamplace
from streamplace.evaluate.trained_on import MAX_GRAPHS, described, graph_number, trained_on
from streamplace.families.dataset import read_recipe
from streamplace.families.registry import graph_of
from streamplace.io.datasets import DataSet, Reader
from streamplace.io.graphs import write_graphs
from streamplace.io.weights import read_tensors
from streamplace.learn.model_weights import shipped
from streamplace.learn.registry import MODELS

DATASETS = Path(__file__).parents[2] / "datasets"
DATA = DATASETS / "branched.jsonl.gz"
GRAPHS = [chain(), diamond(), fork_join()]


def notes(path, **training):
    """Sentences of a comparison of a pilot with such a training."""
    file = weights_file(path / "w.safetensors", training=training)
    placers = ["metis", f"mine=pilot:weights={file}:samples=0:refine=none"]
    return streamplace.compare(GRAPHS, placers, 3, rate=2e4).notes


def test_a_comparison_names_placers_that_know_its_graphs(tmp_path):
    """At other rates and on other clusters, too, and those of the weights that it began from."""
    first, second = described(GRAPHS[:1]), described([GRAPHS[1], chain(9)])
    message = notes(tmp_path, epochs=2, **second, start={"epochs": 1, **first})
    assert message == ("mine was trained on 2 of these 3 graphs",)


@pytest.mark.parametrize(
    "training", [{}, {"epochs": 0, **described(GRAPHS)}, {"epochs": 2, "graphs": "?"}]
)
def test_weights_that_know_no_graph_need_no_word(tmp_path, training):
    """As of an older version, from before the first epoch, or with a damaged list."""
    assert notes(tmp_path, **training) == ()


def test_training_tells_its_graphs(tmp_path):
    graphs = [chain(n) for n in range(3, 13)]
    trained = streamplace.train("dream", graphs, tmp_path / "run", cluster=3, epochs=1)
    numbers = trained_on([f"dream:weights={trained.weights}"]).popitem()[1]
    held_out = {graph_number(problem.graph) for problem in trained.problems}
    assert numbers == {graph_number(graph) for graph in graphs} - held_out


@pytest.mark.parametrize("name", [name for name in MODELS if shipped(name).exists()])
def test_all_shipped_weights_tell_their_graphs(name):
    """As many as they were trained on, each at every rate, of at most 20,000."""
    training = read_tensors(shipped(name))[0]["training"]
    numbers = len(trained_on([name])[name])
    assert numbers >= min(training["problems"] // (len(training["rates"]) or 1), MAX_GRAPHS)


@pytest.fixture(scope="module")
def judged():
    """Graphs of the test splits, by which the pages tell of learned placers."""
    streams = DataSet(DATA, "test", reader=Reader(None))
    recipes = [read_recipe(DATASETS / f"{name}.toml") for name in ("giph", "giph-grid")]
    tasks = (p for recipe in recipes for p in recipe.generate() if in_test(p.graph))
    return {graph_number(problem.graph) for problem in (*streams, *tasks)}


def in_test(graph):
    return graph.attributes["split"] == "test"


@pytest.mark.parametrize("name", [name for name in MODELS if shipped(name).exists()])
def test_no_shipped_weights_learned_from_what_judges_them(name, judged):
    """Epochs and options are chosen on graphs that were held out of the training split."""
    assert not trained_on([name])[name] & judged
    assert "--split" not in read_tensors(shipped(name))[0]["training"]["command"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["training", "training-more"])
def test_no_recipe_of_trainings_makes_what_judges_them(name, judged):
    """Weights keep 20,000 hashes of what they learned from, and one of these makes more."""
    graphs = map(graph_of, read_recipe(DATASETS / f"{name}.toml").generate())
    numbers = {graph_number(graph) for graph in graphs if not in_test(graph)}
    assert len(numbers) > 10_000
    assert not numbers & judged


def test_training_reads_no_test_graph(tmp_path):
    """Neither to learn from nor to choose the best epoch, unless it is asked to."""
    splits = ("train", "train", "train", "test", "test", "validation")
    graphs = [replace(chain(n), attributes={"split": s}) for n, s in enumerate(splits, 3)]
    data = tmp_path / "graphs.jsonl"
    write_graphs(graphs, data)
    trained = streamplace.train("pilot", data, tmp_path / "run", cluster=3, epochs=1)
    numbers = trained_on([f"pilot:weights={trained.weights}"]).popitem()[1]
    used = numbers | {graph_number(problem.graph) for problem in trained.problems}
    assert used == {graph_number(graph) for graph in graphs if not in_test(graph)}


@pytest.mark.parametrize(("seeds", "n"), [((0, 1, 2), 3), ((0, 0, 1), 0)])
def test_seeds_of_trainings_have_a_mean(tmp_path, seeds, n):
    placers = ["metis"]
    for i, seed in enumerate(seeds):
        file = weights_file(tmp_path / f"{i}.safetensors", seed=i, training={"seed": seed})
        placers.append(f"s{i}=pilot:weights={file}:samples=0:refine=none")
    comparison = streamplace.compare(GRAPHS, placers, 3, rate=2e4)
    assert comparison.trainings == dict.fromkeys(
        [f"s{i}" for i in range(n)], "pilot:samples=0:refine=none"
    )
    means = np.array([row.mean for *_, placer, row in comparison.rows() if placer != "metis"])
    half = 4.302652729911275 * means.std(ddof=1) / 3**0.5  # two degrees of freedom
    ends = means.mean() - half, means.mean() + half
    row = f"pilot:samples=0:refine=none {n} {means.mean():.3f} {ends[0]:.3f} to {ends[1]:.3f}"
    assert (row in " ".join(str(comparison).split())) == bool(n)
    over = comparison.document()["rates"]["20000"].get("trainings", {})
    assert [mean["interval"] for mean in over.values()] == [pytest.approx(ends)][:n]
    assert ("over seeds" in comparison.latex()) == bool(n)
