"""The LSTM's recurrence."""

import pytest
import torch
from torch import Tensor

from streamplace.learn.constructive.recurrence import lstm_states, tanh_

T, G, S, H, K = 5, 2, 3, 4, 2


def arguments() -> list[Tensor]:
    """Inputs, further inputs, first states, weights."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(T, G, 4 * H), (T, G, S, K), (G * S, H), (4 * H, H + K)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def test_gradients_are_those_of_finite_differences() -> None:
    """Of everything but the one-hot decisions, which have none."""
    inputs, read, start, weight = arguments()
    wanted = [tensor.requires_grad_() for tensor in (inputs, start, weight)]
    assert torch.autograd.gradcheck(lambda x, h, w: lstm_states(x, read, h, w), wanted)


def test_tanh_by_way_of_the_sigmoid() -> None:
    values = torch.tensor([-100.0, -1.0, 0.0, 0.5, 100.0])
    assert tanh_(values.clone()).tolist() == pytest.approx(values.tanh().tolist(), abs=1e-6)
