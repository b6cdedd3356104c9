"""The fit of costs: the CPU of threads as a fixed part and a part per tuple.

The threads of a subtask wake up, flush, fire timers and fetch at any rate, and their work per batch
grows less than the number of tuples. A thread that always has tuples hardly sleeps, and all of its
CPU is for tuples. So the CPU of one subtask is

    cores = fixed + per_tuple · tuples/s

with the same two unknowns for all subtasks of a task.

An observation is the rate and the CPU of a subtask in a window. Subtasks with unequal shares of the
input are different rates in a single window. Observations of nearly the same rate are averaged
first: their differences are noise in rate and CPU, which would make tuples seem cheap.

Unknowns are positive and fitted by their logarithms x: the maximum a posteriori of

    Σ ((cores − X exp(x)) / σ)²  +  Σ (t + 1) ln(1 + ((x − x₀) / s)² / t),     σ = 0.05 cores + …

by Gauss–Newton steps from the prior, and from points where one unknown explains all CPU. The prior,
exp(x₀) with the scale s and t degrees of freedom, decides if only one rate was observed. The prior
of the fixed part follows the wake-ups of the threads if they are fewer than tuples: a thread that
wakes up for every tuple does so at its rate, and in a job that is held back, for every waiting
batch. The prior of the cost of a tuple has heavy tails, because few operators cost a hundred times
as much as others; a fixed part in place of such a cost would promise any rate. If there are several
maxima, the unknowns are their mean, weighted by the probability around each.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from streamplace.model.arrays import Floats

CPU_ERROR = 0.05
"""Error of the CPU of threads, relative to it, that does not average out; assumed."""
MIN_CPU_ERROR = 5e-4
"""Minimum error in cores: the kernel counts the CPU of threads that hardly run in ticks."""
SAME_RATE = 1.3
"""Maximum ratio of rates that are averaged."""
MAX_STEPS = 100
CONVERGED = 1e-9
"""Relative decrease of the loss by a step at which the fit ends."""


class Prior(NamedTuple):
    """Prior of a cost: a distribution of its logarithm."""

    median: float
    spread: float
    freedom: float = math.inf  # degrees of freedom; few for heavy tails

    def penalty(self, x: float) -> float:
        """Twice the negative logarithm of the density, up to a constant."""
        square = ((x - math.log(self.median)) / self.spread) ** 2
        if math.isinf(self.freedom):
            return square
        return (self.freedom + 1) * math.log1p(square / self.freedom)

    def weight(self, x: float) -> float:
        """Inverse variance of the normal distribution with the same slope at x."""
        if math.isinf(self.freedom):
            return 1 / self.spread**2
        deviation = x - math.log(self.median)
        return (self.freedom + 1) / (self.freedom * self.spread**2 + deviation**2)


FIXED = Prior(3.4e-3, 1.0)
"""Fixed cores of a subtask, from 30 operators at two rates (docs/assets/calibration.jsonl)."""
PER_TUPLE = Prior(1e-6, 1.7, 2.0)
"""Core seconds per tuple, from the same operators; some of them ask a model for every tuple."""
PER_WAKE, MAX_PER_WAKE = Prior(60e-6, 0.7), 100e-6
"""Fixed core seconds per wake-up of threads that take several tuples each time, and their maximum.

