import shutil

import numpy as np
import pytest
from problems import chain, fork_join

from streamplace.evaluate.training_answers import answers_of
from streamplace.learn.history import History
from streamplace.learn.model_weights import shipped
from streamplace.learn.trained import Trained
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer

DEVICES = Cluster.uniform(3)


def trained(model, objective, problems, folder):
    """A training that ended with the weights that it began from."""
    weights = shipped(model)
    shutil.copy(weights, folder / "best.safetensors")
    row = model, folder, History(), 1, (), np.empty(0)
    return Trained(*row, tuple(problems), True, objective, 0, weights, "2 graphs")


def test_greedy_is_the_placer_without_samples_and_refinement(tmp_path):
    problems = [Problem(fork_join(), DEVICES), Problem(chain(9), DEVICES)]
    result = answers_of(trained("pilot", "throughput", problems, tmp_path))
    greedy = named_placer("pilot:samples=0:refine=none")
    values = [greedy.place(problem, OBJECTIVES["throughput"]).value for problem in problems]
    for name in ("greedy before", "greedy after"):
        assert result.rows[name].mean == pytest.approx(np.mean(values))
    assert (result.reference, result.problems) == ("metis", 2)


def test_the_first_problems_are_placed(tmp_path, monkeypatch):
    many = [Problem(chain(n), DEVICES) for n in range(2, 26)]
    monkeypatch.setattr("streamplace.evaluate.training_answers.EVALUATIONS", 2)
    result = answers_of(trained("pilot", "throughput", many, tmp_path))
    assert (result.problems, result.total) == (20, 24)


def test_for_the_makespan_the_reference_is_heft(tmp_path):
    problems = [Problem(fork_join(), DEVICES)]
    result = answers_of(trained("pilot-makespan", "makespan", problems, tmp_path))
    assert list(result.rows) == ["greedy before", "greedy after", "heft", "auto"]
    assert result.rows["auto"].mean <= result.rows["heft"].mean
