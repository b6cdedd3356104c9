"""Training for other objectives than throughput."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import chain, diamond, random_tasks
from strategies import placements, problems

from streamplace.api import place, train
from streamplace.io.problems import write_problems
from streamplace.io.weights import read_weights
from streamplace.learn.reward import Relative, reward_of
from streamplace.model import Cluster, Device, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import Budget

SMALL = (
    "[model]\nwidth = 16\nembedding = 4\nexploration = 8.0\nimitation = 0\n[training]\nbatch = 4\n"
)


def tasks(seed, devices=3):
    """Six tasks that each need one of those before, on unequal devices."""
    cluster = Cluster.of([Device(f"d{d}", mips=1000.0) for d in range(devices)], bandwidth="40 bps")
    return Problem(random_tasks(6, seed), cluster)


@pytest.fixture
def config(tmp_path):
    """Options of a small model."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_dream_learns_makespan(tmp_path, config):
    """Task graphs suggest it; it does better than when it began, and says what it learned."""
    graphs = [tasks(seed) for seed in range(12)]
    trained = train("dream", graphs, tmp_path / "run", config=config, epochs=12)
    epochs = trained.history.epochs
    assert epochs[-1].reward > epochs[0].reward + 0.02
    assert all(0 < epoch.reward <= epoch.best <= 1 for epoch in epochs)
    document = read_weights(trained.weights).document
    assert document["training"]["objective"] == "makespan"
    result = place(graphs[0], placer=f"dream:weights={trained.weights}")
    assert result.objective == "makespan"
    assert result.value >= OBJECTIVES["makespan"].bound(graphs[0]) * (1 - 1e-9)


def test_validation_is_compared_with_proven_makespans(tmp_path, config):
    """The reward of an optimum is its bound / makespan; no placement has a larger reward."""
    problems = [tasks(seed) for seed in range(3)]
    trained = train("encdec", problems, tmp_path / "run", config=config, epochs=1)
    makespan = OBJECTIVES["makespan"]
    rewards = [
        makespan.bound(problem) / place(problem, placer="exact", budget=Budget(10.0, 30_000)).value
        for problem in problems
    ]
    (optimum,) = trained.optima
    assert min(abs(optimum - reward) for reward in rewards) < 1e-9
    ((rate, held),) = trained.by_rate().items()
    assert rate == 1  # however many sources a graph has
    assert held.of_optimum == pytest.approx(trained.history.score / optimum)
    assert 0 < held.of_optimum <= 1 + 1e-9


def test_measured_passes_wait_for_each_other():
    """They would disturb each other, though threads ask at the same time."""
    problem, running, most = tasks(0), 0, 0

    def measure(problem, places):
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        time.sleep(0.01)
        running -= 1
        return np.ones(len(places))

    reward = reward_of("makespan", measure)
    placements = np.zeros((1, problem.n_operators), np.int32)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: reward(problem, placements), range(8)))
    assert most == 1


def test_what_cannot_be_proven_has_no_optimum(tmp_path, config):
    trained = train(
        "encdec", [tasks(0), tasks(1)], tmp_path / "run", config=config, epochs=1,
        objective="latency",
    )  # fmt: skip
    assert np.isnan(trained.optima).all()
    assert [held.of_optimum for held in trained.by_rate().values()] == [None]


def test_each_has_its_cluster(run, refusal, config, tmp_path):
    """A data set of problems, some of three devices and some of two."""
    write_problems([tasks(seed, 2 + seed % 2) for seed in range(6)], tmp_path / "p.jsonl")
    answer = run(
        "train", "dream", "--data", "p.jsonl", "--out", "run", "--config", str(config),
        "--epochs", "1", "--objective", "latency", "--json",
    )  # fmt: skip
    assert answer.status == 0, answer.err
    assert json.loads(answer.out)["epochs"] == 1
    assert (tmp_path / "run" / "curve.png").exists()
    line = refusal("train", "dream", "--data", "p.jsonl", "--out", "r2", "--devices", "3")
    assert "contains its own cluster" in line


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("pilot",), "not for makespan; train another, such as pilot-makespan"),
        (("dream", "--objective", "energy"), "no device states its power"),
        (("dream", "--objective", "speed"), "there is no objective 'speed'"),
        (("dream", "--reward", "engine"), "the reward engine measures throughput, not makespan"),
        (
            ("dream", "--reward", "ray", "--objective", "latency"),
            "measured passes have a makespan, not latency; drop the reward or the objective",
        ),
    ],
)
def test_what_cannot_be_learned_is_told(refusal, tmp_path, words, complaint):
    write_problems([tasks(0), tasks(1)], tmp_path / "p.jsonl")
    assert complaint in refusal(
        "train", *words, "--data", "p.jsonl", "--out", "run", "--epochs", "1"
    )


@given(st.data(), st.sampled_from(["makespan", "latency", "cost", "devices"]))
def test_rewards_are_shares_and_rank_as_the_objective_does(data, name):
    problem, judge = data.draw(problems()), OBJECTIVES[name]
    batch = np.stack([data.draw(placements(problem)) for _ in range(4)])
    rewards = reward_of(name, "steady")(problem, batch)
    assert ((rewards >= 0) & (rewards <= 1)).all()
    values = judge.values(problem, batch)
    for i in range(4):
        for j in range(4):
            if judge.better(values[i], values[j]):
                assert rewards[i] >= rewards[j] - 1e-12


@pytest.mark.parametrize("graph", [chain(), diamond()], ids=["chain", "diamond"])
def test_a_reward_of_one_is_the_bound(graph):
    """Bound / value; everything on one device is worth half where nothing is proven."""
    problem = Problem(graph, Cluster.uniform(2))
    together = np.zeros((1, graph.n_operators), np.int32)
    for name in ("makespan", "cost"):
        judge = OBJECTIVES[name]
        expected = judge.bound(problem) / judge.values(problem, together)
        assert reward_of(name, "steady")(problem, together) == pytest.approx(expected)
        unproven = Relative(replace(judge, bound=lambda problem: None))
        assert unproven(problem, together) == pytest.approx(0.5)
