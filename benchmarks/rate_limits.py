"""What limits a job, from the rates of saturated runs alone, where no CPU was measured.

A run sustains the rate of its slowest part. Part j (the source, an operator, or the TaskManagers)
carries x_rj · c_j tuples/s of the source in run r, where x_rj is by how much its busiest subtask
divides the tuples (all of Flink's key groups count), and c_j what one subtask carries. Three
things are added to the model of the package, since recorded runs show them:

- a part loses a share of its capacity with each doubling of its subtasks: x^(1 - λ);
- what keeps state, and the disks of TaskManagers, carry more with more memory: ln c_j is a line
  between each two powers of two of the memory;
- close limits add up: 1/rate^8 = Σ 1/(x_rj c_j)^8.

Which part was the limit of a run is unknown, so there are many explanations, and rates of other
layouts depend on which is right. All are kept: the unknowns are samples of their distribution given
the runs (Metropolis, coordinate by coordinate). Runs err by a share with heavy tails; some break
and are far too slow. A run that carried what was offered says that the limits are not below it.
"""

import math
from typing import NamedTuple

import numpy as np

from streamplace.flink.measure.cost_fit import PER_TUPLE, Prior
from streamplace.model.arrays import Bools, Floats

CHAINS, SWEEPS, THINNING = 48, 300, 5
CLOSE = 8.0
"""Exponent of limits that add up."""
SOURCE_SHARE = Prior(1e-8, 3.0, 2.0)
"""Core seconds of a later operator per tuple of the source, of which it may get few or many."""
SCALE, PROBED, ERROR = Prior(0.03, 0.03), Prior(0.1, 0.1), Prior(math.log(0.08), 0.5)
"""Normal priors, by their means: λ; by how much an overloaded job exceeds, as a logarithm, what a
probe of half a minute calls sustained; logarithm of the error of a run."""
DOUBLING = 0.4
"""Usual gain of capacity, as a logarithm, with each doubling of memory; the tail is heavy."""
BROKEN, FREEDOM = 0.07, 3.0
"""Share of runs that break, and degrees of freedom of the error of the others."""


class Runs(NamedTuple):
    """Runs of one query; R runs, J parts."""

    parts: Floats  # ln x, [R, J]
    doublings: Floats  # of memory, since the least that is known, [R]
    measured: Floats  # ln of tuples/s, [R]
    overloaded: Bools  # more was offered than could be carried, instead of a probe, [R]
    carried: Bools  # all that was offered, so that the limit is not known, [R]


class Samples(NamedTuple):
    """Samples of the unknowns; S samples."""

    capacity: Floats  # ln c at the least memory, [S, J]
    memory: Floats  # what more memory adds to it at each power of two, [S, J, K]
    shared: Floats  # λ, excess of overloaded jobs, ln of the error, [S, 3]

    def slowness(self, runs: Runs, of: slice = slice(None)) -> Floats:
        """Limits of some parts, (x c)^-8, [S, R, J]."""
        knots = np.arange(self.memory.shape[2])
        doublings = np.clip(runs.doublings, 0, knots[-1])
        weights = np.maximum(1 - np.abs(doublings[:, None] - knots), 0)
        limits = self.capacity[:, None, of] + runs.parts[:, of] * (1 - self.shared[:, None, :1])
        added = np.einsum("sjk,rk->srj", self.memory[:, of], weights)
        return np.asarray(np.exp(-CLOSE * (limits + added)), np.float64)

    def rates(self, runs: Runs, slowness: Floats | None = None) -> Floats:
        """Logarithm of the tuples/s that runs sustain, without the error of a run, [S, R]."""
        slowness = self.slowness(runs) if slowness is None else slowness
        excess = self.shared[:, 1:2] * runs.overloaded
        return np.asarray(excess - np.log(slowness.sum(2)) / CLOSE, np.float64)

    def score(self, runs: Runs, stateful: Bools, slowness: Floats) -> Floats:
        """Logarithm of the probability of these unknowns given the runs, up to a constant, [S]."""
        error = np.exp(self.shared[:, 2:])
        z = (runs.measured - self.rates(runs, slowness)) / error
        works = (1 + z**2 / FREEDOM) ** (-(FREEDOM + 1) / 2) / error
        density = (1 - BROKEN) * 0.37 * works + BROKEN * (z < 0) / 5 + 1e-12
        likely = np.where(runs.carried, -np.logaddexp(0, 2 * z), np.log(density)).sum(1)
        for i, prior in enumerate((SCALE, PROBED, ERROR)):
            likely -= 0.5 * ((self.shared[:, i] - prior.median) / prior.spread) ** 2
        for j, prior in enumerate((PER_TUPLE, PER_TUPLE, *[SOURCE_SHARE] * len(stateful[2:]))):
            off = (self.capacity[:, j] + math.log(prior.median)) / prior.spread
            likely -= (prior.freedom + 1) / 2 * np.log1p(off**2 / prior.freedom)
        gains = np.diff(self.memory[:, stateful], axis=2)
        heavy = -2 * np.log1p((gains / DOUBLING) ** 2 / FREEDOM)
        return np.asarray(likely + np.where(gains < 0, -np.inf, heavy).sum((1, 2)), np.float64)


