"""Policies: their formulas, and their gradients, under all symmetries."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from dream_cases import (
    DESCRIBED_SCALE,
    FIVE,
    MODELS,
    PROBLEMS,
    SCALE,
    batch_of,
    in_decision_order,
    log_probabilities,
    policy_of,
)
from dream_reference import Reference
from problems import constrained, diamond, fork_join, heterogeneous

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.constructive.recurrence import lstm_states
from streamplace.learn.tensors.draws import child
from streamplace.model import Cluster, Device, Problem, StreamGraph

DIAMOND, CHAIN, FORK, WIDE, LONE = PROBLEMS
DESCRIBED = {"device_state": True, "devices": 64}
VARIANTS = [
    pytest.param("encdec", {}, id="B"),
    pytest.param("encdec-gnn", {}, id="B+F1"),
    pytest.param("dream", {}, id="B+F1&F2"),
    pytest.param("dream", {"hops": 3, "tied": True}, id="three hops of the same weights"),
    pytest.param("dream", DESCRIBED, id="described devices"),
]


def drawn(policy, batch, samples=4, seed=0):
    keys = child(torch.tensor(seed), torch.arange(len(batch.order)))
    return policy.encode(batch).decide(samples, keys)


@pytest.mark.parametrize(("model", "options"), VARIANTS)
@pytest.mark.parametrize("order", ["topological", "bfs"])
def test_probabilities_fit_the_formulas(model, options, order):
    """Operator by operator in float64, along placements that the policy drew; and gradients."""
    policy = policy_of(model, **options)
    unequal = Problem(fork_join(2), heterogeneous())
    for problem in (DIAMOND, FORK, *([unequal] if "device_state" in options else ())):
        batch = batch_of([problem], order, **options)
        sampled = drawn(policy, batch, samples=3)
        found = log_probabilities(policy, batch, sampled)[0].exp()
        along = decision_order(problem, order).tolist()
        scale = DESCRIBED_SCALE if "device_state" in options else SCALE
        reference = Reference(policy, problem, scale.operators(problem), options.get("hops", 2))
        likely = []
        for sample, row in enumerate(sampled[0].tolist()):
            placement = dict(zip(along, row, strict=True))
            expected = reference.probabilities(placement, along)
            assert found[sample].numpy() == pytest.approx(expected.detach().numpy(), abs=1e-5)
            taken = expected[torch.arange(len(row)), torch.tensor(row)].log().sum()
            likely.append(taken - 0.1 * (expected * expected.clamp(min=1e-30).log()).sum())
        one = policy.encode(batch).likelihood(sampled)
        loss = (one.log_probability + 0.1 * len(along) * one.entropy).sum()
        names, parameters = zip(*policy.named_parameters(), strict=True)
        gradients = torch.autograd.grad(loss, parameters)
        wanted = torch.autograd.grad(sum(likely), [reference.parameters[n] for n in names])
        for name, gradient, other in zip(names, gradients, wanted, strict=True):
            assert torch.allclose(gradient.double(), other, atol=2e-4, rtol=1e-3), name


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_of_all_placements_sum_to_one(model):
    """Of two devices, where the last operators may go on either once both are used."""
    problem = Problem(diamond(), Cluster.uniform(2))
    every = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    policy, batch = policy_of(model), batch_of([problem])
    rows = torch.from_numpy(every)[None]
    likely = policy.encode(batch).likelihood(rows).log_probability.exp()
    assert likely.sum().item() == pytest.approx(1, abs=1e-5)
    swapped = every[:, decision_order(problem, "topological")[0]] == 1
    assert likely[0, torch.from_numpy(swapped)].sum().item() == 0


def test_samples_come_as_often_as_they_are_likely():
    policy, batch = policy_of("dream"), batch_of([DIAMOND])
    sampled = drawn(policy, batch, samples=4000)
    seen, counts = torch.unique(sampled[0], dim=0, return_counts=True)
    likely = policy.encode(batch).likelihood(seen[None]).log_probability.exp()
    assert counts / 4000 == pytest.approx(likely[0].detach(), abs=0.04)


def test_greedy_takes_the_likeliest_device_at_every_step():
    policy, batch = policy_of("dream"), batch_of(PROBLEMS)
    greedy = policy.encode(batch).decide(1, None)
    likeliest = log_probabilities(policy, batch, greedy).argmax(-1)
    assert torch.equal(torch.where(batch.present[:, None], likeliest, 0), greedy)


def test_only_open_devices_are_chosen():
    """Of a cluster of three on a model of five, of unused ones the first."""
    problem = Problem(fork_join(3), Cluster.uniform(3))
    batch = batch_of([problem])
    sampled = drawn(policy_of("dream"), batch, samples=200)[0]
    assert sampled.max() == 2
    first_seen = sampled.cummax(1).values.diff(dim=1, prepend=torch.full((200, 1), -1))
    assert first_seen.max() == 1


def test_unequal_devices_are_all_open():
    """Swapping them would change the placement's value."""
    batch = batch_of([Problem(fork_join(2), heterogeneous())])
    sampled = drawn(policy_of("dream"), batch, samples=200)[0]
    assert set(sampled[:, 0].tolist()) == {0, 1, 2}


