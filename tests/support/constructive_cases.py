"""Small policies that build placements, and problems as they see them."""

import numpy as np
import torch
from adam import train
from problems import PROBLEMS, fork_join

from streamplace.learn.constructive.reinforce import ConstructiveLearner
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.shards import one_thread
from streamplace.model import Problem
from streamplace.papers.families.chainmm import ChainMM, chainmm
from streamplace.papers.families.giph import Giph, giph
from streamplace.papers.hdp import policy as hdp
from streamplace.papers.hdp.model import HdpConfig
from streamplace.papers.hsdag import policy as hsdag
from streamplace.papers.hsdag.model import HsdagConfig

PAPER = next(iter(giph(Giph("multiple_networks", 1), seed=3)))
NAMES = ("diamond", "heterogeneous", "constrained", "disconnected")
SMALL = Problem(fork_join(3), PROBLEMS["heterogeneous"].cluster)
CHAIN = next(iter(chainmm(ChainMM(shards=1, devices=3), seed=0)))
NETS = [CHAIN, PROBLEMS["heterogeneous"]]
"""Problems without rules, the first with operators of several kinds."""
ALL = [PAPER, *(PROBLEMS[name] for name in NAMES)]


def hdp_policy(problems=None, **changes):
    """The RNN placer with parameters large enough to have opinions."""
    config = HdpConfig.model_validate({"width": 8, "embedding": 3, "devices": 24, **changes})
    return _strong(hdp, hdp.traits_of(problems or ALL, config), config)


def hsdag_policy(problems=None, **changes):
    """HSDAG with parameters large enough to have opinions."""
    config = HsdagConfig.model_validate({"width": 8, "devices": 24, **changes})
    return _strong(hsdag, hsdag.traits_of(problems or ALL, config), config)


def paper_options(model, **small):
    """Options of the preset ``paper`` of a model, some of them made small."""
    return {**MODELS[model].presets["paper"].model.model_dump(), **small}


def _strong(model, traits, config):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        policy = model.build(traits, config)
        with torch.no_grad():
            for parameter in policy.module.parameters():
                parameter.mul_(2)
    return policy


def one_hot(value, values):
    """1 at the place of the value, else 0."""
    return [float(value == other) for other in values]


def sent_most(problem, v):
    """Logarithm of the bytes/s on the largest stream that leaves an operator."""
    sent = problem.instance.traffic[problem.instance.source == v]
    return np.log(1 + max(sent, default=0))


def standard(rows, columns):
    """Rows [V, F] of several problems, some columns with mean 0 and deviation 1 over all."""
    every = np.concatenate(rows)
    mean, deviation = np.zeros(every.shape[1]), np.ones(every.shape[1])
    mean[columns], deviation[columns] = (
        every[:, columns].mean(axis=0),
        every[:, columns].std(axis=0),
    )
    return [(np.array(part) - mean) / deviation for part in rows]


def learner_of(policy, **changes):
    """A learner of the shortest pass of one small problem."""
    task = LearningTask((SMALL,), (SMALL,), seed=0, objective="makespan")
    config = policy.module.config.model_copy(update=changes)
    return ConstructiveLearner(task, config, policy, policy.on(task.training))


def assert_training_shortens_passes(one, steps, rate):
    """Samples and the likeliest answer get better within some steps of Adam."""
    rows = np.array([0])
    before, first = one.loss(rows, 0, 0)[1].reward, one.validate()[0]
    with one_thread():
        train(one, steps, rate)
    assert one.loss(rows, steps, steps)[1].reward > before + 0.1
    assert one.validate()[0] >= first


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def linear(layer, x):
    """W x + b of a layer."""
    bias = 0 if layer.bias is None else parameter(layer.bias)
    return parameter(layer.weight) @ x + bias


def parameter(tensor):
    return tensor.detach().double().numpy()


def lstm(gates, cell):
    i, f, o, g = np.split(gates, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell
