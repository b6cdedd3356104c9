"""Rewards of placements of one problem, from 0 to 1, whatever the objective."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from threading import Lock

import numpy as np
from streamsim import throughput

from streamplace.errors import SettingError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective, named_objective

Reward = Callable[[Problem, Ints], Floats]
"""Values [B] in 0…1 of placements [B, N]."""
RewardsAndCosts = Callable[[Problem, Ints], tuple[Floats, Floats]]
"""Rewards and costs [B] of placements [B, N], from one evaluation of each."""
Measure = Callable[[Problem, Ints], Floats]
"""Seconds [B] that one pass took under each of the placements [B, N]."""
SIMULATED = ("steady", "engine")


def reward_of(objective: str, reward: str | Measure) -> Reward:
    """Reward for an objective; throughput in the ``steady`` state or in the ``engine``.

    The makespan is simulated, or measured if it is a `Measure`.

    The reward of any other objective compares a value with a yardstick of its problem: a proven
    bound (bound / value if less is better), or without one the value of all operators on one
    device, whose reward is then one half.
    """
    valued = named_objective(objective)
    if not isinstance(reward, str):
        return Relative(replace(valued, evaluate=_one_by_one(reward), ordered=False))
    if _is_rate(valued):
        return steady if reward == "steady" else engine
    return Relative(valued)


def _one_by_one(measure: Measure) -> Measure:
    """Measure that threads wait for: passes at the same time would disturb each other."""
    lock = Lock()

    def measured(problem: Problem, placements: Ints) -> Floats:
        with lock:
            return measure(problem, placements)

    return measured


def check_reward(objective: str, reward: str | Measure) -> None:
    """Raise SettingError unless a simulation, or measured passes, can reward by an objective."""
    valued = named_objective(objective)
    if reward == "engine" and not _is_rate(valued):
        raise SettingError(
            f"the reward engine measures throughput, not {objective}; drop the reward or the "
            "objective"
        )
    if reward not in SIMULATED and valued.kind != "pass":
        raise SettingError(
            f"measured passes have a makespan, not {objective}; drop the reward or the objective"
        )


def rewards_of_values(objective: str, problem: Problem, values: Floats) -> Floats:
    """Rewards of placements whose simulated values by the objective are known."""
    valued = named_objective(objective)
    return values if _is_rate(valued) else Relative(valued).rewards(problem, values)


def _is_rate(objective: Objective) -> bool:
    """Whether values are rewards already: shares of the rate of the sources."""
    return objective.usual_kind == "rate"


def with_costs(reward: Reward) -> RewardsAndCosts:
    """Rewards of placements by `reward_of`, and their costs: lower is better.

    Costs are multiples of the problem's yardstick, not limited to 0…1.
    """
    if isinstance(reward, Relative):
        return reward.both

    def negated(problem: Problem, placements: Ints) -> tuple[Floats, Floats]:
        rewards = reward(problem, placements)
        return rewards, -rewards

    return negated


def steady(problem: Problem, placements: Ints) -> Floats:
    """Relative throughput in the steady state."""
    return throughput(problem.instance, placements)


def engine(problem: Problem, placements: Ints) -> Floats:
    """Relative throughput in the queueing engine; equal placements are run once."""
    from streamsim.engine import settings_for, simulate

    each, where = np.unique(placements, axis=0, return_inverse=True)
    runs = simulate(problem.instance, each, settings_for(problem.instance))
    return np.asarray(runs.relative)[where.ravel()]


class Relative:
    """Rewards and costs of an objective, relative to a yardstick of each problem.

    Examples
    --------
    >>> from streamplace import Cluster, Operator, StreamGraph
    >>> graph = StreamGraph.of("g", [Operator("a", ipt=1e9, rate=1.0)], fires="all")
    >>> Relative(named_objective("makespan"))(Problem(graph, Cluster.uniform(2)), np.array([[0]]))
    array([1.])
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._yardstick = cache(self._measured)

    def __call__(self, problem: Problem, placements: Ints) -> Floats:
        """Rewards of a batch."""
        return self.both(problem, placements)[0]

    def both(self, problem: Problem, placements: Ints) -> tuple[Floats, Floats]:
        """Rewards of a batch, and its values in yardsticks, negative if more is better."""
        values = np.asarray(self._objective.values(problem, placements), np.float64)
        return self.rewards(problem, values), self._costs(problem, values)

    def rewards(self, problem: Problem, values: Floats) -> Floats:
        """Rewards of values."""
        values = np.maximum(values, 0.0)
        yardstick, proven = self._yardstick(problem)
        units = np.full_like(values, yardstick)
        over, under = (units, values) if self._objective.sense == "min" else (values, units)
        under = under if proven else values + yardstick
        ratio = np.divide(over, under, out=np.ones_like(values), where=under > 0)
        return np.clip(ratio, 0.0, 1.0)

    def _costs(self, problem: Problem, values: Floats) -> Floats:
        yardstick = self._yardstick(problem)[0]
        signed = values if self._objective.sense == "min" else -values
        return signed / yardstick if yardstick > 0 else signed

    def _measured(self, problem: Problem) -> tuple[float, bool]:
        """Yardstick, and whether it is a proven bound."""
        bound = self._objective.bound(problem)
        bound = self._objective.limit if bound is None else bound
        if bound is not None and bound > 0:
            return float(bound), True
        together = problem.repaired(np.zeros((1, problem.n_operators), np.int32))
        return max(float(self._objective.values(problem, together)[0]), 0.0), False
