"""What every registered model must satisfy: train, stop, go on exactly, and place."""

from contextlib import contextmanager
from hashlib import sha256

import numpy as np
import pytest
import torch
from histories import InterruptsEpoch, assert_same
from placer_cases import OF_PAPERS, SLOW, case
from problems import PROBLEMS, chain, diamond, fork_join, heterogeneous, joined
from rooms import needs_papers

import streamplace
from streamplace.io.weights import read_weights
from streamplace.learn.checkpoint import NAME
from streamplace.learn.parameters import arrays_of, put_arrays
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.shards import gathered, gradient_of, one_thread, summed
from streamplace.learn.training_loop import built
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS

GRAPHS = [chain(2), chain(5), diamond(), fork_join(3)]
RATES = (1e4, 2e4)
DEAR = ("giph", "giph-task-eft", "placeto")
"""Models that improve placements move by move, and train on half of the problems."""


def train(name, folder, **options):
    """Train for two epochs at two rates, or at one."""
    rates = RATES[:1] if name in DEAR else RATES
    options = {"rate": rates, "epochs": 2, "objective": objective(name), **options}
    return streamplace.train(name, GRAPHS, folder, **options)


def objective(name):
    """What a model can be trained for."""
    return (*MODELS[name].objectives, "throughput")[0]


GROUPS = {name: pytest.mark.xdist_group(f"model {name}") for name in MODELS}


def of_all(*quick):
    """Test all models, and these ones in the quick tests too."""
    return pytest.mark.parametrize(
        "trained",
        [
            pytest.param(name, marks=[GROUPS[name], *([] if name in quick else [SLOW])])
            for name in MODELS
        ],
        indirect=True,
    )


of_every_kind = of_all("pilot")
with_features = of_all("dream")


EVERY = [
    pytest.param(name, marks=[GROUPS[name], *([SLOW] if name in OF_PAPERS else [])])
    for name in MODELS
]


@pytest.fixture(scope="module", params=EVERY)
def trained(request, tmp_path_factory):
    """A model after two epochs on four tiny graphs."""
    return train(request.param, tmp_path_factory.mktemp(request.param) / "whole")


