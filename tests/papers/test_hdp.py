"""The RNN placer: its two forms, and what it decides about."""

import numpy as np
import pytest
import torch
from constructive_cases import (
    ALL,
    NETS,
    PAPER,
    SMALL,
    assert_training_shortens_passes,
    hdp_policy,
    learner_of,
    linear,
    lstm,
    one_hot,
    paper_options,
    parameter,
    sent_most,
    standard,
)
from giph_reference import ends

from streamplace.learn.algorithms.orders import decision_order
from streamplace.model.random_numbers import torch_generator
from streamplace.objectives.registry import OBJECTIVES

pytestmark = pytest.mark.slow


def read_by(encoder, rows, suffix):
    """States of one direction of the encoder, step by step; torch's gates are i, f, g, o."""
    width = encoder.hidden_size
    weights = {name: parameter(p) for name, p in encoder.named_parameters()}
    state, cell, states = np.zeros(width), np.zeros(width), []
    for x in rows:
        gates = weights[f"weight_ih_l0{suffix}"] @ x + weights[f"bias_ih_l0{suffix}"]
        gates += weights[f"weight_hh_l0{suffix}"] @ state + weights[f"bias_hh_l0{suffix}"]
        i, f, g, o = np.split(gates, 4)
        state, cell = lstm(np.concatenate([i, f, o, g]), cell)
        states.append(state)
    return states


def log_probabilities(module, rows, may, devices):
    """What the module's equations say of every decision along devices, literally."""
    forward = read_by(module.encoder, list(rows), "")
    backward = read_by(module.encoder, list(rows[::-1]), "_reverse")[::-1]
    nodes = [np.concatenate(pair) for pair in zip(forward, backward, strict=True)]
    state, cell = np.concatenate([forward[-1], backward[0]]), np.zeros(module.config.width)
    previous, found = np.zeros(module.config.embedding), []
    for t, node in enumerate(nodes):
        gates = linear(module.read, node) + linear(module.read_previous, previous)
        state, cell = lstm(gates + parameter(module.recurrent) @ state, cell)
        scores = [
            linear(module.attend, np.tanh(linear(module.key, e) + linear(module.query, state)))[0]
            for e in nodes
        ]
        share = np.exp(scores) / np.exp(scores).sum()
        inputs = np.sum([a * e for a, e in zip(share, nodes, strict=True)], axis=0)
        logits = linear(module.out, np.concatenate([state, inputs])) / module.config.temperature
        logits = np.where(may[t], module.config.clip * np.tanh(logits), -np.inf)
        found.append(logits - np.log(np.exp(logits).sum()))
        previous = parameter(module.devices)[devices[t]]
    return found


@pytest.mark.parametrize("changes", [{}, {"groups": 5, "order": "bfs", "temperature": 2.0}])
def test_choices_have_the_probabilities_of_the_equations(changes):
    """All steps of all problems at once, and step by step, agree with plain loops."""
    of = hdp_policy(**changes)
    batch = batch_of(of, ALL)
    drawn = of.module(batch, 2, None, GENERATOR)
    again = of.module(batch, 0, drawn.placements)
    assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(drawn[:3], again[:3], strict=True))
    for g in range(len(ALL)):
        for s in range(2):
            devices, wanted = literally(of, batch, drawn.placements[g, s], g)
            taken = sum(row[d] for row, d in zip(wanted, devices, strict=True))
            assert drawn.log_probability[g, s].item() == pytest.approx(taken, abs=1e-3)
            some = [row[np.isfinite(row)] for row in wanted]
            entropy = np.mean([-(np.exp(row) * row).sum() for row in some])
            assert drawn.entropy[g, s].item() == pytest.approx(entropy, abs=1e-3)


GENERATOR = torch_generator(3, torch.device("cpu"))


def batch_of(of, problems):
    """Problems in a batch, padded."""
    return of.on(problems).batch(torch.arange(len(problems)))


def literally(of, batch, placement, g=0):
    """Devices along the nodes of a graph, and what the equations say of them."""
    size = int(batch.present[g].sum())
    features, may = batch.features[g, :size].double().numpy(), batch.open[g, :size].numpy()
    devices = placement[batch.first[g, :size]].tolist()
    return devices, log_probabilities(of.module, features, may, devices)