The median has the least bias from one rate to others, for the jobs of the prior
(benchmarks/costs_by_rate.py). Straight lines through all rates begin at 14 to 81 µs.
"""
MAX_IDLE_WAKES = 10.0
"""Maximum wake-ups per second that tell nothing: a busy thread has timers, too."""


class Observation(NamedTuple):
    """Rate and CPU of a thread, or of the threads of a subtask, in a window."""

    tuples: float  # per second
    cores: float
    wakes: float = math.nan  # per second; NaN if unknown
    held_back: float = 0.0  # 1 if sources could send more than they did

    @property
    def wakes_without_tuples(self) -> float:
        """Wake-ups per second for something other than a single tuple."""
        batched = 1 - self.wakes / max(self.tuples, self.wakes, 1.0)
        return self.wakes * batched * (1 - self.held_back)


Observed = Mapping[str, Sequence[Observation]]
"""Operator → rates and CPU of its subtasks, in all measured windows and layouts."""


class TaskCost(NamedTuple):
    """Costs of the subtasks of a task."""

    fixed: float  # cores of a subtask
    per_tuple: float  # core seconds


def task_cost(
    observed: Iterable[Observation], fixed: Prior = FIXED, per_tuple: Prior = PER_TUPLE
) -> TaskCost:
    """Fit the cost of the subtasks of a task.

    >>> two_rates = task_cost([Observation(500.0, 0.009), Observation(4000.0, 0.030)])
    >>> round(two_rates.fixed, 4), round(1e6 * two_rates.per_tuple, 1)
    (0.0059, 6.0)
    """
    rows = averaged(observed)
    max_fixed = math.inf
    if rows and not any(math.isnan(row.wakes) for row in rows):
        max_fixed = MAX_PER_WAKE * max(1.0, *(row.wakes for row in rows))
        wakes = max(row.wakes_without_tuples for row in rows)
        if wakes > MAX_IDLE_WAKES:
            fixed = PER_WAKE._replace(median=PER_WAKE.median * wakes)
        fixed = fixed._replace(median=min(fixed.median, max_fixed))
    factors = np.array([(1.0, row.tuples) for row in rows], np.float64).reshape(-1, 2)
    cores = np.array([row.cores for row in rows], np.float64)
    cost = TaskCost(*_fitted(factors, cores, (fixed, per_tuple)).tolist())
    if cost.fixed <= max_fixed:
        return cost
    rest = np.maximum(cores - max_fixed, 0.0)
    return TaskCost(max_fixed, *_fitted(factors[:, 1:], rest, (per_tuple,)).tolist())


def constant_cores(
    cores: float, tuples: float, subtasks: Sequence[Observation], parallelism: int
) -> float:
    """Cores of a task that do not depend on the rate, at most ``cores``.

    They are all cores of a task that reads nothing, and none of a task whose subtasks were not
    observed.

    ``subtasks``: rates and CPU of its subtasks, in any number of windows.

    >>> constant_cores(0.2, 0.0, [], 1), constant_cores(0.2, 9.0, [], 1)
    (0.2, 0.0)
    """
    if tuples <= 0:
        return cores
    if not subtasks:
        return 0.0
    cost = task_cost(subtasks)
    fixed = parallelism * cost.fixed
    return cores * fixed / (fixed + cost.per_tuple * tuples)


def averaged(observed: Iterable[Observation]) -> list[Observation]:
    """Means of observations of nearly the same rate, by rate."""
    groups: list[list[Observation]] = []
    for row in sorted(observed):
        if groups and row.tuples <= SAME_RATE * groups[-1][0].tuples:
            groups[-1].append(row)
        else:
            groups.append([row])
    means = (np.array(group, np.float64).mean(axis=0).tolist() for group in groups)
    return [Observation(*mean) for mean in means]


def _fitted(factors: Floats, cores: Floats, priors: Sequence[Prior]) -> Floats:
    """Positive unknowns, [K], from the maxima of their probability.

    ``factors``: [N, K]. ``cores``: [N].
    """
    sigma = CPU_ERROR * cores + MIN_CPU_ERROR
    scaled, target = factors / sigma[:, None], cores / sigma
    center = np.log([prior.median for prior in priors])
    alone = np.log(np.maximum(cores[:, None] / np.maximum(factors, 1e-300), 1e-300))
    starts = [center]
    for k in range(len(priors) if len(cores) else 0):
        starts.append(center.copy())
        starts[-1][k] = max(float(alone[:, k].min()), center[k] - 20)
    modes: list[Floats] = []
    weights: list[float] = []  # logarithm of the probability around each, up to a constant
    minima = (_minimum(start, scaled, target, priors) for start in starts)
    for loss, x in sorted(minima, key=lambda pair: pair[0]):
        if any(np.allclose(np.exp(x), mode, rtol=0.1) for mode in modes):
            continue
        jacobian = scaled * np.exp(x)
        covariance = np.linalg.inv(jacobian.T @ jacobian + _weights(x, priors))
        modes.append(np.exp(x))
        weights.append((float(np.linalg.slogdet(covariance)[1]) - loss) / 2)
    parts = np.exp(np.array(weights) - max(weights))
    return np.asarray(parts / parts.sum() @ np.array(modes), np.float64)


def _weights(x: Floats, priors: Sequence[Prior]) -> Floats:
    return np.diag([prior.weight(at) for prior, at in zip(priors, x.tolist(), strict=True)])


def _minimum(
    x: Floats, scaled: Floats, target: Floats, priors: Sequence[Prior]
) -> tuple[float, Floats]:
    """Minimum of the loss from a start, and its place."""
    center = np.log([prior.median for prior in priors])

    def loss(x: Floats) -> float:
        residual = target - scaled @ np.exp(x)
        pairs = zip(priors, x.tolist(), strict=True)
        return float(residual @ residual) + sum(prior.penalty(at) for prior, at in pairs)

    damping, best = 1e-3, loss(x)
    for _ in range(MAX_STEPS):
        jacobian, weight = scaled * np.exp(x), _weights(x, priors)
        hessian = jacobian.T @ jacobian + weight
        slope = jacobian.T @ (target - scaled @ np.exp(x)) - weight @ (x - center)
        step = np.linalg.solve(hessian + damping * np.diag(np.diag(hessian)), slope)
        value = loss(x + step)
        if value < best:
            x, damping = x + step, max(damping / 3, 1e-9)
            if best - value <= CONVERGED * best:
                return value, x
            best = value
        elif damping > 1e9:
            break
        else:
            damping *= 4
    return best, x
