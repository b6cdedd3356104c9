"""What every registered model must satisfy: train, stop, go on exactly, and place."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import chain, diamond, fork_join

import streamplace
from streamplace.io.weights import read_tensors, read_weights
from streamplace.learn.learner import Floats, Ints, Learner
from streamplace.learn.packing import gradient_from, packed, packed_gradient, unpacked
from streamplace.learn.parameters import arrays_of, put_arrays
from streamplace.learn.registry import MODELS
from streamplace.learn.shards import Gradient, Shard, gathered, gradient_of, summed
from streamplace.learn.threads import one_thread
from streamplace.learn.watching import Silent
from streamplace.learn.workers import LocalWorkers
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS
from streamplace.training.trained import Trained

GRAPHS = [chain(2), chain(3), chain(5), diamond(), *(fork_join(n) for n in (1, 2, 3, 4))]
RATES = (1e4, 2e4)


class InterruptsEpoch(Silent):
    """Presses Ctrl-C after the first step of an epoch."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch

    def step(self, epoch: int, report: object) -> None:
        """Wait for the epoch."""
        if epoch == self._epoch:
            raise KeyboardInterrupt


def train(name: str, folder: Path, **options: Any) -> Trained:
    """Train for two epochs at two rates."""
    options = {"rates": RATES, "epochs": 2, "objective": objective(name), **options}
    return streamplace.train(name, GRAPHS, folder, **options)


def objective(name: str) -> str:
    """What a model can be trained for."""
    return (*MODELS[name].objectives, "throughput")[0]


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.xdist_group(f"model {name}")) for name in MODELS],
)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A model after two epochs on eight tiny graphs."""
    return train(request.param, tmp_path_factory.mktemp(request.param) / "whole")


def test_a_stopped_run_goes_on_to_the_same_bits(trained: Trained, tmp_path: Path) -> None:
    """Stopped in its second epoch, of steps of two shards."""
    with pytest.raises(KeyboardInterrupt):
        train(trained.model, tmp_path, watcher=InterruptsEpoch(2))
    resumed = train(trained.model, tmp_path, resume=True)
    for mine, whole in zip(resumed.history.epochs, trained.history.epochs, strict=True):
        assert {**asdict(mine), "seconds": 0} == {**asdict(whole), "seconds": 0}
    for name in ("best.safetensors", "last.safetensors"):
        mine, whole = (read_tensors(run.folder / name)[1] for run in (resumed, trained))
        assert mine.keys() == whole.keys()
        assert all(np.array_equal(mine[key], whole[key]) for key in whole)


class Halves:
    """Two learners, each of which computes every other part and tells the other what it learned."""

    def __init__(self, one: Learner, other: Learner) -> None:
        self._pair = one, other

    def gradient(self, shards: Sequence[Shard]) -> Gradient:
        """Sum of what both found."""
        one, other = self._pair
        put_arrays(other.module, arrays_of(one.module), "the other")
        found = [gradient_of(self._pair[i % 2], shard) for i, shard in enumerate(shards)]
        for i, shard in enumerate(shards):
            told = unpacked(packed(self._pair[i % 2].state(shard.rows)))
            self._pair[1 - i % 2].restore(told, shard.rows)
        return summed(gradient_from(packed_gradient(each), "cpu") for each in found)

    def values(self, parts: Sequence[Ints]) -> Floats:
        """Values that both found."""
        one, other = self._pair
        put_arrays(other.module, arrays_of(one.module), "the other")
        return gathered(parts, [self._pair[i % 2].validate(p) for i, p in enumerate(parts)])


class Apart(LocalWorkers):
    """Two learners in place of one."""

    @contextmanager
    def gradient_workers(
        self, learner: Learner, make: Callable[[], Learner], device: str
    ) -> Iterator[Halves]:
        """Make the second."""
        with one_thread():
            yield Halves(learner, make())


def test_learners_apart_come_to_the_same_bits_as_one(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a learner remembers goes with its rows."""
    monkeypatch.setattr("streamplace.api.workers_on", lambda on: nullcontext(Apart()))
    apart = train(trained.model, tmp_path)
    for mine, whole in zip(apart.history.epochs, trained.history.epochs, strict=True):
        assert {**asdict(mine), "seconds": 0} == {**asdict(whole), "seconds": 0}
    mine, whole = (read_tensors(run.folder / "last.safetensors")[1] for run in (apart, trained))
    assert mine.keys() == whole.keys()
    assert all(np.array_equal(mine[key], whole[key]) for key in whole)


def test_weights_place_and_begin_training(trained: Trained, tmp_path: Path) -> None:
    """The placer of the model's name takes the file, and so does ``start``."""
    assert trained.model in PLACERS
    placer = f"{trained.model}:weights={trained.weights}"
    judge = OBJECTIVES[objective(trained.model)]
    result = streamplace.place(fork_join(3), placer=placer, objective=judge.name)
    assert 0 < result.value < float("inf")
    again = train(trained.model, tmp_path, start=trained.weights)
    assert again.history.before == pytest.approx(trained.history.score)
    first, second = (read_weights(run.weights).document["training"] for run in (trained, again))
    assert first["start"] is None
    begun = {**second["start"]}
    assert begun.pop("sha256") == sha256(trained.weights.read_bytes()).hexdigest()
    assert begun == first


def test_training_on_other_data_keeps_the_features_it_began_with(
    trained: Trained, tmp_path: Path
) -> None:
    """Weights mean something for the scale they were trained with alone."""
    again = train(trained.model, tmp_path, rates=(3e3,), epochs=1, start=trained.weights)
    then, now = (read_weights(run.weights).document["features"] for run in (trained, again))
    assert now == then


def test_weights_say_all_that_placing_needs(trained: Trained) -> None:
    """Options that the model accepts, and a mean and deviation for every feature."""
    document = read_weights(trained.weights).document
    json.dumps(document, allow_nan=False)
    MODELS[trained.model].config.model_validate_json(json.dumps(document["config"]))
    assert document["features"]["names"]


def test_models_are_light_until_they_are_trained() -> None:
    """The command line's help reads the registry."""
    code = (
        "import sys; from streamplace.learn.registry import MODELS; assert list(MODELS); "
        "assert not {'torch', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
