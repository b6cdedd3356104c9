import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from adam import train
from pilots import torn
from problems import PROBLEMS, chain, constrained, diamond
from streamsim import throughput

from streamplace.families.branched import Branched, branched
from streamplace.io.weights import write_weights
from streamplace.learn.config import Preset, TrainingConfig
from streamplace.learn.models.pilot.learner import elsewhere
from streamplace.learn.models.pilot.model import ROLLOUTS, SWEEPS, PilotConfig
from streamplace.learn.models.pilot.placing import FEATURES, trained
from streamplace.learn.parameters import arrays_of
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.training_loop import built
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]
SMALL = {"width": 16, "rounds": 2}
ALL = tuple(PROBLEMS.values())


def learner(task, **options):
    """Return a small pilot that is to learn a task."""
    preset = Preset(PilotConfig(**{**SMALL, **options}), TrainingConfig())
    return built(MODELS["pilot"], task, preset)


def graphs(seed):
    """Branched graphs of 8 and 11 operators that fill two and three devices."""
    small, large = Branched(2, 3, 2, copies=12), Branched(3, 3, 3, copies=12)
    return [*branched(small, seed), *branched(large, seed)]


def task(seed=0, *, taught=False):
    """Sixteen problems to train on, eight to judge by."""
    problems = [Problem(graph, Cluster.uniform(3)) for graph in graphs(seed)]
    training = tuple(problems[:8] + problems[12:20])
    targets = tuple(good(problem) if taught else None for problem in training)
    validation = tuple(problems[8:12] + problems[20:])
    return LearningTask(training, validation, seed, targets=targets)


def good(problem):
    """Return a placement to learn from."""
    budget = Budget(None, 500)
    return PLACERS["anneal"].place(problem, THROUGHPUT, budget=budget).placement.index


def chance(problems):
    """Mean throughput of random placements."""
    rng = np.random.default_rng(0)
    return np.mean(
        [
            THROUGHPUT.evaluate(p, rng.integers(p.n_devices, size=(100, p.n_operators))).mean()
            for p in problems
        ]
    )


def loss_of(pupil, rows=range(4), epoch=10, seed=5):
    """Loss and report of some rows."""
    loss, report = pupil.loss(np.array(rows), epoch, seed)
    return float(loss.detach()), report


@pytest.mark.parametrize(
    ("seed", "taught"), [(0, False), pytest.param(1, True, marks=pytest.mark.slow)]
)
def test_a_short_training_helps(seed, taught):
    """Held-out graphs are placed far better than before, and than by chance.

    A report tells sums over its problems; the best known is never forgotten.
    """
    work = task(seed, taught=taught)
    pupil = learner(work)
    before, rows = pupil.validate().mean(), range(pupil.n_problems)
    _, first = loss_of(pupil, rows)
    train(pupil, 20)
    _, last = loss_of(pupil, rows)
    assert first.problems == last.problems == pupil.n_problems
    assert first.reward <= first.best <= last.best <= pupil.n_problems
    assert last.entropy < first.entropy
    after = pupil.validate().mean()
    assert after > before + 0.05
    assert after > chance(work.validation) + 0.15
    assert after > 0.75


def test_rewards_are_the_policys_own_while_it_imitates():
    """Not those of what it imitates, else no later epoch could be better where none is held out."""
    work = task(taught=True)
    pupil = learner(work, warm_up=99)
    _, before = loss_of(pupil, epoch=0)
    train(pupil, 20)
    _, after = loss_of(pupil, epoch=0)
    assert before.reward + 0.1 < after.reward < after.best


def test_targets_are_the_best_known_from_the_start():
    work = task(taught=True)
    rewards = [
        THROUGHPUT.evaluate(problem, target[None])[0]
        for problem, target in zip(work.training, work.targets, strict=True)
    ]
    _, report = loss_of(learner(work, warm_up=1), epoch=0)
    assert report.best == pytest.approx(sum(rewards[:4]))


def test_while_warming_up_the_loss_of_rows_is_the_sum_of_their_losses():
    """And their reports; nothing is drawn then, so the seed plays no part."""
    chains = tuple(Problem(chain(n, ipt=2e5), Cluster.uniform(3)) for n in (2, 12))
    targets = tuple(good(problem) for problem in chains)
    for work in (task(taught=True), LearningTask(chains, (), 0, targets=targets)):
        pupil, rows = learner(work, warm_up=1), range(min(12, len(work.training)))
        alone = [loss_of(pupil, [row], epoch=0, seed=row) for row in rows]
        loss, report = loss_of(pupil, rows, epoch=0)
        assert loss == pytest.approx(sum(value for value, _ in alone), rel=1e-4)
        for quantity, whole in asdict(report).items():
            assert whole == pytest.approx(sum(asdict(own)[quantity] for _, own in alone), rel=1e-5)


def test_what_happens_elsewhere_is_not_remembered_at_home():
    """A placement on a random cluster says nothing about this one."""
    pupil = learner(task(), variety=1.0)
    loss, report = loss_of(pupil)
    assert np.isfinite(loss)
    assert 0 < report.reward <= 4
    assert not pupil.state()["best"].any()
    assert not len(pupil.state()["known"])


