"""Draws of actions."""

import pytest
import torch

from streamplace.papers.improving.episodes import drawn

pytestmark = pytest.mark.slow


def test_actions_are_drawn_by_their_shares_and_closed_ones_never():
    shares = torch.tensor([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    uniform = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    actions = drawn((3 + shares.log()).expand(1000, -1), uniform)
    assert actions.bincount(minlength=6).tolist() == [0, 200, 0, 500, 300, 0]
    assert (actions.diff() >= 0).all()


def test_the_ends_of_the_numbers_are_open_actions():
    scores = torch.tensor([[-torch.inf, 1.0, 2.0, -torch.inf]] * 2)
    uniform = torch.tensor([0.0, 1 - 2.0**-53], dtype=torch.float64)
    assert drawn(scores, uniform).tolist() == [1, 2]
