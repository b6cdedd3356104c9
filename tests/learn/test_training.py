import json
import os
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pytest
import torch
from fuzz.models import checkpoints, resumed
from histories import InterruptsEpoch, assert_same, history
from problems import chain
from refusals import refusal_of

import streamplace
from streamplace.errors import FormatError, SettingError
from streamplace.evaluate.trained_on import CHOSEN_BY
from streamplace.io.weights import MODULE, read_tensors, read_weights, write_tensors
from streamplace.learn.checkpoint import NAME
from streamplace.learn.shards import batches, dealt, seed_of
from streamplace.learn.trained import Trained

Train = Callable[..., Trained]


@pytest.fixture
def train(tasks, graphs, tmp_path):
    """Train a stub on the graphs into a folder of this name, with options of a TOML text."""

    def call(folder, model="stub", toml="", **options):
        if toml:
            options["config"] = tmp_path / "options.toml"
            options["config"].write_text(toml)
        return streamplace.train(model, graphs, tmp_path / folder, **options)

    return call


def test_training_learns(train):
    """Held-out problems are answered better than before, and the best weights are those kept."""
    trained = train("run")
    history = trained.history
    assert history.score > 0.95 > history.epochs[0].score
    assert history.epochs[history.best - 1].validation == trained.values.mean()
    assert read_weights(trained.weights).document["training"]["validation"] == history.score


def test_a_checkpoint_is_a_file_of_the_last_weights(train, tmp_path):
    """Those that one more epoch starts from, with the score of that epoch."""
    trained = train("run", toml="[training]\nlearning_rate = 2.0\n")
    history = trained.history
    assert history.best < len(history.epochs)  # so that the best ones are others
    path = tmp_path / "run" / NAME
    last, best = read_weights(path, model="stub"), read_weights(trained.weights)
    steps = {"steps": 18, "evaluations": 54, "seconds": 0.0, CHOSEN_BY: ""}
    whole = steps | {"epochs": 6, "validation": history.epochs[-1].score}
    assert last.document["training"] | steps == best.document["training"] | whole
    assert last.document["training"]["evaluations"] == 54
    assert last.tensors.keys() == best.tensors.keys()
    assert (last.tensors["weight"] == read_tensors(path)[1]["module/weight"]).all()
    assert (last.tensors["weight"] != best.tensors["weight"]).any()


def test_the_folder_holds_what_people_and_machines_want(train, tmp_path):
    history = train("run").history
    files = {p.relative_to(tmp_path / "run").as_posix() for p in (tmp_path / "run").rglob("*")}
    assert {"best.safetensors", "last.safetensors", "history.jsonl", "curve.png"} <= files
    assert not any(".streamplace-" in name for name in files)
    rows = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").open()]
    assert rows == [asdict(epoch) for epoch in history.epochs]


def test_a_command_may_name_files_whose_names_are_no_text(train):
    """Python has lone surrogates for such bytes, which no file of weights can have."""
    weights = read_weights(train("run", epochs=1, command="train --out \udcff").weights)
    assert weights.document["training"]["command"] == r"train --out \udcff"


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_stopped_run_goes_on_as_if_it_had_never_stopped(train, epoch):
    """Same history and same bits, in whatever epoch it was stopped."""
    whole = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("stopped", watcher=InterruptsEpoch(epoch))
    resumed = train("stopped", resume=True)
    assert_same(resumed.folder, whole.folder, "best.safetensors", "last.safetensors")


def test_one_thread_gives_what_two_give(train, monkeypatch):
    before = torch.get_num_threads()
    results = []
    for cores in ({0}, {0, 1}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores)
        results.append(train(f"on{len(cores)}", seed=5))
    one, two = results
    assert_same(one.folder, two.folder, "best.safetensors")
    assert torch.get_num_threads() == before


def test_another_seed_is_another_run(train):
    assert history(train("a").folder) != history(train("b", seed=1).folder)


def test_a_seed_may_be_any_whole_number(train, tasks):
    """Torch's seeds have 64 bits."""
    assert train("run", seed=2**64 + 3, epochs=1).seed == 2**64 + 3
    assert tasks[-1].seed == 3


