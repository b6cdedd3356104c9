"""Graphs that are made as tensors."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dream_cases import SCALE
from histories import InterruptsEpoch, assert_same
from streamsim import throughput as simulated

import streamplace
from streamplace.errors import SettingError
from streamplace.families.branched import STANDARD, Branched, branched
from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.models.dream import FEATURES
from streamplace.learn.models.dream.graph_generator import NUMBERS, Drawn, FreshGraphs
from streamplace.learn.models.dream.graphs import FeatureScale, Graphs
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.tensors.draws import child
from streamplace.learn.tensors.memory import random_placements
from streamplace.learn.tensors.rewards import throughput
from streamplace.learn.training_loop import built
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph

FIVE = Cluster.uniform(5)
GIVEN = [Problem(next(branched(Branched(), 0)).at_rate(rate), FIVE) for rate in (1e4, 2e4)]
N, COUNT = 32, len(NUMBERS)
GRAPHS = FreshGraphs(GIVEN, SCALE, 5, COUNT, torch.device("cpu"))
ROWS = torch.arange(COUNT)
KEYS = child(torch.tensor(5), ROWS)


def problem_of(graphs: Drawn, row: int, rate: float = 1e4) -> Problem:
    """A graph that was drawn, as a problem; the tuples of every operator go on, none is added."""
    n = int(graphs.present[row].sum())
    load, out = graphs.load[row, :n].numpy(), graphs.out[row, :n].numpy()
    shares = graphs.flows[row, :n, :n].numpy() / np.where(out > 0, out, 1)
    flow = np.zeros(n)
    flow[0] = rate
    for v in range(1, n):
        flow[v] = shares[v] @ flow
    operators = [
        Operator(
            f"v{v}",
            ipt=load[v] * 2.5e9 / flow[v],
            rate=rate if v == 0 else 0.0,
            payload=out[v] / flow[v],
        )
        for v in range(n)
    ]
    pairs = np.argwhere(graphs.streams[row, :n, :n].numpy())
    streams = [Stream(f"v{u}", f"v{v}", shares[v, u]) for v, u in pairs]
    return Problem(StreamGraph.of("drawn", operators, streams), FIVE)


def test_they_are_those_of_the_family() -> None:
    """As many operators, streams and devices as their topology has; payloads of its range."""
    given_graphs = {g.name.rsplit("-", 1)[0]: g for g in branched(Branched(copies=1), 0)}
    graphs = GRAPHS.drawn(ROWS, N, KEYS)
    for row, number in enumerate(NUMBERS):
        k, d, devices = STANDARD[number]
        rate = 1e4 * float(graphs.load[row].sum() / devices)
        made, family = problem_of(graphs, row, rate).graph, given_graphs[f"b{k}x{d}-v{devices}"]
        assert (made.n_operators, made.n_streams) == (family.n_operators, family.n_streams)
        for ends in ("source", "target"):
            degrees = [np.bincount(getattr(g.streams, ends), minlength=2) for g in (made, family)]
            assert sorted(degrees[0]) == sorted(degrees[1])
        payload = made.operators.payload[:-1]
        assert ((payload >= 0.99) & (payload <= 62_501)).all()
        shares = made.flow.input_rate * made.operators.ipt / 2.5e9
        assert shares.max() * made.source_rate**-1 <= k / 1e4 + 1e-9
        assert shares.sum() == pytest.approx(devices * made.source_rate / 1e4)


def test_they_do_not_depend_on_their_batch() -> None:
    """Nor on the padding."""
    together = GRAPHS.drawn(ROWS, N, KEYS)
    sizes = GRAPHS.outlines.operators
    for size in sizes.unique().tolist():
        chosen = (sizes == size).nonzero()[:, 0]
        alone = GRAPHS.drawn(chosen, size, KEYS[chosen])
        assert torch.equal(alone.streams, together.streams[chosen, :size, :size])
        assert torch.allclose(alone.load, together.load[chosen, :size], rtol=1e-12)
        assert torch.allclose(alone.flows, together.flows[chosen, :size, :size], rtol=1e-12)


def test_batches_are_those_of_the_same_graphs_as_problems() -> None:
    """Whatever a policy sees, and what placements are worth."""
    made = GRAPHS.drawn(ROWS, N, KEYS)
    problems = [problem_of(made, row) for row in range(COUNT)]
    for problem in problems:
        assert (decision_order(problem, "bfs") == np.arange(problem.n_operators)).all()
    batch, costs = GRAPHS.batch(ROWS, N, KEYS)
    n = max(problem.n_operators for problem in problems)
    order = torch.arange(n).expand(COUNT, -1)
    expected = Graphs.of(problems, SCALE, 5, canonical=True).batch(ROWS, order)
    for name in ("present", "streams", "upstream", "inbound", "allowed", "lower", "load"):
        found = getattr(batch, name)
        found = found[:, :n] if found.shape[1] > 5 else found
        found = found[:, :, :n] if found.ndim == 3 and found.shape[2] > 5 else found
        assert torch.allclose(found.double(), getattr(expected, name).double(), rtol=1e-5), name
    there = batch.present[:, :n]
    assert torch.allclose(batch.features[:, :n][there], expected.features[there], atol=1e-4)
    placements = random_placements(KEYS, 6, N, GRAPHS.outlines)
    found = throughput(costs, placements)
    for row, problem in enumerate(problems):
        own = placements[row, :, : problem.n_operators].numpy().astype(np.int32)
        assert found[row].tolist() == pytest.approx(simulated(problem.instance, own), rel=1e-6)


def test_a_batch_is_made_on_its_device() -> None:
    """Nothing is copied from the host, nor is any value needed there."""
    graphs = FreshGraphs(GIVEN, SCALE, 5, 64, torch.device("meta"))
    rows = torch.arange(64, device="meta")
    batch, costs = graphs.batch(rows, N, child(torch.tensor(5, device="meta"), rows))
    assert batch.features.is_meta
    assert costs.bytes.is_meta


@pytest.mark.parametrize(
    "cluster", [Cluster.of([Device("a"), Device("b", mips=1000)]), Cluster.uniform(5, cores=4)]
)
def test_other_clusters_than_one_of_equal_devices_are_refused(cluster: Cluster) -> None:
    """Whichever graph has it."""
    given = [GIVEN[0], Problem(GIVEN[0].graph, cluster)]
    with pytest.raises(SettingError, match="cluster"):
        FreshGraphs(given, SCALE, 5, 9, torch.device("cpu"))


def test_a_training_on_them_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """It was stopped in its second epoch; the graphs given are the validation's."""
    file = tmp_path / "small.toml"
    file.write_text("[training]\nbatch = 32\n[model]\nwidth = 8\nfresh = 64\n")
    graphs = list(islice(branched(Branched(copies=1), 0), 0, 40, 8))

    def train(name: str, **options: Any) -> Path:
        folder = tmp_path / name
        options = {"rate": (1e4, 2e4), "preset": "gpu", "config": file, "epochs": 2, **options}
        return streamplace.train("dream", graphs, folder, **options).folder

    whole = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("stopped", watcher=InterruptsEpoch(2))
    resumed = train("stopped", resume=True)
    assert_same(resumed, whole, "best.safetensors", "last.safetensors")


def test_only_the_throughput_is_learnt_from_them() -> None:
    task = LearningTask(tuple(GIVEN), (), 0, objective="makespan")
    with pytest.raises(SettingError, match="throughput"):
        built(MODELS["dream"], task, MODELS["dream"].presets["gpu"])


def test_features_may_be_those_of_the_paper() -> None:
    """The last two of ours, as they are."""
    plain = FreshGraphs(GIVEN, FeatureScale.of(GIVEN, FEATURES[2:]), 5, COUNT, torch.device("cpu"))
    found, ours = (made.batch(ROWS, N, KEYS)[0].features for made in (plain, GRAPHS))
    mean, std = (torch.from_numpy(part).float() for part in (SCALE.mean[2:], SCALE.std[2:]))
    there = GRAPHS.drawn(ROWS, N, KEYS).present
    assert torch.allclose(found[there], ours[there][:, 2:] * std + mean, atol=1e-5)