def test_rules_are_respected():
    """Groups, pins and allowed devices always; what keeps apart unless it leads nowhere."""
    problem = constrained()
    order = decision_order(problem, "topological")
    sampled = drawn(policy_of("dream"), batch_of([problem]), samples=300)[0].numpy()
    rows = np.empty_like(sampled)
    rows[:, order] = sampled
    legal = problem.legal(rows)
    assert legal.mean() > 0.5
    assert problem.legal(problem.repaired(rows)).all()


def renamed(graph, stored):
    """The same graph with its operators stored in another order."""
    names = graph.operators.name
    operators = [graph.operators[names[v]] for v in stored]
    return StreamGraph.of("other", operators, list(graph.streams)[::-1])


@pytest.mark.parametrize("model", MODELS)
def test_storage_order_does_not_matter(model):
    graph = fork_join(2)
    stored = [3, 0, 5, 1, 4, 2]
    other = Problem(renamed(graph, stored), FIVE)
    policy = policy_of(model)
    placement = np.empty(6, int)
    placement[decision_order(Problem(graph, FIVE), "lexicographic")] = [0, 1, 0, 2, 2, 1]

    def likely(problem, row):
        batch = batch_of([problem], "lexicographic")
        decided = in_decision_order(problem, row, "lexicographic")
        return policy.encode(batch).likelihood(decided).log_probability

    found = likely(other, placement[stored])
    assert torch.allclose(found, likely(Problem(graph, FIVE), placement), atol=1e-5)


@pytest.mark.slow
def test_gradients_of_the_recurrence_are_those_of_finite_differences():
    """Of everything but the one-hot decisions, which have none."""
    generator = torch.Generator().manual_seed(0)
    # T, G, S, H, K = 5, 2, 3, 4, 2
    shapes = [(5, 2, 16), (5, 2, 3, 2), (6, 4), (16, 4), (16, 2)]
    inputs, read, start, *weights = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes
    )
    wanted = [tensor.requires_grad_() for tensor in (inputs, start, *weights)]
    assert torch.autograd.gradcheck(lambda x, h, w, u: lstm_states(x, read, h, w, u), wanted)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "options"), VARIANTS)
def test_earlier_draws_change_no_likelihood(model, options):
    """In float64, in a padded batch or under rules, of placements that are partly in the tree."""
    policy = policy_of(model, **options).double()
    for problems in (PROBLEMS, [constrained()]):
        batch = doubled(batch_of(problems, **options))
        keys = child(torch.tensor(0), torch.arange(len(problems)))
        samples = torch.cat([drawn(policy, batch), drawn(policy, batch, seed=1)], dim=1)
        factors = torch.rand(2, len(samples), 8, dtype=torch.float64)
        results = []
        for before in (0, 4):
            tree = policy.encode(batch)
            if before:
                tree.decide(before, keys)
            parts = torch.stack([*vars_of(tree.likelihood(samples))])
            gradients = torch.autograd.grad((factors * parts).sum(), list(policy.parameters()))
            results.append((parts.detach(), *gradients))
        for fresh, grown in zip(*results, strict=True):
            assert torch.allclose(fresh, grown, atol=1e-9)


def vars_of(likelihood):
    return likelihood.log_probability, likelihood.entropy


@pytest.mark.parametrize("n_devices", [2, 5, 64])
def test_described_devices_may_change_their_numbers(n_devices):
    """A placement is as likely on a cluster whose devices are in another order."""
    rng = np.random.default_rng(n_devices)
    policy = policy_of("dream", **DESCRIBED)
    mips, wires = rng.uniform(1e3, 4e3, n_devices), rng.uniform(1e8, 1e9, (n_devices, n_devices))
    to = rng.permutation(n_devices)
    likely = []
    for order in (np.arange(n_devices), to):
        devices = [Device(f"d{d}", mips=mips[d]) for d in order]
        cluster = Cluster.of(devices, bandwidth=wires[np.ix_(order, order)])
        problem = Problem(fork_join(3), cluster)
        row = np.argsort(order)[np.arange(problem.n_operators) % min(n_devices, 3)]
        batch = batch_of([problem], "lexicographic", **DESCRIBED)
        decided = in_decision_order(problem, row.tolist(), "lexicographic")
        likely.append(policy.encode(batch).likelihood(decided).log_probability)
    assert torch.allclose(*likely, atol=1e-4)


def doubled(batch):
    """A batch in float64."""
    return replace(
        batch,
        **{
            field.name: part.double()
            for field in fields(batch)
            if (part := getattr(batch, field.name)) is not None and part.is_floating_point()
        },
    )
