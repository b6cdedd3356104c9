"""The fit of costs: the CPU of threads as a part that is there at any rate, and one per tuple.

The threads of a subtask wake up, flush, fire timers and fetch whether many tuples come or few, and
what they do per batch grows less than the number of tuples. So the CPU of one subtask is

    cores = fixed + per_tuple · tuples/s

with the same two unknowns for all subtasks of a task.

Observations: each subtask in each window, in which it read or generated so many tuples. Subtasks on
unlike shares of the input are different rates in a single window. Observations of nearly one rate
are averaged first, because what differs between them is noise, of the rate as of the CPU, and would
make a tuple seem cheap.

Unknowns are positive and fitted by their logarithms x: the maximum a posteriori of

    Σ ((cores − X exp(x)) / σ)²  +  Σ ((x − x₀) / s)²,      σ = NOISE · cores + LEAST_NOISE,

by Gauss–Newton steps. The prior, exp(x₀) with the spread s, decides where only one rate was seen;
several rates decide by themselves. The inverse of the Hessian is the covariance of the logarithms,
from which the spread of what is predicted for another rate follows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamplace.model.arrays import Floats

NOISE = 0.05
"""Error of the CPU of threads, relative to it, that does not average out; assumed."""
LEAST_NOISE = 5e-4
"""Least error in cores: the kernel counts the CPU of threads that hardly run in ticks."""
ALIKE = 1.3
"""Largest ratio of rates that are averaged."""
MOST_STEPS = 100
CONVERGED = 1e-9


class Prior(NamedTuple):
    """What is known of a cost without measurement: its median, and the spread of its logarithm."""

    median: float
    spread: float


FIXED = Prior(8e-3, 0.7)
"""Cores of a subtask at any rate: some hundred wake-ups per second of 20 µs each."""
PER_TUPLE = Prior(1e-5, 3.0)
"""Core seconds per tuple: anything from a counter to a model that is asked for each tuple.

A narrower prior takes the CPU of an expensive operator for a part at any rate.
"""


class Observation(NamedTuple):
    """A thread, or the threads of a subtask, in a window."""

    tuples: float  # per second
    cores: float


Observed = Mapping[str, Sequence[Observation]]
"""Operator → rates and CPU of its subtasks, in all windows and layouts that were measured."""


@dataclass(frozen=True, slots=True, eq=False)
class PositiveFit:
    """Positive unknowns and the covariance of their logarithms."""

    values: Floats  # [K]
    covariance: Floats  # [K, K]

    def spread(self, factors: Sequence[float]) -> float:
        """Standard deviation of the logarithm of a prediction."""
        parts = self.values * np.array(factors, np.float64)
        share = parts / (parts.sum() or 1.0)
        return float(np.sqrt(share @ self.covariance @ share))


@dataclass(frozen=True, slots=True)
class TaskCost:
    """What the subtasks of a task cost."""

    fixed: float  # cores of a subtask at any rate
    per_tuple: float  # core seconds per tuple
    fit: PositiveFit

    def cores(self, tuples: float) -> float:
        """Cores of a subtask at a rate."""
        return self.fixed + self.per_tuple * tuples

    def spread(self, tuples: float) -> float:
        """Standard deviation of the logarithm of `cores`."""
        return self.fit.spread((1.0, tuples))


def task_cost(
    observed: Iterable[Observation], fixed: Prior = FIXED, per_tuple: Prior = PER_TUPLE
) -> TaskCost:
    """Fit the cost of the subtasks of a task.

    >>> two_rates = task_cost([Observation(500.0, 0.009), Observation(4000.0, 0.030)])
    >>> round(two_rates.fixed, 4), round(1e6 * two_rates.per_tuple, 1)
    (0.0061, 6.0)
    """
    rows = averaged(observed)
    factors = np.array([(1.0, row.tuples) for row in rows], np.float64).reshape(-1, 2)
    cores = np.array([row.cores for row in rows], np.float64)
    found = positive_fit(factors, cores, (fixed, per_tuple))
    return TaskCost(float(found.values[0]), float(found.values[1]), found)


def averaged(observed: Iterable[Observation]) -> list[Observation]:
    """Means of observations of nearly the same rate, by rate."""
    groups: list[list[Observation]] = []
    for one in sorted(observed):
        if groups and one.tuples <= ALIKE * groups[-1][0].tuples:
            groups[-1].append(one)
        else:
            groups.append([one])
    means = (np.array(group, np.float64).mean(axis=0).tolist() for group in groups)
    return [Observation(*mean) for mean in means]


def positive_fit(factors: Floats, cores: Floats, priors: Sequence[Prior]) -> PositiveFit:
    """Maximum a posteriori of positive unknowns: [N, K] factors, [N] cores, K priors."""
    center = np.log([prior.median for prior in priors])
    weight = np.diag([prior.spread**-2.0 for prior in priors])
    sigma = NOISE * cores + LEAST_NOISE
    scaled, target = factors / sigma[:, None], cores / sigma

    def loss(x: Floats) -> float:
        rest, off = target - scaled @ np.exp(x), x - center
        return float(rest @ rest + off @ weight @ off)

    x, damping = center.copy(), 1e-3
    least = loss(x)
    for _ in range(MOST_STEPS):
        jacobian = scaled * np.exp(x)
        hessian = jacobian.T @ jacobian + weight
        slope = jacobian.T @ (target - scaled @ np.exp(x)) - weight @ (x - center)
        step = np.linalg.solve(hessian + damping * np.diag(np.diag(hessian)), slope)
        reached = loss(x + step)
        if reached < least:
            x, damping = x + step, max(damping / 3, 1e-9)
            if least - reached <= CONVERGED * least:
                break
            least = reached
        elif damping > 1e9:
            break
        else:
            damping *= 4
    jacobian = scaled * np.exp(x)
    covariance = np.linalg.inv(jacobian.T @ jacobian + weight)
    return PositiveFit(np.exp(x), np.asarray(covariance, np.float64))
