"""Problems that are made anew in every step of a training, as tensors on its device.

A problem takes its topology from a pool, such as the graphs of a training set or the forty of the
family branched; everything else is drawn. Costs are either as in `streamplace.families.branched` on
five equal devices, but for the rounding of instructions to whole numbers, or *mixed*:

- every operator takes in one to two times the rate of a source, divided equally among its inputs;
- CPU and bytes of operators are uniform or lognormal, and add up to .3 to 3 times the capacity of
  all devices, and to .03 to 3 links per operator;
- there are 2 to 64 devices, at most two per operator; their speeds, and those of the links, are
  equal or within a factor of 2, 3 or 4 of the usual one.

Shapes: P problems of a pool, C of an epoch, G of a batch, N operators, D devices.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from streamsim import _core
from torch import Tensor

from streamplace.families.branched import STANDARD, Branched, Topology, is_small
from streamplace.families.registry import FAMILIES
from streamplace.learn.config import MAX_FRESH_DEVICES
from streamplace.learn.env.batch import Batch, ProblemTensors
from streamplace.model.arrays import Longs
from streamplace.model.cluster import Cluster
from streamplace.model.problem import Problem

FAMILY = Branched()
DEVICES = 5
"""Devices of problems of the family branched."""
RATES = (8e3, 2.5e4)
"""Tuples/s of the source of a problem of the family branched."""
CPU, LINKS = (0.3, 3.0), (0.03, 3.0)
SPREADS = (1.0, 1.0, 2.0, 3.0, 4.0)
"""Factors within which devices and links differ."""
SKEWS = (0.0, 0.5, 1.0, 1.5)
"""Deviations of the logarithms of costs; 0: they are uniform."""


class FreshProblems:
    """C problems of an epoch, drawn anew in every batch; a share has costs of branched."""

    def __init__(
        self, pool: Sequence[Problem], count: int, share: float, device: torch.device
    ) -> None:
        shapes = [shape for shape in STANDARD for _ in range(1 if is_small(shape) else 2)]
        standard = [_of_shape(shape) for shape in shapes]
        pool = distinct(pool)
        self._pool = ProblemTensors([*pool, *standard], device)
        stages = np.zeros((len(pool) + len(standard), int(self._pool.sizes.max())), np.int64)
        for row, problem in zip(stages[len(pool) :], standard, strict=True):
            ends = problem.instance.source, problem.instance.target
            row[: problem.n_operators] = _core.levels(problem.n_operators, *ends)
        self._stage = torch.from_numpy(stages).to(device)
        shape_of = np.concatenate([np.ones((len(pool), 3)), np.array(shapes)])
        self._shape = torch.from_numpy(shape_of).to(device)  # [P, 3] branches, depth, devices
        n_branched = round(share * count)
        self._row = np.concatenate(
            [
                len(pool) + np.resize(np.arange(len(standard)), n_branched),
                np.resize(np.arange(len(pool) + len(standard)), count - n_branched),
            ]
        )
        self._is_branched = np.arange(count) < n_branched
        self.sizes: Longs = self._pool.sizes[self._row]

    def batch(self, rows: Longs, generator: torch.Generator) -> Batch:
        """Draw problems of the topologies of these rows [G]."""
        device = generator.device
        numbers = torch.from_numpy(self._row[rows]).to(device)
        graphs = self._pool.batch(numbers, generator)
        (n,) = graphs.present.shape[1:]
        draw = _Draws(len(rows), generator)
        # drawn from the seed in Python, since shapes are no tensors
        log_devices = math.log(2), math.log(min(MAX_FRESH_DEVICES, 2 * n))
        rng = np.random.default_rng(generator.initial_seed())
        max_devices = max(DEVICES, round(math.exp(rng.uniform(*log_devices))))
        mixed = _mixed(graphs, draw, max_devices)
        if not self._is_branched[rows].any():
            return mixed
        shape = self._shape[numbers]
        branched = _branched(graphs, self._stage[numbers, :n], shape, draw, max_devices)
        which = torch.from_numpy(self._is_branched[rows]).to(device)

        def chosen(name: str, column: Tensor) -> Tensor:
            return torch.where(
                which.view(-1, *(1,) * (column.dim() - 1)), getattr(branched, name), column
            )

        return mixed.mapped(chosen)


class _Draws:
    """Numbers for each of G graphs."""

    def __init__(self, graphs: int, generator: torch.Generator) -> None:
        self._graphs, self._generator = graphs, generator
        self._kind: Any = {"device": generator.device, "dtype": torch.float64}

    def uniform(self, *shape: int) -> Tensor:
        """Numbers [G, *shape] in [0, 1)."""
        return torch.rand(self._graphs, *shape, generator=self._generator, **self._kind)

    def normal(self, *shape: int) -> Tensor:
        """Normal numbers [G, *shape]."""
        return torch.randn(self._graphs, *shape, generator=self._generator, **self._kind)

    def between(self, least: float, most: float) -> Tensor:
        """Numbers [G] whose logarithm is uniform."""
        return (math.log(least) + self.uniform() * math.log(most / least)).exp()

    def one_of(self, values: Sequence[float]) -> Tensor:
        """One [G] of some values."""
        table = torch.tensor(values, **self._kind)
        return table[(self.uniform() * len(values)).long()]


def _mixed(graphs: Batch, draw: _Draws, max_devices: int) -> Batch:
    """Mixed costs and clusters, in capacities of a device and of a link of usual speed."""
    present, n = graphs.present, graphs.present.shape[1]
    operators = present.sum(1)
    devices = (max_devices * (0.5 + 0.5 * draw.uniform())).round().long().clamp(min=2)
    devices = torch.minimum(devices, 2 * operators).clamp(max=max_devices)
    exists = torch.arange(max_devices, device=present.device) < devices[:, None]
    level = (1 + draw.uniform(n)) * present
    inputs = graphs.streams.sum(2, keepdim=True).clamp(min=1)
    tuples = level[:, :, None] * graphs.streams / inputs
    skew = draw.one_of(SKEWS)[:, None]

    def costs() -> Tensor:
        skewed = (skew * draw.normal(n)).exp()
        return torch.where(skew == 0, 1 - draw.uniform(n), skewed) * present

    cpu, sent = level * costs(), tuples * costs()[:, None]
    cpu = cpu * (devices * draw.between(*CPU) / cpu.sum(1))[:, None]
    links = operators * draw.between(*LINKS) / sent.sum((1, 2)).clamp(min=1e-9)
    spread = draw.one_of(SPREADS).log()[:, None]
    speed = (spread * (2 * draw.uniform(max_devices) - 1)).exp()
    width = (spread[..., None] * (2 * draw.uniform(max_devices, max_devices) - 1)).exp()
    load = torch.where(exists[:, None], cpu[:, :, None] / speed[:, None], 0)
    equal = (spread == 0)[..., None]
    return _batch(graphs, load, sent * links[:, None, None], exists, width, equal)


def _branched(graphs: Batch, stage: Tensor, shape: Tensor, draw: _Draws, max_devices: int) -> Batch:
    """Costs of the family branched; operators are in these stages [G, N], 0 is the source."""
    present, n = graphs.present, graphs.present.shape[1]
    k, d, used = shape.unbind(1)
    device = torch.arange(max_devices, device=present.device)
    exists = (device < DEVICES).expand(len(k), -1)
    rate, small = draw.between(*RATES)[:, None], (used <= 2)[:, None]
    spread = torch.where(small, 1 - draw.uniform(1), 1)
    ceiling = torch.where(small, 1 + (draw.uniform(1) * FAMILY.payload).floor(), FAMILY.payload)
    # the stages share the instructions of their graph, none more than its branches can do
    there = torch.arange(n, device=present.device) < d[:, None]
    parts = (1 - draw.uniform(n)) * there
    excess = (parts / parts.sum(1, keepdim=True) - 1 / d[:, None]) * there
    total = (used * FAMILY.device_ipt - 2 * FAMILY.endpoint_ipt)[:, None]
    room = k[:, None] * FAMILY.device_ipt / total - 1 / d[:, None]
    most_excess = excess.amax(1, keepdim=True).clamp(min=1e-12)
    factor = spread * (room.clamp(min=0) / most_excess).clamp(max=1)
    shared = (1 / d[:, None] + factor * excess) * total  # [G, stages] of all branches together
    inner = present & (stage > 0) & (stage <= d[:, None])
    of_stage = shared.gather(1, (stage - 1).clamp(min=0))
    flow = torch.where(inner, rate / k[:, None], rate)
    instructions = torch.where(inner, of_stage, FAMILY.endpoint_ipt)
    cpu = torch.where(present, flow * instructions / (FAMILY.mips * 1e6), 0)
    payload = 1 + (draw.uniform(n) * ceiling).floor()
    sent = graphs.streams * (rate / k[:, None] * payload)[:, None]
    load = torch.where(exists[:, None], cpu[:, :, None], 0)
    return _batch(graphs, load, sent, exists, WIRE, exists.new_ones(1, 1, 1))


WIRE = float(Cluster.uniform(2).platform.seconds_per_byte[0, 1])


def _batch(
    graphs: Batch, load: Tensor, flows: Tensor, exists: Tensor, width: Tensor | float, equal: Tensor
) -> Batch:
    """Graphs with these costs, on devices whose links take ``width`` seconds per byte."""
    first = torch.arange(exists.shape[1], device=exists.device) == 0
    same = torch.eye(len(first), dtype=torch.bool, device=exists.device)
    pairs = exists[:, :, None] & exists[:, None]
    return Batch(
        present=graphs.present,
        order=graphs.order,
        load=load,
        bytes=flows,
        streams=graphs.streams,
        wire=torch.where(pairs & ~same, width, 0.0),
        exists=exists,
        allowed=torch.where(graphs.present[..., None], exists[:, None], first),
        alike=same | (pairs & equal),
        yardstick=least_peak(load, exists).clamp(min=1),
    )


def least_peak(load: Tensor, exists: Tensor) -> Tensor:
    """Lower bound [G] on the peak; see `streamplace.model.least_peak`."""
    apart = ~exists[:, None]
    heaviest = load.masked_fill(apart, torch.inf).amin(2).amax(1)
    weight = torch.where(exists, 1 / load.sum(1), 0)
    shares = load * (weight / weight.sum(1, keepdim=True))[:, None]
    return torch.maximum(heaviest, shares.masked_fill(apart, torch.inf).amin(2).sum(1))


def _of_shape(shape: Topology) -> Problem:
    """Any graph of a topology of the family branched."""
    (graph,) = FAMILIES["branched"].generate(Branched(*shape, copies=1), 0)
    return graph if isinstance(graph, Problem) else Problem(graph, Cluster.uniform(DEVICES))


def distinct(problems: Sequence[Problem]) -> list[Problem]:
    """The first problem of every topology."""
    topologies: dict[tuple[int, bytes, bytes], Problem] = {}
    for problem in problems:
        ends = problem.instance.source.tobytes(), problem.instance.target.tobytes()
        topologies.setdefault((problem.n_operators, *ends), problem)
    return list(topologies.values())
