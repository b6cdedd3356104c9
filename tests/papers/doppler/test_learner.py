"""How DopplerModule learns, in all three stages."""

from typing import Any

import numpy as np
import pytest
import torch
from adam import rows, taught

from streamplace.learn.registry import MODELS, LearningTask
from streamplace.objectives.registry import OBJECTIVES, named_objective
from streamplace.papers.doppler.model import DopplerConfig
from streamplace.papers.doppler.network import FEATURES
from streamplace.papers.doppler.policy import DopplerLearner
from streamplace.papers.families.chainmm import ChainMM, chainmm
from streamplace.papers.families.giph import Giph, giph

pytestmark = pytest.mark.slow

PAPER = tuple(giph(Giph("multiple_networks", 2), seed=3))
CHAIN = next(iter(chainmm(ChainMM(shards=1, devices=3), seed=0)))
LINKS = "makespan:preset=doppler"
SMALL: dict[str, Any] = {"width": 8, "hidden": 8, "rounds": 2, "steps": 1}


def learner(problems=PAPER, task=None, **options):
    """Doppler on problems, some of them to judge by."""
    facts = {"objective": LINKS, **(task or {})}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        return DopplerLearner(
            LearningTask(problems, problems[:1], seed=0, **facts),
            DopplerConfig(**{**SMALL, **options}),
        )


def test_imitation_leads_to_what_the_critical_path_would_do():
    found = taught(learner((CHAIN,)), 40, 0.01, norm=5.0)
    losses = [loss for loss, _ in found]
    assert np.mean(losses[-5:]) < 0.75 * np.mean(losses[:5])


def test_trial_leads_to_shorter_passes():
    found = taught(learner((CHAIN,), imitation=0), 50, 0.01, norm=5.0)
    rewards = [report.reward for _, report in found]
    assert np.mean(rewards[-10:]) > np.mean(rewards[:10]) + 0.02


def test_the_loss_weighs_choices_by_their_placements_cost(monkeypatch):
    """Equation 3, of the softmax of choices that are greedy but for a share of random ones.

    R is the cost less the mean of those before, in multiples of the least makespan.
    """
    from streamplace.papers.doppler import policy as module

    calls: list[Any] = []
    choices = module.choices

    def kept(*arguments):
        calls.append(arguments)
        return choices(*arguments)

    monkeypatch.setattr(module, "choices", kept)
    paper = MODELS["doppler"].presets["paper"].model
    pupil = learner(**{**paper.model_dump(), **SMALL, "imitation": 0})
    bound = OBJECTIVES["makespan"].bound(PAPER[1])
    costs = []
    for step in range(3):
        loss, report = pupil.loss(rows(1), 0, step)
        outputs, record, config, _ = calls[-1]
        place = np.empty((1, PAPER[1].n_operators), np.int32)
        place[0, record.done_task[0, :, 0]] = record.done_device[0, :, 0]
        costs.append(named_objective(LINKS).values(PAPER[1], place)[0] / bound)
        gain = np.mean(costs[:-1]) - costs[-1] if step else 0.0
        found = choices(outputs, record, config, 0.0)
        wanted = gain * found.log_p[0].detach().numpy().sum()
        wanted += paper.entropy * float(found.entropy.detach().sum())
        assert float(loss.detach()) == pytest.approx(-wanted, rel=1e-4)
        assert report.reward == pytest.approx(1 / costs[-1])


def test_equal_costs_teach_nothing():
    pupil = learner(
        task={"reward": lambda problem, places: np.ones(len(places))}, imitation=0, entropy=0.0
    )
    assert float(pupil.loss(rows(0), 0, 1)[0].detach()) == pytest.approx(0.0, abs=1e-6)


def test_measured_passes_are_what_is_learned_from():
    """Stage III: whoever measures is asked once for every episode, and its seconds count."""
    measured = []

    def measure(problem, places):
        measured.append((problem, places))
        return 2 * OBJECTIVES["makespan"].bound(problem) * np.ones(len(places))

    pupil = learner(task={"reward": measure, "features": {"names": FEATURES}})
    _, report = pupil.loss(rows(1), 0, 0)
    assert [(problem, len(places)) for problem, places in measured] == [(PAPER[1], 8)]
    assert report.reward == pytest.approx(0.5)


def test_who_begins_with_weights_has_imitated_enough():
    """The first epoch of a run that goes on from weights is trial."""
    fresh, begun = learner(), learner(task={"features": {"names": FEATURES}})
    fresh.module.load_state_dict(begun.module.state_dict())
    trial = learner(imitation=0)
    trial.module.load_state_dict(begun.module.state_dict())
    losses = [float(pupil.loss(rows(0), 0, 3)[0].detach()) for pupil in (begun, trial, fresh)]
    assert losses[0] == losses[1] != losses[2]


def test_exploration_falls_in_a_line_in_either_stage():
    pupil = learner(imitation=4, straying=1.0, exploration=0.2, exploring=10)
    found = [pupil._exploration(epoch) for epoch in (0, 1, 4, 9, 14, 99)]
    assert found == pytest.approx([1.0, 0.75, 0.2, 0.1, 0.0, 0.0])


def test_every_problem_has_a_row_for_each_of_its_steps():
    pupil = learner((CHAIN, *PAPER[:2]), steps=2)
    assert pupil.n_problems == 6
    assert torch.isfinite(pupil.loss(rows(0, 4), 50, 0)[0])
