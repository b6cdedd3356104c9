"""The two forms of pilot, in numpy and in torch, are one policy."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pilots import draw, follow, pilot_module, tangle, torn, uneven
from problems import PROBLEMS
from strategies import problems

from streamplace.learn.algorithms.kernels import DecisionRecord
from streamplace.learn.models.pilot.features import features_of
from streamplace.learn.models.pilot.learner import ProblemBatch, StepBatch
from streamplace.learn.models.pilot.network import network_of
from streamplace.learn.parameters import arrays_of
from streamplace.model import Problem

ALL = [*PROBLEMS.values(), Problem(tangle(), uneven()), torn()]
SIZES = [(8, 0), (5, 1), (8, 3)]


def drawn(view: Any, network: Any, samples: Any) -> Any:
    """Rollouts that ended well, and what was seen along them."""
    chosen, record = draw(view, network, samples)
    whole = chosen[:, 0] >= 0
    return chosen[whole], DecisionRecord(*(part[whole] for part in record))


def in_one_pass(module: Any, views: Any, runs: Any) -> Any:
    """Log-probabilities [P, D] of all decisions of all rollouts, and the decisions."""
    rollouts = [(i, record, chosen) for i, (chosen, record) in enumerate(runs)]
    steps = StepBatch.of(views, rollouts)
    with torch.no_grad():
        return module(ProblemBatch.of(views), steps), steps


def of_rollouts(log_p: Any, steps: Any) -> Any:
    """Log-probability of every rollout."""
    taken = log_p.gather(1, steps.chosen[:, None])[:, 0]
    rollout = steps.at // steps.placed.shape[1]
    return np.bincount(rollout, taken.double())


@pytest.mark.parametrize(("width", "rounds"), SIZES)
def test_one_pass_in_torch_says_what_numpy_says_step_by_step(width: Any, rounds: Any) -> None:
    """Problems of all sizes and device counts together, each with rollouts of its own."""
    module = pilot_module(3, width, rounds)
    network = network_of(arrays_of(module))
    views = [features_of(problem) for problem in ALL]
    runs = [drawn(view, network, 1 + i % 4) for i, view in enumerate(views)]
    found = of_rollouts(*in_one_pass(module, views, runs))
    step_by_step = [
        follow(view, network, chosen)[0]
        for view, (chosen, _) in zip(views, runs, strict=True)
        if len(chosen)
    ]
    assert found == pytest.approx(np.concatenate(step_by_step), rel=1e-4, abs=1e-4)


@settings(max_examples=25)
@given(st.lists(problems(most=5, windowed=True), min_size=1, max_size=3))
def test_the_forms_agree_on_any_problems(some: Any) -> None:
    """Whatever rules, costs and cores they have."""
    module = pilot_module(1)
    network = network_of(arrays_of(module))
    views = [features_of(problem) for problem in some]
    runs = [drawn(view, network, 2) for view in views]
    if not all(len(chosen) for chosen, _ in runs):
        return
    found = of_rollouts(*in_one_pass(module, views, runs))
    step_by_step = [
        follow(view, network, chosen)[0] for view, (chosen, _) in zip(views, runs, strict=True)
    ]
    assert found == pytest.approx(np.concatenate(step_by_step), rel=1e-3, abs=1e-3)


def test_probabilities_are_of_open_devices_and_add_up_to_one() -> None:
    """Closed devices, and those that a problem does not have, have none."""
    module = pilot_module()
    network = network_of(arrays_of(module))
    views = [features_of(problem) for problem in ALL]
    log_p, steps = in_one_pass(module, views, [drawn(view, network, 3) for view in views])
    probability = log_p.exp()
    assert probability.sum(1).numpy() == pytest.approx(1, abs=1e-5)
    assert (probability[~steps.open] == 0).all()
    assert (probability[steps.open] > 0).all()
    assert steps.open.gather(1, steps.chosen[:, None]).all()


def test_several_runs_of_one_problem_share_its_encoding() -> None:
    """Their order is that in which they were given."""
    module = pilot_module()
    network = network_of(arrays_of(module))
    views = [features_of(problem) for problem in (PROBLEMS["chain"], PROBLEMS["fork-join"])]
    runs = [(1, 2), (0, 1), (1, 3)]
    drawn_runs = [(i, *draw(views[i], network, samples, seed=i)[::-1]) for i, samples in runs]
    steps = StepBatch.of(views, drawn_runs)
    with torch.no_grad():
        found = of_rollouts(module(ProblemBatch.of(views), steps), steps)
    expected = [follow(views[i], network, chosen)[0] for i, _, chosen in drawn_runs]
    assert found == pytest.approx(np.concatenate(expected), rel=1e-4, abs=1e-4)
