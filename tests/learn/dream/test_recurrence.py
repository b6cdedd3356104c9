"""The LSTM's recurrence."""

import pytest
import torch
from torch import Tensor

from streamplace.learn.constructive.recurrence import lstm_states, lstm_step, tanh_

T, G, S, H, K = 5, 2, 3, 4, 2


def arguments(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Inputs, further inputs, first states, weights."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(T, G, 4 * H), (T, G, S, K), (G * S, H), (4 * H, H + K)]
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def test_states_are_those_of_torch() -> None:
    """With the gates in torch's order i, f, g, o, and the shared inputs repeated."""
    inputs, read, start, weight = arguments()
    swapped = torch.tensor([*range(2 * H), *range(3 * H, 4 * H), *range(2 * H, 3 * H)])
    theirs = torch.nn.LSTM(4 * H + K, H, dtype=torch.float64)
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(torch.cat([torch.eye(4 * H), weight[:, H:]], dim=1)[swapped])
        theirs.weight_hh_l0.copy_(weight[swapped, :H])
        theirs.bias_ih_l0.zero_()
        theirs.bias_hh_l0.zero_()
    every = torch.cat([inputs.repeat_interleave(S, dim=1), read.flatten(1, 2)], dim=2)
    expected, _ = theirs(every, (start[None], torch.zeros_like(start)[None]))
    assert torch.allclose(lstm_states(inputs, read, start, weight), expected)


def test_gradients_are_those_of_finite_differences() -> None:
    """Of everything but the one-hot decisions, which have none."""
    inputs, read, start, weight = arguments()
    wanted = [tensor.requires_grad_() for tensor in (inputs, start, weight)]
    assert torch.autograd.gradcheck(lambda x, h, w: lstm_states(x, read, h, w), wanted)


def test_steps_are_the_recurrence_one_by_one() -> None:
    inputs, read, state, weight = arguments(torch.float32)
    expected = lstm_states(inputs, read, state, weight)
    cell = torch.zeros_like(state)
    for t in range(T):
        gates = inputs[t].repeat_interleave(S, dim=0)
        gates += torch.cat([state, read[t].flatten(0, 1)], dim=1) @ weight.t()
        state, cell = lstm_step(gates, cell)
        assert torch.allclose(state, expected[t], atol=1e-6)


def test_tanh_by_way_of_the_sigmoid() -> None:
    values = torch.tensor([-100.0, -1.0, 0.0, 0.5, 100.0])
    assert tanh_(values.clone()).tolist() == pytest.approx(values.tanh().tolist(), abs=1e-6)
