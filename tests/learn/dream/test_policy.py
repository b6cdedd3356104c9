"""Policies: the paper's formulas, in both forms, under all symmetries."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from dream_cases import (
    FIVE,
    MODELS,
    PROBLEMS,
    SCALE,
    batch_of,
    in_decision_order,
    policy_of,
    step_by_step,
)
from dream_reference import Reference
from problems import constrained, diamond, fork_join, heterogeneous
from torch import Tensor

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.constructive.recurrence import lstm_states
from streamplace.learn.models.dream.graphs import GraphBatch
from streamplace.learn.models.dream.network import EncoderDecoder
from streamplace.learn.tensors.draws import child
from streamplace.model import Cluster, Problem, StreamGraph

DIAMOND, CHAIN, FORK, WIDE, LONE = PROBLEMS
VARIANTS = [
    pytest.param("encdec", {}, id="B"),
    pytest.param("encdec-gnn", {}, id="B+F1"),
    pytest.param("dream", {}, id="B+F1&F2"),
    pytest.param("dream", {"hops": 3, "tied": True}, id="three hops of the same weights"),
    pytest.param("dream", {"device_state": True}, id="device state"),
]


def drawn(policy: EncoderDecoder, batch: GraphBatch, samples: int = 4, seed: int = 0) -> Tensor:
    keys = child(torch.tensor(seed), torch.arange(len(batch.order)))
    return policy.decide(policy.encode(batch), samples, keys)


@pytest.mark.parametrize(("model", "options"), VARIANTS)
@pytest.mark.parametrize("order", ["topological", "bfs", "reversed-topological"])
def test_probabilities_are_those_of_the_formulas(
    model: str, options: dict[Any, Any], order: str
) -> None:
    """Operator by operator in float64, on a placement that the policy drew."""
    policy = policy_of(model, **options)
    for problem in (DIAMOND, FORK):
        batch = batch_of([problem], order)
        sampled = drawn(policy, batch, samples=1)
        found = step_by_step(policy, batch, sampled)[0, :, 0].exp().detach().numpy()
        along = decision_order(problem, order).tolist()
        placement = dict(zip(along, sampled[0, 0].tolist(), strict=True))
        reference = Reference(policy, problem, SCALE.operators(problem), options.get("hops", 2))
        expected = reference.probabilities(placement, along, canonical=True).detach().numpy()
        assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("model", "options"), VARIANTS)
def test_both_forms_agree(model: str, options: dict[Any, Any]) -> None:
    """Step by step, all at once with samples in a padded batch or under rules, and as a tree."""
    policy = policy_of(model, **options)
    for problems in (PROBLEMS, [constrained()]):
        batch = batch_of(problems)
        sampled = drawn(policy, batch)
        rows = step_by_step(policy, batch, sampled).detach()
        taken = rows.gather(3, sampled.transpose(1, 2)[..., None]).sum((1, 3))
        found = policy.likelihood(batch, policy.encode(batch), sampled)
        dense = policy.likelihood(batch, replace(policy.encode(batch), tree=None), sampled)
        assert torch.allclose(dense.log_probability, taken, atol=1e-5)
        assert torch.allclose(found.log_probability, taken, atol=1e-5)
        entropy = -(rows.exp() * rows).sum((1, 3)) / batch.present.sum(1)[:, None]
        assert torch.allclose(found.entropy, entropy, atol=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_of_all_placements_sum_to_one(model: str) -> None:
    """Of two devices, where the last operators may go on either once both are used."""
    problem = Problem(diamond(), Cluster.uniform(2))
    every = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    policy, batch = policy_of(model), batch_of([problem])
    rows = torch.from_numpy(every)[None]
    likely = policy.likelihood(batch, policy.encode(batch), rows).log_probability.exp()
    assert likely.sum().item() == pytest.approx(1, abs=1e-5)
    swapped = every[:, decision_order(problem, "topological")[0]] == 1
    assert likely[0, torch.from_numpy(swapped)].sum().item() == 0


def test_samples_come_as_often_as_they_are_likely() -> None:
    policy, batch = policy_of("dream"), batch_of([DIAMOND])
    sampled = drawn(policy, batch, samples=4000)
    seen, counts = torch.unique(sampled[0], dim=0, return_counts=True)
    likely = policy.likelihood(batch, policy.encode(batch), seen[None]).log_probability.exp()
    assert counts / 4000 == pytest.approx(likely[0].detach(), abs=0.04)


def test_greedy_takes_the_likeliest_device_at_every_step() -> None:
    policy, batch = policy_of("dream"), batch_of(PROBLEMS)
    greedy = policy.decide(policy.encode(batch), 1, None)
    assert torch.equal(step_by_step(policy, batch, greedy).argmax(-1)[:, :, 0], greedy[:, 0])


@pytest.mark.parametrize("canonical", [True, False])
def test_only_open_devices_are_chosen(canonical: bool) -> None:
    """Of a cluster of three on a model of five, of unused ones the first if so wished."""
    problem = Problem(fork_join(3), Cluster.uniform(3))
    batch = batch_of([problem], canonical=canonical)
    sampled = drawn(policy_of("dream"), batch, samples=200)[0]
    assert sampled.max() == 2
    first_seen = sampled.cummax(1).values.diff(dim=1, prepend=torch.full((200, 1), -1))
    assert (first_seen.max() == 1) == canonical


def test_unequal_devices_are_all_open() -> None:
    """Swapping them would change the placement's value."""
    batch = batch_of([Problem(fork_join(2), heterogeneous())])
    sampled = drawn(policy_of("dream"), batch, samples=200)[0]
    assert set(sampled[:, 0].tolist()) == {0, 1, 2}


