"""Messages through gpNets, and their gradients, against torch's own."""

import numpy as np
import pytest
import torch

from streamplace.papers.improving.messages import Messages, senders_of

pytestmark = pytest.mark.slow

# two graphs side by side: 0 → 2 ← 1, 2 → 3, twice; and 4 → 5, beside 6, which nobody hears
SENDER = np.array([0, 1, 2, 2, 4], np.int32)
TAKER = np.array([2, 2, 3, 3, 5], np.int32)
ORDER = np.array([1, 0, 2, 3, 6, 4, 5], np.int32)


def arguments(seed):
    """What nodes know, what edges add, and weights, to be differentiated."""
    rng = torch.Generator().manual_seed(seed)
    shapes = (7, 3), (5, 4), (4, 3), (3, 4), (3,)
    return [torch.randn(*shape, generator=rng).requires_grad_() for shape in shapes]


def literal(own, added, node, up, b):
    """Messages as the module's equations have them, node by node."""

    def state_of(states, j):
        edges = [e for e in range(5) if TAKER[e] == j]
        if not edges:
            return own[j]
        messages = [torch.relu(node @ states[SENDER[e]] + added[e]) for e in edges]
        return own[j] + torch.relu(up @ torch.stack(messages).mean(0) + b)

    states = list(own)
    for j in ORDER.tolist():
        states[j] = state_of(states, j)
    return torch.stack(states)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_heard_and_its_gradients_are_those_of_the_equations(seed):
    weight = torch.linspace(-1, 2, 21).reshape(7, 3)
    mine, plain = arguments(seed), arguments(seed)
    found = Messages.apply(*mine, senders_of(ORDER, SENDER, TAKER))  # type: ignore[no-untyped-call]
    wanted = literal(*plain)
    assert found.detach().numpy() == pytest.approx(wanted.detach().numpy(), abs=1e-5)
    (found * weight).sum().backward()
    (wanted * weight).sum().backward()
    for ours, torchs in zip(mine, plain, strict=True):
        assert ours.grad.numpy() == pytest.approx(torchs.grad.numpy(), abs=1e-4)
