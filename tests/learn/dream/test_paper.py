"""The preset ``paper``: the text of sections 3.1 to 3.3, literally and in float64."""

from typing import Any

import dream_cases
import numpy as np
import pytest
import torch
from dream_cases import MODELS, batch_of
from dream_reference import Reference, random_samples
from problems import diamond, fork_join

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.env import Environment
from streamplace.learn.models.dream.features import operator_features
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph

FIVE = Cluster.uniform(5, mips=2500, bandwidth="1000Mbps")
PROBLEMS = (Problem(diamond(), FIVE), Problem(fork_join(3), FIVE))


def learner_of(model, problems=PROBLEMS):
    return dream_cases.learner_of(model, "paper", problems, embedding=3)


def features(problem):
    """CPU utilisation IPT · R / MIPS and saturation P · R / BW of every operator (§4.1)."""
    flow, operators = problem.graph.flow, problem.graph.operators
    rows = zip(flow.input_rate, flow.output_rate, operators.ipt, operators.payload, strict=True)
    sends = set(problem.instance.source.tolist())
    return [
        [ipt * taken / 2500e6, payload * sent * 8 / 1e9 * (v in sends)]
        for v, (taken, sent, ipt, payload) in enumerate(rows)
    ]


def test_features_are_cpu_utilisation_and_payload_as_they_are():
    graph = StreamGraph.of(
        "pipe",
        [Operator("a", ipt=1e5, payload=5000, rate=1e4), Operator("b", ipt=2.5e5)],
        [Stream("a", "b")],
    )
    problem = Problem(graph, FIVE)
    module: Any = learner_of("dream", (problem,)).module
    assert (module.mean.tolist(), module.std.tolist()) == ([0, 0], [1, 1])
    found = operator_features(batch_of([problem]), module.names)[0].numpy()
    assert found == pytest.approx(np.array([[0.4, 0.4], [1.0, 0.0]]))
    assert found == pytest.approx(np.array(features(problem)))


@pytest.mark.parametrize("model", MODELS)
def test_a_step_is_that_of_equation_4(model, monkeypatch):
    """Samples, memory, baseline and gradient of three steps, one of them in a later epoch."""
    learner = learner_of(model)
    module: Any = learner.module
    judge, judged, learnt = Environment.judged, [], []

    def spied(env, placements):
        legal, rewards = judge(env, placements)
        assert torch.equal(legal, placements)
        judged.append((placements[0].tolist(), rewards[0].tolist()))
        return legal, rewards

    monkeypatch.setattr(Environment, "judged", spied)
    module.register_forward_hook(lambda *call: learnt.append(call[-1].placements[0].tolist()))
    for number, problem in enumerate(PROBLEMS):
        order = decision_order(problem, "bfs").tolist()
        memory: dict[tuple[int, ...], float] = {}
        reference = Reference(module, problem, features(problem))
        assert not reference.has("encoder.hops.1.incoming")
        assert not reference.has("decoder.read_state")
        assert reference.has("decoder.read_upstream") == (model == "dream")
        for step, epoch in enumerate((0, 1, 1)):
            judged.clear(), learnt.clear()
            loss, _ = learner.loss(np.array([number]), epoch, step)
            found = torch.autograd.grad(loss, list(module.parameters()))
            (random, of_random), (drawn, rewards) = judged
            assert len(drawn) == 3
            wanted = random_samples(epoch, memory_is_empty=not memory)
            memory |= kept(random[:wanted], of_random[:wanted], order)
            best = sorted(memory.items(), key=lambda item: -item[1])[:3]
            memory |= kept(drawn, rewards, order)
            samples = [tuple(row) for row in drawn] + [row for row, _ in best]
            r = torch.tensor(rewards + [reward for _, reward in best])
            assert 3 <= len(samples) <= 6
            assert list(map(tuple, learnt[0]))[: len(samples)] == samples
            log_p = [reference.log_probability(row, order) for row in samples]
            objective = ((r - r.mean()) * torch.stack(log_p)).mean()
            names = [name for name, _ in module.named_parameters()]
            expected = torch.autograd.grad(objective, [reference.parameters[n] for n in names])
            assert loss.item() == pytest.approx(-objective.item(), abs=1e-5)
            for name, one, other in zip(names, found, expected, strict=True):
                assert torch.allclose(one.double(), -other, atol=1e-5), name


def kept(rows, rewards, order):
    """Samples that are good enough to be replayed: those whose reward is above 0.8."""
    pairs = zip(rows, rewards, strict=True)
    return {renamed(row, order): reward for row, reward in pairs if reward >= 0.8}


def renamed(row, order):
    """A placement with interchangeable ids of devices, numbered by first use in an order."""
    number: dict[int, int] = {}
    for v in order:
        number.setdefault(row[v], len(number))
    return tuple(number[device] for device in row)