def features(problems, groups):
    """Features [V, F] of operators in the order of decision, none of them in a group (section 3).

    Neighbours have the numbers of their places in the order of the graph.
    """
    kinds = sorted({kind for p in problems for kind in p.graph.operators.kind})
    rows = []
    for problem in problems:
        order, instance = problem.graph.order.tolist(), problem.instance
        beside = {v: {u for e in ends(problem) if v in e for u in e if u != v} for v in order}
        rows.append(
            [
                [
                    *one_hot(problem.graph.operators.kind[v], kinds),
                    sent_most(problem, v),
                    np.log(max(instance.full_load[v][instance.device_type].mean(), 1e-9)),
                    *(float(u in beside[v]) for u in order),
                    *[0.0] * (groups - len(order)),
                ]
                for v in decision_order(problem, "topological").tolist()
            ]
        )
    return standard(rows, [len(kinds), len(kinds) + 1])


def test_features_are_kinds_what_is_sent_work_and_neighbours():
    of = hdp_policy(NETS, **paper_options("hdp", width=8, embedding=3))
    found, *_ = of.on(NETS)._columns
    for nodes, wanted in zip(found, features(NETS, 256), strict=True):
        assert nodes[: len(wanted)].numpy() == pytest.approx(np.array(wanted), abs=1e-5)
        assert not nodes[len(wanted) :].any()


def test_the_loss_weighs_decisions_by_roots_of_runtimes():
    """-Σ (b - √r_k) log P(d_k) in the mean over K samples, with b the moving average of √r.

    Runtimes are makespans in multiples of a bound.
    """
    of = hdp_policy([SMALL], **paper_options("hdp", width=8, embedding=3))
    pupil, bound = learner_of(of), OBJECTIVES["makespan"].bound(SMALL)
    average, batch = None, batch_of(of, [SMALL])
    for seed in range(3):
        drawn = of.module(batch, 4, None, torch_generator(seed, of.device)).placements[0]
        placements = drawn.numpy().astype(np.int32)
        roots = np.sqrt(OBJECTIVES["makespan"].values(SMALL, placements) / bound)
        average = roots.mean() if average is None else average
        gained = 0.0
        for s, root in enumerate(roots):
            devices, log_p = literally(of, batch, drawn[s])
            taken = sum(row[d] for row, d in zip(log_p, devices, strict=True))
            gained += (average - root) * taken / 4
        loss, _ = pupil.loss(np.array([0]), 0, seed)
        assert float(loss.detach()) == pytest.approx(-gained, rel=1e-3, abs=1e-6)
        average = 0.9 * average + 0.1 * roots.mean()


def test_the_likeliest_answer_is_likelier_than_its_neighbours():
    of = hdp_policy()
    batch = batch_of(of, [PAPER])
    devices, wanted = literally(of, batch, of.module(batch, 1).placements[0, 0])
    assert [row.argmax() for row in wanted] == devices


def test_nodes_are_decided_about_in_the_order_asked_for():
    """Whole groups where a graph has more operators than the model groups."""
    for order in ("bfs", "reversed-topological"):
        fine = batch_of(hdp_policy(order=order), [PAPER])
        assert fine.place[0].argsort().tolist() == decision_order(PAPER, order).tolist()
    coarse = hdp_policy(groups=6)
    label = batch_of(coarse, [PAPER]).place[0]
    assert label.unique().tolist() == [*range(6)]
    drawn = coarse.module(batch_of(coarse, [PAPER]), 2, None, GENERATOR).placements[0]
    for group in range(6):
        assert (drawn[:, label == group] == drawn[:, label == group][:, :1]).all()


@pytest.mark.parametrize("baseline", ["mean", pytest.param("moving", marks=pytest.mark.slow)])
def test_a_short_training_shortens_passes(baseline):
    pupil = learner_of(hdp_policy([SMALL], width=16), baseline=baseline, on_policy=16)
    assert_training_shortens_passes(pupil, steps=20, rate=1e-2)


def test_moving_averages_are_what_a_learner_needs_to_go_on():
    """With them and the parameters, another learner goes on alike; without, it does not."""
    of, rows = hdp_policy([SMALL]), np.array([0])
    pupil, other = (learner_of(of, baseline="moving", signal="root") for _ in "ab")
    pupil.loss(rows, 0, 0)
    assert pupil.loss(rows, 1, 1)[0].item() != other.loss(rows, 1, 1)[0].item()
    other.restore(pupil.state())
    assert pupil.loss(rows, 2, 2)[0].item() == other.loss(rows, 2, 2)[0].item()