def test_rules_are_respected() -> None:
    """Groups, pins and allowed devices always; what keeps apart unless it leads nowhere."""
    problem = constrained()
    order = decision_order(problem, "topological")
    sampled = drawn(policy_of("dream"), batch_of([problem]), samples=300)[0].numpy()
    rows = np.empty_like(sampled)
    rows[:, order] = sampled
    legal = problem.legal(rows)
    assert legal.mean() > 0.5
    assert problem.legal(problem.repaired(rows)).all()


def renamed(graph: StreamGraph, stored: list[int]) -> StreamGraph:
    """The same graph with its operators stored in another order."""
    names = graph.operators.name
    operators = [graph.operators[names[v]] for v in stored]
    return StreamGraph.of("other", operators, list(graph.streams)[::-1])


@pytest.mark.parametrize("model", MODELS)
def test_storage_order_does_not_matter(model: str) -> None:
    """Given an order of decision that goes by name."""
    graph = fork_join(2)
    stored = [3, 0, 5, 1, 4, 2]
    other = Problem(renamed(graph, stored), FIVE)
    policy = policy_of(model)
    placement = [0, 1, 0, 2, 2, 1]

    def likely(problem: Problem, row: list[int]) -> Tensor:
        batch = batch_of([problem], "lexicographic", canonical=False)
        decided = in_decision_order(problem, row, "lexicographic")
        return policy.likelihood(batch, policy.encode(batch), decided).log_probability

    found = likely(other, [placement[v] for v in stored])
    assert torch.allclose(found, likely(Problem(graph, FIVE), placement), atol=1e-5)


def test_gradients_of_the_recurrence_are_those_of_finite_differences() -> None:
    """Of everything but the one-hot decisions, which have none."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(5, 2, 16), (5, 2, 3, 2), (6, 4), (16, 6)]  # of T, G, S, H, K = 5, 2, 3, 4, 2
    inputs, read, start, weight = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes
    )
    wanted = [tensor.requires_grad_() for tensor in (inputs, start, weight)]
    assert torch.autograd.gradcheck(lambda x, h, w: lstm_states(x, read, h, w), wanted)


@pytest.mark.parametrize(("model", "options"), VARIANTS)
def test_gradients_of_a_tree_are_those_of_all_steps_at_once(
    model: str, options: dict[Any, Any]
) -> None:
    """In float64, of samples that were drawn from the tree and of others, some of them equal."""
    policy = policy_of(model, **options).double()
    for problems in (PROBLEMS, [constrained()]):
        batch = doubled(batch_of(problems))
        samples = drawn(policy, doubled(batch_of(problems)), seed=1)
        factors = torch.rand(2, len(samples), 8, dtype=torch.float64)
        gradients, likelihoods = [], []
        for is_tree in (True, False):
            encoded = policy.encode(batch)
            if is_tree:
                keys = child(torch.tensor(0), torch.arange(len(samples)))
                samples = torch.cat([policy.decide(encoded, 4, keys), samples], dim=1)
            else:
                encoded = replace(encoded, tree=None)
            found = policy.likelihood(batch, encoded, samples)
            likelihoods.append(found.log_probability.detach())
            parts = torch.stack([found.log_probability, found.entropy])
            loss = (factors * parts).sum()
            gradients.append(torch.autograd.grad(loss, list(policy.parameters())))
        assert torch.allclose(*likelihoods, atol=1e-5)
        for of_tree, at_once in zip(*gradients, strict=True):
            assert torch.allclose(of_tree, at_once, atol=1e-5, rtol=1e-5)


def doubled(batch: GraphBatch) -> GraphBatch:
    """A batch in float64."""
    return replace(
        batch,
        **{
            field.name: part.double()
            for field in fields(batch)
            if (part := getattr(batch, field.name)) is not None and part.is_floating_point()
        },
    )
