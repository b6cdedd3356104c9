"""Policies: their formulas, and their gradients, under all symmetries."""

import numpy as np
import pytest
import torch
from dream_cases import (
    FIVE,
    MODELS,
    PROBLEMS,
    batch_of,
    drawn,
    features_of,
    log_probabilities,
    policy_of,
)
from dream_reference import Reference
from problems import chain, constrained, diamond, fork_join, heterogeneous

from streamplace.learn.algorithms.orders import decision_order
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


@pytest.mark.parametrize(("model", "options"), VARIANTS)
@pytest.mark.parametrize("order", ["topological", "bfs"])
def test_probabilities_fit_the_formulas(model, options, order):
    """Operator by operator in float64, along placements that the policy drew; and gradients."""
    policy = policy_of(model, **options)
    unequal = Problem(fork_join(2), heterogeneous())
    for problem in (DIAMOND, FORK, *([unequal] if "device_state" in options else ())):
        batch = batch_of([problem], order)
        sampled = drawn(policy, batch, samples=3)
        found = log_probabilities(policy, batch, sampled)[0].exp()
        along = decision_order(problem, order).tolist()
        features = features_of(policy, problem)
        reference = Reference(policy, problem, features, options.get("hops", 2))
        likely = []
        for sample, row in enumerate(sampled[0].tolist()):
            expected = reference.probabilities(row, along)
            assert found[sample].numpy() == pytest.approx(expected.detach().numpy(), abs=1e-5)
            taken = expected[torch.arange(len(row)), [row[v] for v in along]].log().sum()
            likely.append(taken - 0.1 * (expected * expected.clamp(min=1e-30).log()).sum())
        one = policy(batch, 0, sampled)
        assert torch.equal(one.placements, sampled)
        loss = (one.log_probability + 0.1 * len(along) * one.entropy).sum()
        names, parameters = zip(*policy.named_parameters(), strict=True)
        gradients = torch.autograd.grad(loss, parameters)
        wanted = torch.autograd.grad(sum(likely), [reference.parameters[n] for n in names])
        for name, gradient, other in zip(names, gradients, wanted, strict=True):
            assert torch.allclose(gradient.double(), other, atol=2e-4, rtol=1e-3), name


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_of_all_placements_sum_to_one(model):
    """Of two devices; those that swap them are the same placement, as likely."""
    problem = Problem(diamond(), Cluster.uniform(2))
    every = torch.cartesian_prod(*[torch.arange(2)] * 4)[None]
    policy, batch = policy_of(model), batch_of([problem])
    found = policy(batch, 0, every)
    likely, numbered = found.log_probability.exp()[0], (found.placements == every).all(-1)[0]
    assert likely[numbered].sum().item() == pytest.approx(1, abs=1e-5)
    assert torch.allclose(likely, likely.flip(0))


def test_samples_come_as_often_as_they_are_likely():
    policy, batch = policy_of("dream"), batch_of([DIAMOND])
    seen, counts = torch.unique(drawn(policy, batch, 4000)[0], dim=0, return_counts=True)
    likely = policy(batch, 0, seen[None]).log_probability.exp()
    assert counts / 4000 == pytest.approx(likely[0].detach(), abs=0.04)


def test_greedy_takes_the_likeliest_device_at_every_step():
    policy, batch = policy_of("dream"), batch_of(PROBLEMS)
    greedy = policy(batch, 1).placements
    likeliest = log_probabilities(policy, batch, greedy).argmax(-1)
    assert torch.equal(batch.placements(likeliest), greedy)


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
        return policy(batch, 0, torch.from_numpy(row)[None, None]).log_probability

    found = likely(other, placement[stored])
    assert torch.allclose(found, likely(Problem(graph, FIVE), placement), atol=1e-5)


@pytest.mark.parametrize(("model", "options"), VARIANTS)
def test_padding_changes_no_likelihood(model, options):
    """Nor does whatever else is in the batch: a problem of more devices, or rules."""
    policy = policy_of(model, **options)
    problems = [*PROBLEMS, constrained(), Problem(chain(2), Cluster.uniform(2))]
    sampled = drawn(policy, batch_of(problems))
    together = policy(batch_of(problems), 0, sampled)
    for i, problem in enumerate(problems):
        alone = policy(batch_of([problem]), 0, sampled[i : i + 1, :, : problem.n_operators])
        for name in ("log_probability", "entropy"):
            one, other = getattr(together, name)[i], getattr(alone, name)[0]
            assert torch.allclose(one, other, atol=1e-5), name


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
        batch = batch_of([problem], "lexicographic")
        likely.append(policy(batch, 0, torch.from_numpy(row)[None, None]).log_probability)
    assert torch.allclose(*likely, atol=1e-4)
