"""Comparisons on graphs from which the weights of a placer have come say so."""

import zlib
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pilots import tangle, weights_file
from problems import chain, diamond, fork_join
from rooms import needs_papers

import streamplace
from streamplace.evaluate.trained_on import (
    CHOSEN_BY,
    MAX_GRAPHS,
    TRAINED_ON,
    SketchedGraphs,
    described,
    weight_graphs,
)
from streamplace.families.dataset import read_recipe
from streamplace.families.registry import graph_of
from streamplace.io.datasets import DataSet, Reader
from streamplace.io.graphs import write_graphs
from streamplace.io.weights import read_weights
from streamplace.learn.model_weights import shipped
from streamplace.learn.registry import MODELS
from streamplace.model import StreamGraph, Streams

DATASETS = Path(__file__).parents[2] / "datasets"
DATA = DATASETS / "branched.jsonl.gz"
GRAPHS = [chain(), diamond(), fork_join()]


def notes(path, **training):
    """Sentences of a comparison of a pilot with such a training."""
    file = weights_file(path / "w.safetensors", training=training)
    placers = ["metis", f"mine=pilot:weights={file}:samples=0:refine=none"]
    return streamplace.compare(GRAPHS, placers, 3, rate=2e4).notes


def trained_on(graphs):
    """Entry of the graphs of a training."""
    return described(TRAINED_ON, graphs)


def varied(graph, share, seed=0):
    """A graph with all its costs changed by up to a share of them."""
    rng, operators = np.random.default_rng(seed), graph.operators

    def around(costs):
        return costs * rng.uniform(1 - share, 1 + share, len(costs))

    changed = replace(operators, ipt=around(operators.ipt), payload=around(operators.payload))
    streams = graph.streams
    costs = {"selectivity": around(streams.selectivity), "payload": around(streams.payload)}
    ends = streams.source, streams.target
    return StreamGraph(graph.name, changed, Streams(changed, *ends, **costs))


def test_a_comparison_names_placers_that_know_its_graphs(tmp_path):
    """At other rates and on other clusters, too, and those of the weights that it began from."""
    first, second = trained_on(GRAPHS[:1]), trained_on([GRAPHS[1], chain(9)])
    message = notes(tmp_path, epochs=2, **second, start={"epochs": 1, **first})
    assert message == ("mine was trained on 2 of these 3 graphs",)


def test_a_comparison_names_graphs_that_chose_the_weights(tmp_path):
    """Those that they were trained on count once."""
    chosen_by = described(CHOSEN_BY, GRAPHS[:2])
    message = notes(tmp_path, epochs=2, **trained_on(GRAPHS[1:]), **chosen_by)
    assert message == (
        "mine was trained on 2 of these 3 graphs",
        "the weights of mine were chosen by 1 of these 3 graphs",
    )


@pytest.mark.parametrize(
    "training",
    [
        {},
        {"epochs": 0, **trained_on(GRAPHS)},
        {"epochs": 2, "trained_on": "?", "chosen_by": 3},
        {"epochs": 2, "trained_on": trained_on(GRAPHS)["trained_on"][:-8]},
        {"epochs": 2, "trained_on": b64encode(zlib.compress(bytes(2**28))).decode()},
    ],
    ids=["old", "no epoch", "no text", "cut", "a million"],
)
def test_weights_that_know_no_graph_need_no_word(tmp_path, training):
    """As of an older version, from before the first epoch, or with damaged lists."""
    assert notes(tmp_path, **training) == ()


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.0099))
def test_near_copies_are_found_and_others_are_not(seed, share):
    """Costs within 1 %, of any topology, at any rate; changed by a fifth, it is another graph."""
    graph = tangle(12, seed)
    found = SketchedGraphs.from_text(SketchedGraphs.of([chain(), graph, fork_join()]).text())
    assert varied(graph, share, seed).at_rate(123.0) in found
    assert varied(graph, 0.2, seed) not in found
    assert tangle(12, seed + 1) not in found


def test_training_tells_its_graphs(tmp_path):
    """Those of validation chose the best weights, and not the last ones."""
    graphs = [chain(n) for n in range(3, 13)]
    trained = streamplace.train("dream", graphs, tmp_path / "run", cluster=3, epochs=1)
    files = trained.weights, tmp_path / "run" / "last.safetensors"
    best, last = weight_graphs([f"dream:weights={file}" for file in files]).values()
    held_out = {problem.graph.name for problem in trained.problems}
    assert held_out == {graph.name for graph in graphs if graph in best.chosen_by}
    assert held_out == {graph.name for graph in graphs if graph not in best.trained_on}
    assert len(best.trained_on) == len(last.trained_on)
    assert not len(last.chosen_by)


@pytest.mark.parametrize("name", [name for name in MODELS if shipped(name).exists()])
def test_all_shipped_weights_tell_their_graphs(name):
    """As many as they were trained on, each at every rate, of at most 20,000."""
    training = read_weights(shipped(name)).document["training"]
    numbers = len(weight_graphs([name])[name].trained_on)
    assert numbers >= min(training["problems"] // (len(training["rates"]) or 1), MAX_GRAPHS)


@pytest.fixture(scope="module")
def judged():
    """Graphs of the test splits, by which the pages judge learned placers."""
    streams = DataSet(DATA, "test", reader=Reader(None))
    recipes = [read_recipe(DATASETS / f"{name}.toml") for name in ("giph", "giph-grid")]
    tasks = (p for recipe in recipes for p in recipe.generate() if in_test(p.graph))
    return [problem.graph for problem in (*streams, *tasks)]


def in_test(graph):
    return graph.attributes["split"] == "test"


@needs_papers
@pytest.mark.parametrize("name", [name for name in MODELS if shipped(name).exists()])
def test_no_shipped_weights_learned_from_what_judges_them(name, judged):
    """Nor were they chosen by it: what is held out is of the training split."""
    known = weight_graphs([name])[name]
    assert not any(graph in graphs for graph in judged for graphs in known)
    assert "--split" not in read_weights(shipped(name)).document["training"]["command"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["training", "training-more"])
def test_no_recipe_of_trainings_makes_what_judges_them(name, judged):
    """Weights keep 20,000 sketches of what they learned from, and one of these makes more."""
    known = SketchedGraphs.of(judged)
    graphs = map(graph_of, read_recipe(DATASETS / f"{name}.toml").generate())
    made = [graph in known for graph in graphs if not in_test(graph)]
    assert len(made) > 10_000
    assert not any(made)


def test_training_reads_no_test_graph(tmp_path):
    """Neither to learn from nor to choose the best epoch, unless it is asked to."""
    splits = ("train", "train", "train", "test", "test", "validation")
    graphs = [replace(chain(n), attributes={"split": s}) for n, s in enumerate(splits, 3)]
    data = tmp_path / "graphs.jsonl"
    write_graphs(graphs, data)
    trained = streamplace.train("pilot", data, tmp_path / "run", cluster=3, epochs=1)
    (known,) = weight_graphs([f"pilot:weights={trained.weights}"]).values()
    used = [any(graph in graphs for graphs in known) for graph in graphs]
    assert used == [not in_test(graph) for graph in graphs]


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