def test_patience_ends_a_run_that_no_longer_improves(train):
    """So many epochs after the best one; resuming does not revive it."""
    patient = "[training]\npatience = 3\nepochs = 100\n"
    trained = train("run", toml=patient)
    assert len(trained.history.epochs) == trained.history.best + 3 < 100
    again = train("run", toml=patient, resume=True)
    assert len(again.history.epochs) == len(trained.history.epochs)


def test_a_gradient_that_is_no_number_ends_training(train):
    with pytest.raises(SettingError, match=r"epoch 1.*learning_rate"):
        train("run", toml="[model]\nnoise = 1e30\n")


@pytest.mark.parametrize("decay", ["cosine", "linear"])
def test_the_learning_rate_falls_along_half_a_cosine_or_a_line(train, decay):
    epochs = train("run", toml=f"[training]\ndecay = '{decay}'\n").history.epochs
    rates = [epoch.learning_rate for epoch in epochs]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] < 0.2
    assert rates[-1] == pytest.approx(0.02)
    assert (np.ptp(np.diff(rates)) == pytest.approx(0)) == (decay == "linear")


def test_supervised_models_get_solutions(train, tasks):
    train("run", "pupil", rate=(5e3, 2e4), epochs=1)
    (task,) = tasks
    assert len(task.training) == len(task.targets) == 18
    for problem, target in zip(task.training, task.targets, strict=True):
        assert target is not None
        assert problem.legal(target)[0]


def test_results_are_of_the_rates_asked_for(tasks, tmp_path):
    """A source of 7 tuples/s, scaled to 15,000, has 14,999.999999999998."""
    graphs = [chain(n, rate=rate) for n in (2, 3, 4, 5) for rate in (7.0, 1e4)]
    rates = (1.5e4, 2e4)
    trained = streamplace.train("stub", graphs, tmp_path / "run", rate=rates, epochs=1)
    assert [(rate, held.problems) for rate, held in trained.by_rate().items()] == [
        (1.5e4, 2),
        (2e4, 2),
    ]


def test_without_graphs_to_spare_the_reward_judges(train):
    trained = train("run", toml="[training]\nvalidation = 0\n")
    assert trained.history.epochs[-1].validation is None
    assert trained.history.score == max(epoch.reward for epoch in trained.history.epochs)


def test_resuming_demands_the_same_settings(train):
    train("run")
    with pytest.raises(SettingError, match=r"training\.epochs 6, not 5"):
        train("run", resume=True, epochs=5)


def test_a_run_that_has_ended_goes_on_with_more_epochs(train):
    before = train("run").history.epochs
    longer = train("run", resume=True, epochs=8).history.epochs
    assert len(longer) == 8
    assert longer[: len(before)] == before


def test_batches_hold_every_problem_once_and_like_sizes_together():
    sizes = np.array([5, 90, 7, 40, 6, 41, 91, 8])
    found = batches(sizes, 3, seed=0, epoch=0)
    assert sorted(np.concatenate(found)) == list(range(8))
    assert sorted(sorted(sizes[rows].tolist()) for rows in found) == [
        [5, 6, 7],
        [8, 40, 41],
        [90, 91],
    ]
    orders = {str(batches(sizes, 3, seed=0, epoch=e)) for e in range(8)}
    assert len(orders) > 1


def test_a_batch_of_one_is_one_shard():
    assert [part.tolist() for part in dealt(np.array([4]), 2)] == [[4]]
    assert [part.tolist() for part in dealt(np.arange(5), 2)] == [[0, 2, 4], [1, 3]]


def test_seeds_differ_by_place():
    places = [(e, s, part) for e in range(4) for s in range(4) for part in range(2)]
    assert len({seed_of(seed, *place) for seed in range(3) for place in places}) == 3 * 32


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d["history"].update(best=9),
        lambda d, t: next(t[name] for name in t if name.startswith(MODULE)).fill(0.5),
        lambda d, t: t.update({"learner/memory.rewards": np.zeros(2)}),
        lambda d, t: d.update(version=2),
    ],
    ids=["history", "parameter", "memory", "version"],
)
def test_a_damaged_checkpoint_is_refused(change, tmp_path):
    path = tmp_path / NAME
    path.write_bytes(checkpoints("dream")[1])
    document, tensors = read_tensors(path)
    change(document, tensors)
    write_tensors(path, document, tensors)
    refusal_of(path, resumed, "dream", path, kind=FormatError)
    refusal_of(path, read_weights, path, kind=FormatError)
