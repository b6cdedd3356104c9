"""The two forms of pilot, in numpy and in torch, are one policy."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pilots import draw_whole, follow, pilot_module, tangle, torn, uneven
from problems import PROBLEMS
from strategies import problems

from streamplace.learn.models.pilot.features import features_of
from streamplace.learn.models.pilot.learner import ProblemBatch, StepBatch
from streamplace.learn.models.pilot.rollouts import network_of
from streamplace.learn.parameters import arrays_of
from streamplace.model import Problem

ALL = [*PROBLEMS.values(), Problem(tangle(), uneven()), torn()]


def in_one_pass(module, views, runs):
    """Log-probabilities [P, D] of the decisions of rollouts of these problems; the decisions."""
    steps = StepBatch.of(views, runs, torch.device("cpu"))
    with torch.no_grad():
        return module(ProblemBatch.of(views, torch.device("cpu")), steps), steps


def assert_forms_agree(module, some, samples, tolerance):
    """Compare the log-probability of every rollout: so many of these problems, by number."""
    network, views = network_of(arrays_of(module)), [features_of(problem) for problem in some]
    drawn = [(i, *draw_whole(views[i], network, count)) for i, count in samples]
    if not any(len(chosen) for _, chosen, _ in drawn):
        return
    log_p, steps = in_one_pass(module, views, [(i, record, chosen) for i, chosen, record in drawn])
    taken = log_p.gather(1, steps.chosen[:, None])[:, 0]
    found = np.bincount(steps.at // steps.placed.shape[1], taken.double())
    step_by_step = [follow(views[i], network, chosen) for i, chosen, _ in drawn if len(chosen)]
    expected = np.concatenate(step_by_step)
    assert found == pytest.approx(expected, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize(("width", "rounds"), [(8, 0), (5, 1), (8, 3)])
def test_one_pass_in_torch_says_what_numpy_says_step_by_step(width, rounds):
    """Problems of all sizes and device counts together; some come twice, and share an encoding."""
    samples = [*((i, 1 + i % 4) for i in range(len(ALL))), (1, 2), (0, 3)]
    assert_forms_agree(pilot_module(3, width, rounds), ALL, samples, 1e-4)


@settings(max_examples=25)
@given(st.lists(problems(most=5, windowed=True), min_size=1, max_size=3))
def test_the_forms_agree_on_any_problems(some):
    assert_forms_agree(pilot_module(1), some, [(i, 2) for i in range(len(some))], 1e-3)


def test_probabilities_are_of_open_devices_and_add_up_to_one():
    """Closed devices, and those that a problem does not have, have none."""
    module = pilot_module()
    network, views = network_of(arrays_of(module)), [features_of(problem) for problem in ALL]
    drawn = [draw_whole(view, network, 3) for view in views]
    runs = [(i, record, chosen) for i, (chosen, record) in enumerate(drawn)]
    log_p, steps = in_one_pass(module, views, runs)
    probability = log_p.exp()
    assert probability.sum(1).numpy() == pytest.approx(1, abs=1e-5)
    assert (probability[~steps.open] == 0).all()
    assert (probability[steps.open] > 0).all()
    assert steps.open.gather(1, steps.chosen[:, None]).all()
