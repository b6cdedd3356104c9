"""Both policies on a problem: what is prepared once, and episodes by the networks as they are."""

from dataclasses import dataclass

import numpy as np

from streamplace.learn.models.doppler.episode import (
    LIKELIEST,
    Conduct,
    Heads,
    Trail,
    episodes,
    new_trail,
)
from streamplace.learn.models.doppler.module import Doppler, Graph, Said
from streamplace.learn.models.doppler.options import DopplerConfig
from streamplace.learn.models.doppler.plan import Plan, plan_of
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Seat:
    """A problem, prepared for its episodes."""

    problem: Problem
    plan: Plan
    graph: Graph

    @classmethod
    def of(cls, problem: Problem, config: DopplerConfig, device: str = "cpu") -> "Seat":
        """Prepare a problem."""
        plan = plan_of(problem, config.looks)
        return cls(problem, plan, Graph.of(plan, device))

    def said(self, module: Doppler) -> Said:
        """What the networks say of the problem."""
        said: Said = module(self.graph)
        return said

    def run(
        self, said: Said, config: DopplerConfig, numbers: Floats, trail: Trail, *, taught: bool
    ) -> Ints:
        """Legal placements [S, N] of episodes with these numbers; see `episode.episodes`."""
        conduct = Conduct(
            int(config.select == "learned"), int(config.place == "learned"), int(taught)
        )
        heads = _ordered(self.plan, said.heads(), config.select)
        return self.problem.repaired(episodes(self.plan, heads, conduct, numbers, trail))

    def greedy(self, said: Said, config: DopplerConfig) -> Ints:
        """Placement [N] of the likeliest choices."""
        numbers = np.full((1, self.problem.n_operators, 2), LIKELIEST)
        return self.run(said, config, numbers, new_trail(self.plan, 0), taught=False)[0]


def numbers_of(
    rng: np.random.Generator, shape: tuple[int, ...], config: DopplerConfig, exploration: float
) -> Floats:
    """Numbers that a share of the choices explores by, and the others are as the options say."""
    explores, uniform = rng.random(shape) < exploration, rng.random(shape)
    usual = uniform if config.drawn == "softmax" else np.full(shape, LIKELIEST)
    return np.where(explores, 1.0 + uniform, usual)


def _ordered(plan: Plan, heads: Heads, select: str) -> Heads:
    """Heads whose scores of the tasks are those of the rule that selects, if it is not learned."""
    if select == "critical-path":
        return heads._replace(score=plan.to_exit.astype(np.float32))
    if select == "topological":
        position = np.empty(len(plan.tasks), np.float32)
        position[plan.base.order] = np.arange(len(position))
        return heads._replace(score=-position)
    return heads
