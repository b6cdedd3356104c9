"""Episodes of policies that improve placements, and what happens in them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from streamplace.model.problem import random_placements
from streamplace.papers.families.giph import Giph, giph

PAPER = tuple(giph(Giph("multiple_networks", 2), seed=3))[1]
"""Of the first, a chain with shortcuts, no two tasks could run at the same time."""


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
    run = policy.episodes([problem], [place])
    numbers = rng.random((steps or policy.steps_per_task * problem.n_operators, 1))
    walk = [run.step(number) for number in torch.from_numpy(numbers)]
    log_p, entropy = policy.likelihood(run.batch, walk)
    return Seen(
        places=np.concatenate([place[None], *(step.place.numpy() for step in walk)]),
        inputs=[step.inputs for step in walk],
        is_open=np.concatenate([step.scores.detach().numpy() > -np.inf for step in walk]),
        actions=np.concatenate([step.action.numpy() for step in walk]),
        log_p=log_p[:, 0].detach().numpy(),
        entropy=entropy[:, 0].detach().numpy(),
    )


def edges_of(graph):
    """Nodes that every existing edge leads from and to, the number of its stream, its features."""
    edges = graph.edges
    k, (source, target) = edges.k, edges.sweep.ends.tolist()
    present, features = edges.present.tolist(), graph.features.permute(1, 2, 3, 0).detach().numpy()
    for part, e, a in np.argwhere(edges.exists.numpy()).tolist():
        near, far = (source[e], target[e])[:: 1 - 2 * part]
        ends = (near * k + present[near], far * k + a)[:: 1 - 2 * part]
        yield *ends, e, features[part, e, a]


def check_episodes_side_by_side(policy, problems):
    """Every problem's episode is the same alone and beside those of others."""
    rng = np.random.default_rng(3)
    places = [random_placements(problem, 1, rng)[0] for problem in problems]
    steps = policy.steps_per_task * max(problem.n_operators for problem in problems)
    uniform = torch.from_numpy(rng.random((steps, len(problems))))
    together, likelihoods = walked(policy, problems, places, uniform)
    for g, (problem, place) in enumerate(zip(problems, places, strict=True)):
        alone, own = walked(policy, [problem], [place], uniform[:, [g]])
        assert torch.equal(together[:, g, : problem.n_operators], alone[:, 0])
        for ours, theirs in zip(likelihoods, own, strict=True):
            torch.testing.assert_close(ours[:, g], theirs[:, 0], atol=1e-4, rtol=1e-4)


def walked(policy, problems, places, uniform):
    """Placements [L, G, N] after the steps of episodes, and the likelihood of their actions."""
    run = policy.episodes(problems, places)
    steps = [run.step(numbers) for numbers in uniform]
    return torch.stack([step.place for step in steps]), policy.likelihood(run.batch, steps)


def check_steps_learned_from_apart(policy, problem, monkeypatch):
    """Likelihoods and gradients do not depend on how many steps are learned from at once."""
    place, found = random_placements(problem, 1, np.random.default_rng(0))[0], []
    uniform = torch.from_numpy(np.random.default_rng(1).random((7, 1)))
    nodes = policy.episodes([problem], [place]).step(uniform[0]).inputs[0].nodes.shape[1]
    for few, at_once in ((0, 0), (nodes, nodes), (nodes, 3 * nodes), (nodes, 10**9)):
        monkeypatch.setattr("streamplace.papers.improving.episodes.MAX_SMALL_STEP", few)
        monkeypatch.setattr("streamplace.papers.improving.episodes.BATCH_NODES", at_once)
        policy.zero_grad()
        _, (log_p, entropy) = walked(policy, [problem], [place], uniform)
        (log_p * torch.arange(7)[:, None] + entropy).sum().backward()
        gradients = [parameter.grad.clone() for parameter in policy.parameters()]
        found.append([log_p.detach(), entropy.detach(), *gradients])
    for some in found[:3]:
        torch.testing.assert_close(some, found[3], atol=1e-4, rtol=1e-4)


def check_tensors_are_where_the_parameters_are(policy, problem):
    """No tensor is made on the default device, which is another one here."""
    places = [*random_placements(problem, 2, np.random.default_rng(0))]
    uniform = torch.from_numpy(np.random.default_rng(1).random((5, 2)))
    usual, likelihoods = walked(policy, [problem] * 2, places, uniform)
    with torch.device("meta"):
        elsewhere, others = walked(policy, [problem] * 2, places, uniform)
        others[0].sum().backward()
    assert torch.equal(elsewhere, usual)
    for ours, theirs in zip(others, likelihoods, strict=True):
        assert torch.equal(ours, theirs)
