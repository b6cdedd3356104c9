"""Returns of episodes, by their definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamplace.papers.walks.learner import discounted, running_mean

REWARDS = arrays(np.float64, (3, 7), elements=st.floats(-10, 10, width=32))


@given(REWARDS, st.floats(0, 1))
def test_returns_are_discounted_sums_of_what_comes(rewards: np.ndarray, gamma: float) -> None:
    """Each reward counts γ to the number of steps until it comes."""
    found = discounted(rewards, gamma)
    for s, t in np.ndindex(rewards.shape):
        coming = [gamma ** (k - t) * rewards[s, k] for k in range(t, rewards.shape[1])]
        assert found[s, t] == pytest.approx(sum(coming), abs=1e-6)


@given(REWARDS)
def test_the_running_mean_is_of_the_rewards_before(rewards: np.ndarray) -> None:
    """So it does not depend on the choice that it is compared with."""
    found = running_mean(rewards)
    assert (found[:, 0] == 0).all()
    for t in range(1, rewards.shape[1]):
        assert found[:, t] == pytest.approx(rewards[:, :t].mean(axis=1), abs=1e-9)
