"""The learner of policies that improve placements."""

from typing import Any

import numpy as np
import pytest
import torch
from adam import rows, taught
from problems import PROBLEMS, many_sources

from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.reward import reward_of, with_costs
from streamplace.model import Cluster, Problem
from streamplace.model.problem import random_placements
from streamplace.model.random_numbers import generator
from streamplace.objectives.registry import OBJECTIVES
from streamplace.papers.families.giph import Giph, giph
from streamplace.papers.giph.model import GiphConfig
from streamplace.papers.giph.policy import GiphPolicy
from streamplace.papers.improving.model import ImprovingConfig
from streamplace.papers.improving.reinforce import ImprovingLearner

pytestmark = pytest.mark.slow

PAPER = tuple(giph(Giph("multiple_networks", 2), seed=3))
FAIR = Problem(many_sources(), Cluster.uniform(3))


def learner(objective="makespan", problems=PAPER, **options):
    """GiPH on problems, some of them to judge by."""
    task = LearningTask(problems, problems[:1], seed=0, objective=objective)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        config = GiphConfig(**options)
        return ImprovingLearner(task, config, GiphPolicy(config))


@pytest.fixture
def walks(monkeypatch):
    """Placements of every walk of a learner of one episode, log-probabilities and entropies."""
    kept: list[Any] = []
    likelihood, episodes = GiphPolicy.likelihood, GiphPolicy.episodes

    def starting(self, problems, places):
        kept.append([places[0]])
        return episodes(self, problems, places)

    def keeping(self, batch, steps):
        kept[-1].extend(step.place[0].numpy() for step in steps)
        found = likelihood(self, batch, steps)
        kept[-1] = (np.array(kept[-1]), *(part[:, 0].detach().numpy() for part in found))
        return found

    monkeypatch.setattr(GiphPolicy, "episodes", starting)
    monkeypatch.setattr(GiphPolicy, "likelihood", keeping)
    return kept


def test_the_loss_raises_choices_by_later_gains(walks):
    """Appendix B.7 of GiPH: Σ γ^t ∇ log π (Σ γ^(t' - t) r_t' - b_t), b_t the mean reward before t.

    Costs are multiples of the least makespan.
    """
    paper = MODELS["giph"].presets["paper"].model
    pupil = learner(**paper.model_dump())
    loss, report = pupil.loss(rows(1), 0, 3)
    ((places, log_ps, _),) = walks
    assert (places[:1] == random_placements(PAPER[1], 1, generator(3, 1))).all()
    bound = OBJECTIVES["makespan"].bound(PAPER[1])
    costs = OBJECTIVES["makespan"].values(PAPER[1], places) / bound
    drops = costs[:-1] - costs[1:]
    wanted = 0.0
    for t, log_p in enumerate(log_ps):
        later = sum(paper.discount**k * drop for k, drop in enumerate(drops[t:]))
        wanted -= paper.discount**t * log_p * (later - (drops[:t].mean() if t else 0.0))
    assert float(loss.detach()) == pytest.approx(wanted, rel=1e-4)
    assert report.reward == pytest.approx(1 / costs.min())


def test_walks_may_begin_with_the_best_and_compare(walks):
    """First with everything on one device; costs are logarithms, as in the study of orders."""
    paper = MODELS["placeto"].presets["paper"].model
    pupil = learner(**paper.model_dump(include=set(ImprovingConfig.model_fields)))
    losses = [float(pupil.loss(rows(1), 0, seed)[0].detach()) for seed in (3, 4)]
    met = [places for places, _, _ in walks]
    values = [OBJECTIVES["makespan"].values(PAPER[1], places) for places in met]
    together = PAPER[1].repaired(np.zeros((1, PAPER[1].n_operators), np.int32))[0]
    assert met[0][0].tolist() == together.tolist()
    assert met[1][0].tolist() == met[0][values[0].argmin()].tolist()
    returns = [np.log(v[:-1] / v[-1]) for v in values]
    bonus = [paper.entropy * entropy.sum() for _, _, entropy in walks]
    assert losses[0] == pytest.approx(-bonus[0], abs=1e-4)
    gained = (walks[1][1] * (returns[1] - returns[0]) / 2).sum()
    assert losses[1] == pytest.approx(-gained - bonus[1], rel=1e-3)


@pytest.mark.parametrize("comparison", ["others", "running-mean", "earlier"])
def test_problems_of_unlike_sizes_are_learned_from_as_if_alone(comparison):
    """Each draws by the seed and its own row, and has no steps after its last."""
    options = {"comparison": comparison, "episodes": 2, "entropy": 0.5}
    several = [PROBLEMS["diamond"], PAPER[0], PAPER[1]]
    together, report = learner(problems=several, **options).loss(rows(0, 1, 2), 0, 5)
    alone = [learner(problems=several, **options).loss(rows(row), 0, 5) for row in range(3)]
    wanted = sum(loss.detach().item() for loss, _ in alone)
    assert together.detach().item() == pytest.approx(wanted, rel=1e-4)
    for name in ("reward", "best", "entropy"):
        parts = sum(getattr(one, name) for _, one in alone)
        assert getattr(report, name) == pytest.approx(parts, rel=1e-4)


def test_equal_walks_teach_nothing_where_they_are_compared_with_each_other():
    pupil = learner(problems=(PROBLEMS["long chain on one device"],), episodes=3)
    loss, report = pupil.loss(rows(0), 0, 1)
    assert float(loss.detach()) == pytest.approx(0, abs=1e-6)
    assert report.entropy == pytest.approx(np.log(9), rel=1e-3)  # nine nodes, none makes a change


def test_an_entropy_bonus_lowers_the_loss_by_the_entropy_of_the_choices():
    plain, bonus = (learner(entropy=weight).loss(rows(0), 0, 5) for weight in (0.0, 0.5))
    lower = float((plain[0] - bonus[0]).detach())
    assert lower == pytest.approx(0.5 * 2 * PAPER[0].n_operators * plain[1].entropy, rel=1e-3)


def test_a_few_steps_of_training_lead_to_better_placements():
    pupil = learner(problems=PAPER[:1], episodes=4)
    rewards = [report.reward for _, report in taught(pupil, 25, 0.02)]
    assert np.mean(rewards[-5:]) > np.mean(rewards[:5]) + 0.05


@pytest.mark.parametrize("objective", ["throughput", "makespan", "devices"])
def test_costs_fall_where_rewards_rise(objective):
    """The one is squeezed into 0…1, the other is in proportion to the value."""
    places = np.random.default_rng(0).integers(0, 3, (20, FAIR.n_operators)).astype(np.int32)
    rewards, costs = with_costs(reward_of(objective, "steady"))(FAIR, places)
    order = np.argsort(costs, kind="stable")
    assert (np.diff(rewards[order]) <= 1e-9).all()
    values = OBJECTIVES[objective].values(FAIR, places)
    assert np.ptp(np.abs(costs) / values) == pytest.approx(0, abs=1e-9)
