"""Graphs that are made as tensors."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dream_cases import SCALE
from histories import InterruptsEpoch, assert_same
from numpy.typing import NDArray
from streamsim import throughput as simulated

import streamplace
from streamplace.errors import SettingError
from streamplace.families.branched import STANDARD, Branched, branched
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import Preset
from streamplace.learn.models.dream.fresh import FreshGraphs
from streamplace.learn.models.dream.fresh_families import DAGS, NUMBERS, Drawn
from streamplace.learn.models.dream.graphs import Graphs
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.tensors.draws import child
from streamplace.learn.tensors.memory import random_placements
from streamplace.learn.tensors.rewards import throughput
from streamplace.learn.training_loop import built
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph

FIVE = Cluster.uniform(5)
GIVEN = [Problem(next(branched(Branched(), 0)).at_rate(rate), FIVE) for rate in (1e4, 2e4)]
N = 32
FAMILIES = {"branched": len(NUMBERS), "random-dag": len(DAGS), "both": 2 * len(DAGS)}


def fresh(family: str, count: int) -> FreshGraphs:
    return FreshGraphs(GIVEN, SCALE, 5, count, torch.device("cpu"), family)


def keys_of(rows: torch.Tensor, seed: int = 5) -> torch.Tensor:
    return child(torch.tensor(seed), torch.arange(len(rows)))


def drawn(family: str, count: int, seed: int = 5) -> Drawn:
    rows = torch.arange(count)
    return fresh(family, count).drawn(rows, N, keys_of(rows, seed))


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


def test_branched_graphs_are_those_of_the_family() -> None:
    """As many operators, streams and devices as their topology has; payloads of its range."""
    given_graphs = {g.name.rsplit("-", 1)[0]: g for g in branched(Branched(copies=1), 0)}
    graphs = drawn("branched", len(NUMBERS))
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


def layers_of(streams: NDArray[Any]) -> list[int]:
    """Longest path [N] to every operator; they are in topological order."""
    layer = [0] * len(streams)
    for v, row in enumerate(streams):
        layer[v] = max((layer[u] + 1 for u in np.flatnonzero(row)), default=0)
    return layer


def test_random_dags_obey_the_rules_of_the_family() -> None:
    """Every layer feeds the next, and streams span at most two; CPU and traffic are as asked."""
    graphs = drawn("random-dag", len(DAGS))
    for row, dag in enumerate(DAGS):
        n = int(graphs.present[row].sum())
        streams = graphs.streams[row].numpy()
        assert streams.sum() == streams[:n, :n].sum() == dag.n_streams
        assert n == dag.operators
        layer = np.array(layers_of(streams[:n, :n]))
        assert np.bincount(layer).tolist() == dag.make_layers().width.tolist()
        spans = [layer[v] - layer[u] for v, u in np.argwhere(streams)]
        assert set(spans) <= {1, 2}
        assert (streams.sum(0)[:n][layer < layer.max()] > 0).all()
        rate = float(graphs.load[row].sum()) / dag.devices
        assert rate == pytest.approx(1) or rate == pytest.approx(2)
        assert float(graphs.flows[row].sum()) == pytest.approx(rate * dag.network * 125e6)
        assert torch.allclose(graphs.flows[row].sum(0), graphs.out[row])


def facts_of(streams: NDArray[Any], load: NDArray[Any], flows: NDArray[Any]) -> list[float]:
    """What a graph's shape and sizes are like, whatever the numbers of its operators."""
    load, flows = load / load.sum(), flows / flows.sum()
    layer = np.array(layers_of(streams))
    spans = [layer[v] - layer[u] for v, u in np.argwhere(streams)]
    return [
        *np.sort(load)[[1, len(load) // 2, -1]],
        load[0],
        load[layer == layer.max()].sum(),
        *np.sort(flows[flows > 0])[[0, len(load) // 2, -1]],
        flows[:, 0].sum(),
        flows[layer == layer.max()].sum(),
        streams.sum(0).max(),
        streams.sum(1).max(),
        (streams.sum(0) == 1).sum(),
        (streams.sum(1) == 1).sum(),
        sum(span == 2 for span in spans),
        (streams @ streams).max(),
    ]


@pytest.mark.parametrize("n", [8, 16, 27])
def test_random_dags_have_the_distribution_of_the_family(n: int) -> None:
    """Two samples of 400 graphs differ no more than chance explains."""
    number = next(i for i, dag in enumerate(DAGS) if dag.operators == n)
    rows = torch.full((400,), number)
    graphs = fresh("random-dag", len(DAGS)).drawn(rows, N, keys_of(rows))
    made = [
        facts_of(*(part[row, :n].numpy()[..., :n] for part in parts))
        for row in range(len(rows))
        for parts in [(graphs.streams, graphs.load, graphs.flows)]
    ]
    given = []
    for graph in random_dag(RandomDag(operators=n, devices=2, count=len(rows)), 3):
        instance = Problem(graph, FIVE).instance
        streams, flows = np.zeros((2, n, n))
        streams[instance.target, instance.source] = 1
        flows[instance.target, instance.source] = instance.traffic
        given.append(facts_of(streams, instance.full_load[:, 0], flows))
    ours, theirs = np.sort(np.array(made).T), np.sort(np.array(given).T)
    for fact, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        values = np.concatenate([one, other]) + 1e-12
        below = [np.searchsorted(each, values, side="right") / len(rows) for each in (one, other)]
        # Kolmogorov and Smirnov: one pair of samples in a thousand differs more
        assert np.abs(below[0] - below[1]).max() < 1.95 * (2 / len(rows)) ** 0.5, fact


def test_families_take_turns() -> None:
    """Each has the shapes that it has alone."""
    sizes = fresh("both", 2 * len(DAGS)).outlines.operators
    for turn, family in enumerate(("branched", "random-dag")):
        assert torch.equal(sizes[turn::2], fresh(family, len(DAGS)).outlines.operators)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_graphs_do_not_depend_on_their_batch(family: str) -> None:
    """Nor on the padding; some of the other family would not fit into a batch of two."""
    count = FAMILIES[family]
    graphs, rows = fresh(family, count), torch.arange(count)
    together = graphs.drawn(rows, N, keys_of(rows))
    sizes = graphs.outlines.operators
    for size in sizes.unique().tolist():
        chosen = (sizes == size).nonzero()[:, 0]
        alone = graphs.drawn(chosen, size, keys_of(rows)[chosen])
        assert torch.equal(alone.streams, together.streams[chosen, :size, :size])
        assert torch.allclose(alone.load, together.load[chosen, :size], rtol=1e-12)
        assert torch.allclose(alone.flows, together.flows[chosen, :size, :size], rtol=1e-12)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_batches_are_those_of_the_same_graphs_as_problems(family: str) -> None:
    """Whatever a policy sees, and what placements are worth."""
    count = FAMILIES[family]
    graphs, rows = fresh(family, count), torch.arange(count)
    keys = keys_of(rows)
    made = graphs.drawn(rows, N, keys)
    problems = [problem_of(made, row) for row in range(count)]
    for problem in problems:
        assert (decision_order(problem, "bfs") == np.arange(problem.n_operators)).all()
    batch, costs = graphs.batch(rows, N, keys)
    n = max(problem.n_operators for problem in problems)
    order = torch.arange(n).expand(count, -1)
    expected = Graphs.of(problems, SCALE, 5, canonical=True).batch(rows, order)
    for name in ("present", "streams", "upstream", "inbound", "allowed", "lower", "load"):
        found = getattr(batch, name)
        found = found[:, :n] if found.shape[1] > 5 else found
        found = found[:, :, :n] if found.ndim == 3 and found.shape[2] > 5 else found
        assert torch.allclose(found.double(), getattr(expected, name).double(), rtol=1e-5), name
    there = batch.present[:, :n]
    assert torch.allclose(batch.features[:, :n][there], expected.features[there], atol=1e-4)
    placements = random_placements(keys, 6, N, graphs.outlines)
    found = throughput(costs, placements)
    for row, problem in enumerate(problems):
        own = placements[row, :, : problem.n_operators].numpy().astype(np.int32)
        assert found[row].tolist() == pytest.approx(simulated(problem.instance, own), rel=1e-6)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_batch_is_made_on_its_device(family: str) -> None:
    """Nothing is copied from the host, nor is any value needed there."""
    graphs = FreshGraphs(GIVEN, SCALE, 5, 64, torch.device("meta"), family)
    rows = torch.arange(64, device="meta")
    batch, costs = graphs.batch(rows, N, child(torch.tensor(5, device="meta"), rows))
    assert batch.features.is_meta
    assert costs.bytes.is_meta


def test_unequal_devices_are_refused() -> None:
    cluster = Cluster.of([Device("a"), Device("b", mips=1000)])
    with pytest.raises(SettingError, match="fresh graphs are made for one cluster"):
        FreshGraphs([Problem(GIVEN[0].graph, cluster)], SCALE, 5, 9, torch.device("cpu"))


@pytest.mark.parametrize("family", ["branched", "both"])
def test_a_training_on_fresh_graphs_goes_on_to_the_same_bits(tmp_path: Path, family: str) -> None:
    """It was stopped in its second epoch; the graphs given are the validation's."""
    file = tmp_path / "small.toml"
    model = f"width = 8\nfresh = 64\nfresh_family = '{family}'\n"
    file.write_text(f"[training]\nbatch = 32\n[model]\n{model}")
    graphs = list(islice(branched(Branched(copies=1), 0), 0, 40, 8))

    def train(name: str, **options: Any) -> Path:
        folder = tmp_path / name
        options = {"rates": (1e4, 2e4), "preset": "gpu", "config": file, "epochs": 2, **options}
        return streamplace.train("dream", graphs, folder, **options).folder

    whole = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("stopped", watcher=InterruptsEpoch(2))
    resumed = train("stopped", resume=True)
    assert_same(resumed, whole, "best.safetensors", "last.safetensors")


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"objective": "makespan"}, "fresh graphs are judged by their throughput"),
        ({"changes": {"order": "topological"}}, "fresh graphs need order = 'bfs'"),
    ],
)
def test_what_is_not_made_is_refused(options: dict[str, Any], refusal: str) -> None:
    preset = MODELS["dream"].presets["gpu"]
    changed = preset.model.model_copy(update=options.pop("changes", {}))
    task = LearningTask(tuple(GIVEN), (), 0, **options)
    with pytest.raises(SettingError, match=refusal):
        built(MODELS["dream"], task, Preset(changed, preset.training))
