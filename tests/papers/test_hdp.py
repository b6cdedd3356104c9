"""The RNN placer: its two forms, and what it decides about."""

from typing import Any

import numpy as np
import pytest
import torch
from constructive_cases import (
    ALL,
    PAPER,
    SMALL,
    assert_training_shortens_passes,
    hdp_policy,
    learner_of,
)
from dream_reference import linear, lstm, parameter
from numpy.typing import NDArray

from streamplace.learn.algorithms.orders import decision_order
from streamplace.papers.hdp.module import HdpModule

Floats = NDArray[np.float64]


def read_by(encoder: torch.nn.LSTM, rows: list[Floats], suffix: str) -> list[Floats]:
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


def log_probabilities(
    module: HdpModule, rows: Floats, may: Any, devices: list[int]
) -> list[Floats]:
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
        seen = np.sum([a * e for a, e in zip(share, nodes, strict=True)], axis=0)
        logits = linear(module.out, np.concatenate([state, seen])) / module.config.temperature
        logits = np.where(may[t], module.config.clip * np.tanh(logits), -np.inf)
        found.append(logits - np.log(np.exp(logits).sum()))
        previous = parameter(module.devices)[devices[t]]
    return found


@pytest.mark.parametrize("changes", [{}, {"groups": 5, "order": "bfs", "temperature": 2.0}])
def test_choices_have_the_probabilities_of_the_equations(changes: dict[str, Any]) -> None:
    """All steps of all problems at once, and step by step, agree with plain loops."""
    of = hdp_policy(**changes)
    batch = of.on(ALL).encoded(np.arange(len(ALL)), np.random.default_rng(0))
    drawn = batch.drawn(2, torch.Generator().manual_seed(3))
    likely = batch.likelihood(drawn)
    for g, part in enumerate(batch.parts):
        for s, devices in enumerate(part.decisions(drawn[g]).tolist()):
            wanted = log_probabilities(of.module, part.features, part.open, devices)
            taken = sum(row[d] for row, d in zip(wanted, devices, strict=True))
            assert likely.log_probability[g, s].item() == pytest.approx(taken, abs=1e-3)
            some = [row[np.isfinite(row)] for row in wanted]
            entropy = np.mean([-(np.exp(row) * row).sum() for row in some])
            assert likely.entropy[g, s].item() == pytest.approx(entropy, abs=1e-3)


def test_the_likeliest_answer_is_likelier_than_its_neighbours() -> None:
    of = hdp_policy()
    batch = of.on([PAPER]).encoded(np.array([0]), np.random.default_rng(0))
    (greedy,) = batch.drawn(1, None)
    part = batch.parts[0]
    devices = part.decisions(greedy)[0].tolist()
    wanted = log_probabilities(of.module, part.features, part.open, devices)
    assert [row.argmax() for row in wanted] == devices


def test_nodes_are_decided_about_in_the_order_asked_for() -> None:
    """Whole groups where a graph has more operators than the model groups."""
    for order in ("bfs", "reversed-topological"):
        fine = hdp_policy(order=order).on([PAPER]).encoded(np.array([0]), np.random.default_rng(0))
        assert fine.parts[0].order.tolist() == decision_order(PAPER, order).tolist()
    coarse = hdp_policy(groups=6).on([PAPER]).encoded(np.array([0]), np.random.default_rng(0))
    label = coarse.parts[0].nodes.label
    assert len(coarse.parts[0].order) == 6
    (drawn,) = coarse.drawn(2, torch.Generator().manual_seed(0))
    for group in range(label.max() + 1):
        assert (drawn[:, label == group] == drawn[:, label == group][:, :1]).all()


@pytest.mark.parametrize("baseline", ["mean", pytest.param("moving", marks=pytest.mark.slow)])
def test_a_short_training_shortens_passes(baseline: str) -> None:
    """Of one problem, as the paper learns."""
    one = learner_of(hdp_policy([SMALL], width=16), baseline=baseline, on_policy=16)
    assert_training_shortens_passes(one, steps=20, rate=1e-2)


def test_moving_averages_are_what_a_learner_needs_to_go_on() -> None:
    """With them and the parameters, another learner goes on alike; without, it does not."""
    of, rows = hdp_policy([SMALL]), np.array([0])
    one, other = (learner_of(of, baseline="moving", signal="root") for _ in "ab")
    one.loss(rows, 0, 0)
    assert one.loss(rows, 1, 1)[0].item() != other.loss(rows, 1, 1)[0].item()
    other.restore(one.state())
    assert one.loss(rows, 2, 2)[0].item() == other.loss(rows, 2, 2)[0].item()