@of_every_kind
def test_a_stopped_run_goes_on_to_the_same_bits(trained, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(trained.model, tmp_path, watcher=InterruptsEpoch(2))
    resumed = train(trained.model, tmp_path, resume=True)
    assert_same(resumed.folder, trained.folder, "best.safetensors", "last.safetensors")


class Halves:
    """Two learners, each of which computes every other part and tells the other what it learned."""

    def __init__(self, one, other):
        self._pair = (one, other)

    def gradient(self, shards):
        """Sum of what both found."""
        one, other = self._pair
        put_arrays(other.module, arrays_of(one.module), "the other")
        found = [gradient_of(self._pair[i % 2], shard) for i, shard in enumerate(shards)]
        for i, shard in enumerate(shards):
            told = {
                name: array.copy() for name, array in self._pair[i % 2].state(shard.rows).items()
            }
            self._pair[1 - i % 2].restore(told, shard.rows)
        return summed(found)

    def values(self, parts):
        """Values that both found."""
        one, other = self._pair
        put_arrays(other.module, arrays_of(one.module), "the other")
        return gathered(parts, [self._pair[i % 2].validate(p) for i, p in enumerate(parts)])


@contextmanager
def apart(request, learner, make):
    """Two learners in place of one."""
    with one_thread():
        yield Halves(learner, make())


@of_every_kind
def test_learners_apart_come_to_the_same_bits_as_one(trained, tmp_path, monkeypatch):
    monkeypatch.setattr("streamplace.training.run.gradient_workers", apart)
    assert_same(train(trained.model, tmp_path).folder, trained.folder, "last.safetensors")


def test_weights_place_and_begin_training(trained, tmp_path):
    """The placer of the model's name takes both files, and ``start`` the best one."""
    assert trained.model in PLACERS
    judge = OBJECTIVES[objective(trained.model)]
    for file in (trained.weights, trained.folder / NAME):
        placer = f"{trained.model}:weights={file}"
        result = streamplace.place(fork_join(3), placer=placer, objective=judge.name)
        assert 0 < result.value < float("inf")
    again = train(trained.model, tmp_path, epochs=1, start=trained.weights)
    assert again.history.before == pytest.approx(trained.history.score)
    assert again.history.score >= again.history.before
    first, second = (read_weights(run.weights).document["training"] for run in (trained, again))
    assert first["start"] is None
    begun = {**second["start"]}
    assert begun.pop("sha256") == sha256(trained.weights.read_bytes()).hexdigest()
    assert begun == first


@with_features
def test_training_on_other_data_keeps_its_features(trained, tmp_path):
    """Weights mean something for the scale they were trained with alone."""
    again = train(trained.model, tmp_path, rate=(3e3,), epochs=1, start=trained.weights)
    then, now = (read_weights(run.weights).document["features"] for run in (trained, again))
    assert now == then


LEARNED = tuple(Problem(graph, heterogeneous()) for graph in (diamond(), fork_join(3), chain(4)))
"""Problems whose devices differ in speed."""


def learner(name, problems=LEARNED, **facts):
    """A model on problems and placements of them, with parameters from a seed."""
    targets = tuple(np.arange(p.n_operators, dtype=np.int32) % p.n_devices for p in problems)
    usual = {
        "validation": (),
        "objective": objective(name),
        "targets": targets if MODELS[name].supervised else (),
    }
    task = LearningTask(training=tuple(problems), seed=3, **(usual | facts))
    return built(MODELS[name], task, MODELS[name].presets["fast"])


@needs_papers
@pytest.mark.parametrize("objective", ["throughput", "latency", "makespan"])
@pytest.mark.parametrize("name", [case("doppler"), case("giph")])
def test_rewards_are_shares_whatever_is_measured(name, objective):
    """Validation, which is the same every time, gives shares, too."""
    some = (PROBLEMS["many sources"], Problem(joined(), Cluster.uniform(2)))
    with one_thread():
        model = learner(name, some, validation=some[:1], objective=objective)
        loss, report = model.loss(np.arange(2), 100, 0)
        values = [model.validate() for _ in range(2)]
    assert torch.isfinite(loss)
    assert 0 < report.mean.reward <= report.mean.best <= 1
    assert np.array_equal(*values)
    assert ((values[0] > 0) & (values[0] <= 1)).all()


@pytest.mark.parametrize("epoch", [0, 100])
@pytest.mark.parametrize("name", [*map(case, MODELS)])
def test_a_loss_is_a_function_of_its_seed(name, epoch):
    """In every stage of learning, as resuming exactly needs; nothing global is drawn or seeded."""
    rows = np.arange(len(LEARNED))
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    with one_thread():
        losses = [float(learner(name).loss(rows, epoch, seed)[0].detach()) for seed in (7, 7, 8)]
    assert torch.equal(torch_before, torch.get_rng_state())
    assert np.array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002
    assert losses[0] == losses[1]
    if (name, epoch) != ("pilot", 0):  # which begins with imitation, where nothing is drawn
        assert losses[1] != losses[2]


@pytest.mark.parametrize("name", [*map(case, MODELS)])
def test_gradients_reach_every_parameter(name):
    model, rows = learner(name), np.arange(len(LEARNED))
    with one_thread():
        for seed in range(3):
            model.loss(rows, 100, seed)[0].backward()
    for parameter, tensor in model.module.named_parameters():
        assert tensor.grad is not None, parameter
        assert tensor.grad.abs().sum() > 0, parameter


@pytest.mark.parametrize("name", [*map(case, MODELS)])
def test_memories_go_with_their_problems(name):
    rows = np.arange(len(LEARNED))
    first, second = learner(name), learner(name)
    with one_thread():
        first.loss(rows, 100, 0)
        state = first.state()
        second.restore(state)
        assert all(np.array_equal(array, second.state()[key]) for key, array in state.items())
        assert first.loss(rows, 100, 1)[0].item() == second.loss(rows, 100, 1)[0].item()
