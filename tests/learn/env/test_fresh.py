"""Problems that are made anew as tensors."""

import numpy as np
import pytest
import torch
from problems import PROBLEMS, heterogeneous, random_tasks

from streamplace.families.branched import STANDARD, Branched, Topology, branched, is_small
from streamplace.learn.constructive.memory import random_placements
from streamplace.learn.env import throughput
from streamplace.learn.env.fresh import FreshProblems
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.coarsening import finest_level
from streamplace.model.least_peak import peak_yardstick
from streamplace.objectives.registry import OBJECTIVES

POOL = [*PROBLEMS.values(), Problem(random_tasks(12, 0, payload=1.0), heterogeneous())]
SHAPES = [shape for shape in STANDARD for _ in range(1 if is_small(shape) else 2)]


def batch_of(pool, count, share, seed, rows=None):
    """Problems of a seed."""
    fresh = FreshProblems(pool, count, share, torch.device("cpu"))
    rows = np.arange(count) if rows is None else rows
    return fresh.batch(rows, torch.Generator().manual_seed(seed))


def written(batch, g):
    """A problem of a batch, of one stream at most between two operators."""
    n, d = int(batch.present[g].sum()), int(batch.exists[g].sum())
    ends = batch.streams[g, :n, :n].nonzero().tolist()
    fed = {target for target, _ in ends}
    operators = [Operator(f"v{i}", rate=float(i not in fed)) for i in range(n)]
    rate = StreamGraph.of("", operators, [Stream(f"v{u}", f"v{v}") for v, u in ends]).flow
    streams = [
        Stream(f"v{u}", f"v{v}", payload=float(batch.bytes[g, v, u]) / rate.output_rate[u])
        for v, u in ends
    ]
    devices = [Device(f"d{i}") for i in range(d)]
    wire = batch.wire[g, :d, :d].numpy()
    cluster = Cluster.of(devices, bandwidth=8 / np.where(wire > 0, wire, 1))
    seconds = batch.load[g, :n, :d].numpy() / rate.input_rate[:, None]
    return Problem(StreamGraph.of("g", operators, streams), cluster, seconds=seconds)


@pytest.mark.parametrize("seed", range(3))
def test_written_as_problems_they_are_worth_the_same(seed):
    """By the simulator; with the same yardstick, and the same devices are interchangeable."""
    batch = batch_of(POOL, 40, 0.3, seed)
    placements = random_placements(batch, 4, torch.Generator().manual_seed(seed))
    found = throughput(batch, placements)
    for g, rows in enumerate(placements.int().numpy()):
        problem = written(batch, g)
        n, d = problem.n_operators, problem.n_devices
        values = OBJECTIVES["throughput"].values(problem, np.ascontiguousarray(rows[:, :n]))
        assert found[g].tolist() == pytest.approx(values.tolist(), rel=1e-9)
        yardstick = peak_yardstick(problem, finest_level(problem))
        assert batch.yardstick[g].item() == pytest.approx(yardstick, rel=1e-9)
        classes = np.array(problem.interchangeable)
        assert (batch.alike[g, :d, :d].numpy() == (classes[:, None] == classes)).all()
        assert 2 <= d <= 2 * max(n, 5)


@pytest.mark.parametrize("shape", [Topology(3, 4, 3), Topology(2, 3, 2)], ids=str)
def test_the_branched_share_follows_the_family(shape):
    """Stage by stage, in total, in payloads, and in how far stages differ."""
    k, depth, devices = shape
    count, stages = 4000, slice(1, k * depth + 1)
    rows = np.full(count, SHAPES.index(shape))
    batch = batch_of([], len(SHAPES), 1.0, 0, rows)
    load = batch.load[:, :, 0].numpy()
    rate = load[:, 0] * 2.5e9 / 1e4
    assert ((rate >= 8e3) & (rate <= 2.5e4)).all()
    assert np.log(rate).mean() == pytest.approx(np.log([8e3, 2.5e4]).mean(), abs=0.02)
    assert load.sum(1) == pytest.approx(devices * rate / 1e4)
    work = (k * load / rate[:, None] * 2.5e9)[:, stages].reshape(count, k, depth)
    assert work == pytest.approx(np.broadcast_to(work[:, :1], work.shape))
    payload = (batch.bytes.amax(1).numpy() * k / rate[:, None])[:, : k * depth + 1]
    assert payload == pytest.approx(payload.round())
    operators = [graph.operators for graph in branched(Branched(*shape, copies=count), 0)]
    ipt = np.array([each.ipt for each in operators])[:, stages].reshape(work.shape)
    of_family = np.array([each.payload for each in operators])[:, :-1]
    for found, wanted in ((work[:, 0], ipt[:, 0]), (payload, of_family)):
        for moment in (np.mean, np.std, np.max):
            each, expected = moment(found, axis=1), moment(wanted, axis=1)
            assert each.mean() == pytest.approx(expected.mean(), rel=0.05)


def test_a_seed_fixes_them():
    one, same, other = (batch_of(POOL, 40, 0.5, seed) for seed in (1, 1, 2))
    one.mapped(lambda name, column: torch.testing.assert_close(column, getattr(same, name)))
    assert not torch.equal(one.load.sum((1, 2)), other.load.sum((1, 2)))


def test_nothing_but_topologies_comes_from_the_pool():
    """Neither rules nor what devices and networks cost there; each topology counts once."""
    batch = batch_of(POOL, 40, 0.0, 0)
    assert batch.mates is batch.nics is batch.tuples is batch.constant is batch.core is None
    fresh = FreshProblems([POOL[0]] * 9, 1 + len(SHAPES), 0.0, torch.device("cpu"))
    assert fresh.sizes.tolist() == [POOL[0].n_operators, *(2 + k * d for k, d, _ in SHAPES)]