@pytest.mark.parametrize("reward", ["steady", pytest.param("engine", marks=pytest.mark.slow)])
def test_rewards_come_from_either_simulation(reward):
    problems = (Problem(diamond(), Cluster.uniform(2)), Problem(chain(3), Cluster.uniform(3)))
    pupil = learner(LearningTask(problems, problems, 0, reward=reward), variety=0.0)
    loss, report = loss_of(pupil, [0, 1])
    assert np.isfinite(loss)
    assert 0 < report.reward <= report.best <= 2 + 1e-9
    assert ((pupil.validate() > 0) & (pupil.validate() <= 1 + 1e-9)).all()


@pytest.mark.parametrize("taught", [False, True])
def test_problems_of_every_kind_are_learned_from_in_one_batch(taught):
    """Rules, one device, one operator, several sources: gradients are numbers."""
    targets = tuple(good(problem) for problem in ALL) if taught else ()
    pupil = learner(LearningTask(ALL, ALL, 0, targets=targets), variety=0.0)
    for epoch in (0, 10):
        loss, report = pupil.loss(np.arange(len(ALL)), epoch, 0)
        loss.backward()
        assert report.problems == len(ALL)
        assert all(torch.isfinite(p.grad).all() for p in pupil.module.parameters())
    values = pupil.validate()
    assert ((values > 0) & (values <= 1)).all()


@pytest.mark.parametrize("problem", [constrained(), torn()])
def test_what_is_remembered_honours_the_rules(problem):
    pupil = learner(LearningTask((problem,), (), 0), variety=0.0, samples=4)
    for seed in range(10):
        loss_of(pupil, [0], seed=seed)
        placement = pupil.state()["known"][problem.rules.unit]
        assert problem.legal(placement).all()
        assert THROUGHPUT.evaluate(problem, placement[None])[0] == pupil.state()["best"][0]


def test_rollouts_that_all_end_in_a_trap_teach_nothing():
    """Rivals may leave no device to the last of them; training goes on."""
    for seed in range(12):
        pupil = learner(LearningTask((torn(),), (), seed), variety=0.0, samples=1)
        loss, report = loss_of(pupil, [0], seed=seed)
        assert np.isfinite(loss)
        assert 0 <= report.reward <= 1
        assert np.isfinite(report.entropy)


def test_what_is_written_places_as_the_learner_validates(tmp_path):
    work = task()
    pupil = learner(work)
    train(pupil, 2)
    spec = json.loads(json.dumps(pupil.spec(), allow_nan=False))
    assert spec["features"]["names"] == FEATURES
    assert PilotConfig(**spec["config"]) == PilotConfig(**SMALL)
    path = tmp_path / "w.safetensors"
    write_weights(path, {"model": "pilot", "training": {}, **spec}, arrays_of(pupil.module))
    rows = [trained(path).greedy(problem, ROLLOUTS, SWEEPS) for problem in work.validation]
    values = [THROUGHPUT.evaluate(*pair).max() for pair in zip(work.validation, rows, strict=True)]
    assert values == pytest.approx(pupil.validate())


def test_clusters_elsewhere_are_of_many_kinds():
    """Two to five devices, even or not, at most four times as fast or as slow as usual."""
    rng = np.random.default_rng(0)
    found = [elsewhere(PROBLEMS["chain"], rng).cluster for _ in range(60)]
    assert {cluster.n_devices for cluster in found} == {2, 3, 4, 5}
    kinds = [len(set(cluster.interchangeable.tolist())) for cluster in found]
    assert 10 < sum(kind == 1 for kind in kinds) < 50
    for cluster in found:
        mips = cluster.devices.mips
        wires = cluster.bandwidth_bps[~np.eye(cluster.n_devices, dtype=bool)]
        assert 2500 / 4.001 < mips.min() <= mips.max() < 2500 * 4.001
        assert 1e9 / 4.001 < wires.min() <= wires.max() < 1e9 * 4.001
    assert len({cluster.devices.mips[0] for cluster in found}) > 50


@pytest.mark.parametrize("name", PROBLEMS)
def test_any_problem_can_be_elsewhere(name):
    """What flows is the same, nothing is forbidden, and placements have a value.

    Constant loads may fill slower devices, so that nothing flows there.
    """
    rng = np.random.default_rng(1)
    for _ in range(5):
        problem = elsewhere(PROBLEMS[name], rng)
        anywhere = rng.integers(problem.n_devices, size=(3, problem.n_operators))
        assert np.array_equal(problem.instance.traffic, PROBLEMS[name].instance.traffic)
        assert problem.legal(anywhere).all()
        assert len(problem.instance.constant) or (throughput(problem.instance, anywhere) > 0).all()


def test_results_do_not_depend_on_threads_or_on_the_other_problems():
    """What is drawn for a problem depends on its row and the seed of the step."""
    rows, single, three = np.arange(8), learner(task()), learner(replace(task(), threads=3))
    loss, together = loss_of(single, rows)
    assert (loss, together) == loss_of(three, rows)
    assert single.validate().tobytes() == three.validate().tobytes()
    assert all(np.array_equal(array, three.state()[key]) for key, array in single.state().items())
    alone = learner(task())
    apart = [loss_of(alone, rows[at::2])[1].reward for at in (0, 1)]
    assert together.reward == pytest.approx(sum(apart))
