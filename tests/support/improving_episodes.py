"""Episodes of policies that improve placements, and what happens in them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from streamplace.model.problem import random_placements


@dataclass
class Seen:
    """T steps of an episode of one problem."""

    places: Any  # [T + 1, N] placements before each step, and the last
    inputs: list[Any]  # of the network
    is_open: Any  # [T, A]
    actions: Any  # [T]
    log_p: Any  # [T] of the actions
    entropy: Any  # [T]


def seen(policy, problem, steps=None):
    """Go from a random placement for so many steps, by default to the end of the episode."""
    rng = np.random.default_rng(5)
    place = random_placements(problem, 1, rng)[0]
    episodes = policy.episodes([problem], [place])
    scores, act = episodes.scores, episodes.act
    is_open, actions, inputs = [], [], []

    def scored():
        found = scores()
        is_open.append(found[1][0].numpy())
        return found

    def acted(action):
        actions.append(int(action))
        act(action)

    episodes.scores, episodes.act = scored, acted
    hook = policy.register_forward_pre_hook(lambda _, given: inputs.append(given))
    numbers = rng.random((steps or policy.steps_per_task * problem.n_operators, 1))
    with torch.no_grad():
        walk = episodes.walk(torch.from_numpy(numbers))
    hook.remove()
    places = np.concatenate([place[None], walk.places[:, 0].numpy()])
    columns = (walk.log_p[:, 0].numpy(), walk.entropy[:, 0].numpy())
    return Seen(places, inputs, np.array(is_open), np.array(actions), *columns)


def check_episodes_side_by_side(policy, problems):
    """Every problem's episode is the same alone and beside those of others."""
    rng = np.random.default_rng(3)
    places = [random_placements(problem, 1, rng)[0] for problem in problems]
    steps = policy.steps_per_task * max(problem.n_operators for problem in problems)
    uniform = torch.from_numpy(rng.random((steps, len(problems))))
    together = policy.episodes(problems, places).walk(uniform)
    for g, (problem, place) in enumerate(zip(problems, places, strict=True)):
        alone = policy.episodes([problem], [place]).walk(uniform[:, [g]])
        mine = together.places[:, g, : problem.n_operators]
        assert torch.equal(mine, alone.places[:, 0])
        for name in ("log_p", "entropy"):
            theirs = getattr(alone, name)[:, 0]
            torch.testing.assert_close(getattr(together, name)[:, g], theirs, atol=1e-4, rtol=1e-4)


def check_tensors_are_where_the_parameters_are(policy, problem):
    """No tensor is made on the default device, which is another one here."""
    place = random_placements(problem, 2, np.random.default_rng(0))
    uniform = torch.rand(5, 2, dtype=torch.float64)
    usual = policy.episodes([problem] * 2, [*place]).walk(uniform)
    with torch.device("meta"):
        elsewhere = policy.episodes([problem] * 2, [*place]).walk(uniform)
        elsewhere.log_p.sum().backward()
    for ours, theirs in zip(elsewhere, usual, strict=True):
        assert torch.equal(ours, theirs)
