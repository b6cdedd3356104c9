"""Baselines, and advantages over them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from streamplace.learn.algorithms.baselines import BASELINES, advantages, mean


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.integers(0, 3),
    st.sampled_from(sorted(BASELINES)),
)
def test_missing_ones_count_for_nothing(rewards, padding, name):
    """Padded rows have the weights of the bare ones, and 0 where nothing is."""
    bare = torch.tensor([rewards], dtype=torch.float64)
    padded = torch.cat([bare, torch.full((1, padding), 0.7)], dim=1)
    valid = torch.arange(padded.shape[1])[None] < len(rewards)
    every = torch.ones_like(bare, dtype=torch.bool)
    weights = advantages(padded, valid, BASELINES[name], normalised=False)
    expected = advantages(bare, every, BASELINES[name], normalised=False)[0]
    assert weights[valid].tolist() == pytest.approx(expected.tolist())
    assert (weights[~valid] == 0).all()


def test_every_baseline_is_what_it_says():
    rewards, valid = torch.tensor([[0.2, 0.4, 0.9]]), torch.ones(1, 3, dtype=torch.bool)
    found = {
        name: (3 * advantages(rewards, valid, baseline, normalised=False)[0]).tolist()
        for name, baseline in BASELINES.items()
    }
    expected = {"mean": [-0.3, -0.1, 0.4], "none": [0.2, 0.4, 0.9]}
    assert found == {name: pytest.approx(row, abs=1e-6) for name, row in expected.items()}


def test_weights_of_equation_4():
    """Advantages over the mean of the valid samples, over their number; normalised if so wished."""
    rewards = torch.tensor([[0.2, 0.4, 0.9], [0.5, 0.5, 0.5]])
    valid = torch.tensor([[True, True, False], [True, True, True]])
    plain = advantages(rewards, valid, mean, normalised=False)
    assert plain.numpy() == pytest.approx(np.array([[-0.05, 0.05, 0], [0, 0, 0]]), abs=1e-6)
    normalised = advantages(rewards, valid, mean, normalised=True)
    assert normalised.numpy() == pytest.approx(np.array([[-0.5, 0.5, 0], [0, 0, 0]]), abs=0.01)
