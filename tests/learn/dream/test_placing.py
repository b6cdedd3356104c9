"""Placing with trained weights."""

import sys

import numpy as np
import pytest
import torch
from dream_cases import MODELS, PROBLEMS, options, policy_of, scale_of
from problems import chain, constrained

from streamplace.errors import FormatError, SettingError
from streamplace.io.weights import read_weights, write_weights
from streamplace.learn.constructive.policy import CELLS, batches_by_size
from streamplace.learn.models.dream.policy import trained
from streamplace.learn.parameters import arrays_of
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget

SCALE = scale_of(options("dream"))
THROUGHPUT = OBJECTIVES["throughput"]


def saved(folder, model="dream", changes=None):
    """Weights file of a small policy."""
    document = {
        "model": model,
        "config": options(model).model_dump(mode="json"),
        "features": SCALE.document(),
        "training": {},
        **(changes or {}),
    }
    path = folder / f"{model}.safetensors"
    write_weights(path, document, arrays_of(policy_of(model)))
    return path


def test_many_problems_are_placed_as_one_by_one(tmp_path):
    policy = trained(saved(tmp_path), "dream")
    problems = [*PROBLEMS, constrained(), *PROBLEMS[::-1]]
    assert policy.place_many(problems) == [policy.place_many([each])[0] for each in problems]


def test_samples_are_only_kept_if_they_are_better(tmp_path):
    problem = PROBLEMS[3]
    placer = PLACERS["dream"].with_options(weights=str(saved(tmp_path)))
    many = placer.with_options(samples=200)
    greedy = placer.place(problem, THROUGHPUT)
    assert many.place(problem, THROUGHPUT).value > greedy.value
    one = many.place(problem, THROUGHPUT, budget=Budget(None, 1))
    assert one.placement == greedy.placement


def test_larger_graphs_are_refused_in_one_line(tmp_path):
    policy = trained(saved(tmp_path), "dream")
    with pytest.raises(SettingError, match=r"^[^\n]*5000 operators[^\n]* pilot[^\n]*$"):
        policy.place_many([Problem(chain(5000), Cluster.uniform(2))])


def test_weights_are_read_once(tmp_path):
    path = saved(tmp_path)
    assert trained(path, "dream") is trained(path, "dream")


def test_the_global_generator_stays_as_it_is(tmp_path):
    before = torch.get_rng_state()
    placer = PLACERS["dream"].with_options(weights=str(saved(tmp_path)), samples=3)
    placer.place(PROBLEMS[0], THROUGHPUT)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "changes",
    [
        {"config": {"width": "wide"}},
        {"config": {"layers": 3}},
        {"config": {**options("dream").model_dump(mode="json"), "width": 16}},
        {"features": {"names": ["load"]}},
        {"features": {**SCALE.document(), "mean": [1.0]}},
        {"features": {**SCALE.document(), "std": None}},
    ],
)
def test_files_that_do_not_fit_are_one_line(changes, tmp_path):
    path = saved(tmp_path, "dream", changes)
    with pytest.raises(FormatError, match=r"dream.safetensors: [^\n]*$"):
        trained(path, "dream")


def test_batches_hold_problems_of_like_sizes():
    """None has too many cells, unless it is one problem; all are there once."""
    sizes = np.random.default_rng(0).integers(1, 3 * CELLS // 2, 50)
    found = batches_by_size(sizes)
    assert sorted(np.concatenate(found).tolist()) == list(range(50))
    for rows in found:
        assert len(rows) == 1 or len(rows) * sizes[rows].max() <= CELLS


@pytest.mark.parametrize("model", MODELS)
def test_no_compiler_is_used(model, tmp_path, monkeypatch):
    """Importing it takes seconds in every process; the parameters are those of the file."""
    path = saved(tmp_path, model)
    weights = read_weights(path)
    for module in ("torch._dynamo", "torch.fx.experimental.symbolic_shapes", "sympy"):
        monkeypatch.setitem(sys.modules, module, None)
    read = arrays_of(trained(path, model).module)
    assert read.keys() == weights.tensors.keys()
    assert all(np.array_equal(read[name], weights.tensors[name]) for name in read)