def sampled(runs: Runs, stateful: Bools, seed: int) -> Samples:
    """Sample what the parts of a query carry; ``stateful`` parts depend on memory, [J]."""
    rng = np.random.default_rng(seed)
    now = _start(runs, stateful, rng)
    slowness = now.slowness(runs)
    score = now.score(runs, stateful, slowness)
    kept: list[Samples] = []

    def propose(change: Samples, of: slice = slice(None)) -> None:
        nonlocal now, slowness, score
        changed = slowness.copy()
        changed[:, :, of] = change.slowness(runs, of)
        new = change.score(runs, stateful, changed)
        taken = np.log(rng.random(CHAINS)) < new - score
        score, slowness = np.where(taken, new, score), _chosen(taken, changed, slowness)
        pairs = zip(change, now, strict=True)
        now = Samples(*(_chosen(taken, after, before) for after, before in pairs))

    for sweep in range(SWEEPS):
        step = (0.05, 0.3, 1.0)[sweep % 3]
        for j in range(len(stateful)):
            part = slice(j, j + 1)
            propose(now._replace(capacity=_moved(now.capacity, np.s_[:, part], step, rng)), part)
            for k in range(1, now.memory.shape[2] if stateful[j] else 1):
                gained = _moved(now.memory, np.s_[:, part, k:], step, rng)
                propose(now._replace(memory=gained), part)
        for i, width in enumerate((0.01, 0.04, 0.2)):
            propose(now._replace(shared=_moved(now.shared, np.s_[:, i : i + 1], width, rng)))
        i, j = rng.choice(len(stateful), 2, replace=False)
        order = np.arange(len(stateful))
        order[[i, j]] = j, i
        propose(now._replace(capacity=now.capacity[:, order]))
        if sweep >= SWEEPS // 2 and sweep % THINNING == 0:
            kept.append(now)
    return Samples(*(np.concatenate(values) for values in zip(*kept, strict=True)))


def _start(runs: Runs, stateful: Bools, rng: np.random.Generator) -> Samples:
    """Start each chain at other capacities, few of which are below what was measured."""
    shape = CHAINS, len(stateful)
    usual = np.median((runs.measured[:, None] - runs.parts)[~runs.carried], axis=0)
    capacity = np.maximum(-math.log(PER_TUPLE.median) + rng.standard_normal(shape), usual)
    knots = 1 + math.ceil(max(float(runs.doublings.max()), 1.0))
    shared = np.tile([SCALE.median, PROBED.median, ERROR.median], (CHAINS, 1))
    return Samples(capacity + 0.3 * rng.random(shape), np.zeros((*shape, knots)), shared)


def _chosen(taken: Bools, after: Floats, before: Floats) -> Floats:
    """Values after or before, for each chain."""
    return np.where(taken.reshape(-1, *[1] * (after.ndim - 1)), after, before)


def _moved(
    values: Floats, where: tuple[slice, ...], step: float, rng: np.random.Generator
) -> Floats:
    """Move one unknown of every chain by a normal step."""
    changed = values.copy()
    changed[where] += step * rng.standard_normal((CHAINS, *[1] * (values.ndim - 1)))
    return changed
