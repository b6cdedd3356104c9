import itertools
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import stub_model
from problems import chain
from registered import forgetting
from stub_model import model

from streamplace.api.training import Train
from streamplace.families.branched import Branched, branched
from streamplace.io.graphs import write_graphs
from streamplace.io.weights import read_weights
from streamplace.learn.registry import MODELS
from streamplace.placers.registry import PLACERS, Placer

STUB = ("train", "stub", "--data", "b.jsonl")
SIZE = ("--branches", "2", "--depth", "2", "--devices", "2", "--copies", "12")


def stubborn(problem, objective, *, seed, budget, weights=""):
    """Everything on the first device, once the weights are read."""
    read_weights(Path(weights), model="stub", features=stub_model.FEATURES)
    return problem.placement([0] * problem.n_operators)


@pytest.fixture
def data(run):
    """Twelve graphs in b.jsonl; a model and a placer called stub."""
    assert run("generate", "branched", *SIZE, "-o", "b.jsonl").status == 0
    with forgetting(MODELS, PLACERS):
        MODELS.add("stub", model())
        PLACERS.add("stub", Placer("stub", "Stubborn.", stubborn))
        yield "b.jsonl"


def test_json_says_what_training_came_to(run, data):
    answer = run(*STUB, "--out", "x", "--rate", "10000", "--rate", "20 k/s", "--json")
    document = json.loads(answer.out)
    assert document["epochs"] == 6
    assert set(document["validation"]) == {"10000", "20000"}
    assert document["validation"]["10000"]["problems"] == 2
    assert document["validation"]["10000"]["of_optimum"] is not None
    assert document["weights"] == "x/best.safetensors"
    assert Path("x/curve.png").stat().st_size > 1000
    assert not Path("x/report.html").exists()


def test_people_read_a_line_per_epoch_and_a_summary(run, data):
    """The first in the log, which explains its numbers once and estimates the time that is left."""
    answer = run(*STUB, "--out", "x")
    assert answer.err.count("reward: mean of the sampled placements") == 1
    assert answer.err.count("left\n") == 5
    assert "epoch 6/6: reward 0." in answer.err
    assert "problems held out" in answer.out
    assert "Weights: x/best.safetensors" in answer.out


def test_training_ends_with_what_the_model_answers_without_search(run, data):
    """Beside METIS and auto, on the graphs held out; the folder holds the same numbers."""
    answer = run(*STUB, "--out", "x", "--epochs", "2")
    assert "Mean throughput on 2 graphs held out; greedy: the model without search" in answer.out
    names = ("greedy before", "greedy after", "metis", "auto (1000 evaluations)")
    assert all(f" {name} " in answer.out for name in names)
    document = json.loads(run(*STUB, "--out", "y", "--epochs", "2", "--json").out)
    assert json.loads(Path("y/summary.json").read_text()) == document
    answers = document["answers"]
    assert (answers["problems"], answers["of"], answers["held_out"]) == (2, 2, True)
    assert list(answers["placers"]) == ["greedy before", "greedy after", "metis", "auto"]
    assert answers["placers"]["auto"]["mean"] >= answers["placers"]["metis"]["mean"]


def test_weights_tell_how_they_came_about(run, data):
    run(*STUB, "--out", "x", "--rate", "20000", "--epochs", "2", "--seed", "3")
    origin = read_weights(Path("x/best.safetensors")).document["training"]
    assert origin["command"] == (
        "streamplace train stub --data b.jsonl --out x --rate 20000 --epochs 2 --seed 3"
    )
    assert (origin["seed"], origin["rates"], origin["problems"]) == (3, [20000.0], 8)
    assert len(origin["data"]) == 64
    assert 0 < origin["validation"] < 1


@pytest.mark.slow
def test_several_seeds_are_trainings_of_their_own_in_one_run(run, data):
    answer = run(*STUB, "--out", "x", "--epochs", "2", "--seed", "3", "--seed", "4")
    assert "stub, 2 seeds: validation " in answer.out
    assert " (95 % interval of the mean), " in answer.out
    assert "x/seed-3/best.safetensors,stub:weights=x/seed-4/best.safetensors" in answer.out
    run(*STUB, "--out", "alone", "--epochs", "2", "--seed", "4")
    alone, among = (read_weights(Path(name, "best.safetensors")) for name in ("alone", "x/seed-4"))
    assert all(np.array_equal(alone.tensors[key], among.tensors[key]) for key in alone.tensors)
    again = run(*STUB, "--out", "x", "--epochs", "2", "--seed", "3", "--seed", "4", "--resume")
    assert again.status == 0
    assert run(*STUB, "--out", "y", "--seed", "3", "--seed", "3").status == 2
    document = run(*STUB, "--out", "z", "--epochs", "1", "--seed", "0", "--seed", "1", "--json").out
    assert [part["folder"] for part in json.loads(document)] == ["z/seed-0", "z/seed-1"]


def test_every_seed_draws_its_own_graphs(tmp_path):
    """So that one of several trainings is the same as it would be alone."""

    def drawn(*seeds):
        graphs = [chain(n) for n in range(2, 22)]
        asked = {"model": "dream", "graphs": graphs, "out": tmp_path / "run"}
        requests = Train.of({**asked, "limit": 4, "seed": seeds}).requests()
        return [[p.n_operators for p in request.problems] for request in requests]

    zero, one = drawn(0, 1)
    assert len(zero) == len(one) == 4
    assert zero != one
    assert [zero, one] == drawn(0) + drawn(1) == [sorted(zero), sorted(one)]


