"""Small policies that build placements, and problems as they see them."""

import numpy as np
import torch
from adam import train
from problems import PROBLEMS, fork_join

from streamplace.learn.constructive.reinforce import ConstructiveLearner
from streamplace.learn.registry import LearningTask
from streamplace.learn.shards import one_thread
from streamplace.model import Problem
from streamplace.papers.families.giph import Giph, giph
from streamplace.papers.hdp import HdpConfig
from streamplace.papers.hdp import policy as hdp
from streamplace.papers.hsdag import HsdagConfig
from streamplace.papers.hsdag import policy as hsdag

PAPER = next(iter(giph(Giph("multiple_networks", 1), seed=3)))
NAMES = ("diamond", "heterogeneous", "constrained", "disconnected")
SMALL = Problem(fork_join(3), PROBLEMS["heterogeneous"].cluster)
ALL = [PAPER, *(PROBLEMS[name] for name in NAMES)]


def hdp_policy(problems=None, **changes):
    """The RNN placer with parameters large enough to have opinions."""
    config = HdpConfig.model_validate({"width": 8, "embedding": 3, "devices": 24, **changes})
    return _strong(hdp, hdp.traits_of(problems or ALL, config), config)


def hsdag_policy(problems=None, **changes):
    """HSDAG with parameters large enough to have opinions."""
    config = HsdagConfig.model_validate({"width": 8, "devices": 24, **changes})
    return _strong(hsdag, hsdag.traits_of(problems or ALL, config), config)


def _strong(model, traits, config):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        policy = model.build(traits, config)
        with torch.no_grad():
            for parameter in policy.module.parameters():
                parameter.mul_(2)
    return policy


def learner_of(policy, **changes):
    """A learner of the shortest pass of one small problem."""
    task = LearningTask((SMALL,), (SMALL,), seed=0, objective="makespan")
    return ConstructiveLearner(task, policy.module.config.model_copy(update=changes), policy)


def assert_training_shortens_passes(one, steps, rate):
    """Samples and the likeliest answer get better within some steps of Adam."""
    rows = np.array([0])
    before, first = one.loss(rows, 0, 0)[1].reward, one.validate()[0]
    with one_thread():
        train(one, steps, rate)
    assert one.loss(rows, steps, steps)[1].reward > before + 0.1
    assert one.validate()[0] >= first