def test_graphs_meant_for_training_are_the_default(run, data):
    """Ten of the twelve graphs are marked for training; a quarter of them is held out."""
    answer = run(*STUB, "--out", "x", "--json", "--epochs", "1", "--split", "test")
    assert json.loads(answer.out)["validation"]["10000"]["problems"] == 1
    answer = run(*STUB, "--out", "y", "--json", "--epochs", "1")
    assert json.loads(answer.out)["validation"]["10000"]["problems"] == 2


def test_graphs_of_the_split_validation_are_held_out(run, data):
    rows = [json.loads(line) for line in Path(data).read_text().splitlines()]
    named = [row for row in rows if row["attributes"]["split"] == "train"][:3]
    for row in named:
        row["attributes"]["split"] = "validation"
    Path(data).write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("b.manifest.json").unlink()
    for seed in ("0", "1"):
        words = ("--out", f"x{seed}", "--json", "--epochs", "1", "--seed", seed)
        document = json.loads(run(*STUB, *words).out)
        assert document["validation"]["10000"]["problems"] == len(named)
        origin = read_weights(Path(f"x{seed}/best.safetensors")).document["training"]
        assert origin["problems"] == 7


def test_one_graph_alone_is_told_to_leave_none_for_validation(run, data, caplog):
    """It is compared on itself."""
    Path("one.toml").write_text("limit = 1\n")
    answer = run(*STUB, "--out", "x", "--epochs", "1", "--settings", "one.toml")
    assert "on 1 graph of the training, because none is held out" in answer.out
    assert answer.status == 0
    assert "there is only one graph, so none is held out" in caplog.text


@pytest.mark.parametrize(("graphs", "warnings"), [(29, 1), (30, 0)])
def test_a_small_validation_is_warned_of_once(run, data, caplog, graphs, warnings):
    """For two seeds and two rates; thirty graphs are enough."""
    every = branched(Branched(2, 2, 2, copies=graphs + 2), 0)
    splits = [{"split": "validation" if i < graphs else "train"} for i in range(graphs + 2)]
    parts = [replace(g, attributes=split) for g, split in zip(every, splits, strict=True)]
    write_graphs(parts, Path("v.jsonl"))
    words = ("--seed", "0", "--seed", "1", "--rate", "10000", "--rate", "20000")
    answer = run("train", "stub", "--data", "v.jsonl", "--out", "x", "--epochs", "1", *words)
    assert answer.status == 0
    assert caplog.text.count("validation is on 29 graphs alone") == warnings
    assert len(caplog.records) == warnings


@pytest.mark.parametrize(
    ("option", "value", "place"),
    [
        ("--preset", "slow", "'slow'"),
        ("--reward", "magic", "reward is 'magic'"),
        ("--epochs", "0", "epochs is 0"),
        ("--start", "b.jsonl", "b.jsonl: "),
        ("--start", "shipped", "'stub'"),
        ("--out", "b.jsonl", "b.jsonl: "),
        ("--config", "[training]\nepoch = 3\n", "[training] has no option 'epoch'"),
        ("--config", "[training]\nepochs = 'three'\n", "[training]: epochs is 'three'"),
        ("--config", "[model]\nwidth = 3\n", "[model] has no option 'width'"),
        ("--config", "[modle]\nbias = true\n", "'modle'"),
    ],
)
def test_bad_options_end_in_one_line(refusal, data, option, value, place):
    """Those of a file with its name."""
    if is_file := option == "--config":
        Path("c.toml").write_text(value)
    options = {"--data": "b.jsonl", "--out": "x", option: "c.toml" if is_file else value}
    message = refusal("train", "stub", *(word for pair in options.items() for word in pair))
    assert place in message
    assert "c.toml" in message or not is_file


def test_a_config_file_changes_the_preset(run, data):
    Path("c.toml").write_text("[training]\nepochs = 2\n[model]\nbias = false\n")
    answer = run(*STUB, "--out", "x", "--config", "c.toml", "--json")
    assert json.loads(answer.out)["epochs"] == 2
    found = read_weights(Path("x/best.safetensors"))
    assert found.document["config"] == {"bias": False, "noise": 0.01}
    assert list(found.tensors) == ["weight"]


def test_a_run_is_neither_overwritten_nor_mixed(run, data):
    assert run(*STUB, "--out", "made", "--epochs", "1").status == 0
    again = run(*STUB, "--out", "made", "--epochs", "1")
    assert "--resume" in again.err
    Path("five.toml").write_text("limit = 5\n")
    other = run(*STUB, "--out", "made", "--epochs", "1", "--resume", "--settings", "five.toml")
    for answer in (again, other):
        assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert run(*STUB, "--out", "made", "--epochs", "1", "--resume").status == 0
    begun = run(*STUB, "--out", "begun", "--epochs", "1", "--resume")  # never stopped before
    assert begun.status == 0
    assert Path("begun/best.safetensors").exists()


def test_ctrl_c_keeps_the_done(run, data, monkeypatch):
    """SIGINT in the middle of the third epoch; exit code 130."""
    losses = itertools.count()
    loss = stub_model.Stub.loss

    def interrupting(self, rows, epoch, seed):
        if next(losses) == 9:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return loss(self, rows, epoch, seed)

    with monkeypatch.context() as patch:
        patch.setattr(stub_model.Stub, "loss", interrupting)
        answer = run(*STUB, "--out", "x")
    assert answer.status == 130
    assert answer.err.endswith(
        "stopped; 2 epochs saved in x/\n"
        "continue with: streamplace train stub --data b.jsonl --out x --resume\n"
    )
    assert run(*STUB, "--out", "x", "--resume").status == 0
