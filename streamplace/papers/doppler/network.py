"""Doppler's networks.

With N(v) the neighbours of v, e the seconds of the stream between and whether it leads away or
here, and FFNN a linear map with a bias, section 5.2 of the paper reads

    h_v ← LeakyReLU(W [h_v : mean over u in N(v) of LeakyReLU(W [h_u : h_v : e_uv])])
    SEL = softmax over ready v of w · LeakyReLU(W [h_v : Σ h on b-path : Σ h on t-path : FFNN(x_v)])
    PLC = softmax over open d of w · LeakyReLU(W [h_v : Σ h of tasks on d : FFNN(y_d) : FFNN(x_v)])

where every W and w is another one, but the same in all rounds, and sums over paths and devices are
multiplied by the option ``sums``; h begins as a linear map of x_v.

Messages pass once per episode. SEL's score of a task is fixed for the episode, and only the set of
ready tasks changes. PLC's first layer is linear in its inputs, so its parts are computed before
the first step, too:

    PLC = softmax over open d of w · LeakyReLU(start_v + Σ carried_u of tasks u on d + W y_d)
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, leaky_relu, linear, pad

from streamplace.papers.doppler.model import DopplerConfig
from streamplace.papers.doppler.tensors import TASK_FEATURES, TaskTensors

SLOPE = 0.1
"""Slope of LeakyReLU below 0."""
DEVICE_FEATURES = ("computing", "inputs' computing", "first start", "last end", "earliest start")
"""Appendix D.2; inputs are the task's inputs that were placed on the device."""
N_TASK, N_STREAM, N_DEVICE = len(TASK_FEATURES), 2, len(DEVICE_FEATURES)
FEATURES = [*TASK_FEATURES, *DEVICE_FEATURES]


class Heads(NamedTuple):
    """Outputs of the networks for a problem (N tasks, H hidden units)."""

    score: Tensor  # [N] SEL's
    start: Tensor  # [N, H] PLC's first layer, of the task alone
    carried: Tensor  # [N, H] added to the first layer of its device for later choices
    device_layer: Tensor  # [5, H] of `DEVICE_FEATURES`
    out: Tensor  # [H]

    def of_devices(self, task: Tensor, carried: Tensor, features: Tensor) -> Tensor:
        """PLC's scores [..., D] for tasks [..., 1].

        ``carried`` [..., D, H] are the sums over the tasks on every device, ``features``
        [..., D, 5] those of the devices.
        """
        layer = embedding(task, self.start) + carried + features @ self.device_layer
        # no product of matrices, which may round equal devices differently
        return (leaky_relu(layer, SLOPE) * self.out).sum(-1)


class DopplerModule(nn.Module):
    """Both policies."""

    def __init__(self, config: DopplerConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.hidden
        self.config = config
        self.enter = nn.Linear(N_TASK, width)
        self.message = nn.Linear(2 * width + N_STREAM, width)
        self.update = nn.Linear(2 * width, width)
        self.sel_task, self.plc_task = nn.Linear(N_TASK, width), nn.Linear(N_TASK, width)
        self.plc_device = nn.Linear(N_DEVICE, width)
        self.sel_hidden, self.plc_hidden = (nn.Linear(4 * width, hidden) for _ in "ab")
        self.sel_out, self.plc_out = (nn.Linear(hidden, 1, bias=False) for _ in "ab")

    def forward(self, problem: TaskTensors) -> Heads:
        """Outputs of both networks for a problem."""
        h, x, sums = self.states(problem), problem.features, self.config.sums
        paths = (sums * along(h, path) for path in (problem.before, problem.after))
        joined = torch.cat([h, *paths, self.sel_task(x)], 1)
        score = self.sel_out(leaky_relu(self.sel_hidden(joined), SLOPE))[:, 0]
        of_task, of_placed, of_device, of_features = self.plc_hidden.weight.chunk(4, 1)
        start = linear(h, of_task, self.plc_hidden.bias)
        start = start + linear(self.plc_task(x), of_features)
        start = start + linear(self.plc_device.bias, of_device)
        device_layer = linear(self.plc_device.weight.T, of_device)
        carried = sums * linear(h, of_placed)
        return Heads(score, start, carried, device_layer, self.plc_out.weight[0])

    def states(self, problem: TaskTensors) -> Tensor:
        """States h [N, W] of all tasks after the messages."""
        h, (source, target) = self.enter(problem.features), problem.ends
        ones = h.new_ones(len(target), 1)
        degree = h.new_zeros(len(h), 1).index_add(0, target, ones).clamp(min=1)
        for _ in range(self.config.rounds):
            messages = self.message(torch.cat([h[source], h[target], problem.streams], 1))
            received = torch.zeros_like(h).index_add(0, target, leaky_relu(messages, SLOPE))
            h = leaky_relu(self.update(torch.cat([h, received / degree], 1)), SLOPE)
        return h


def along(h: Tensor, path: Tensor) -> Tensor:
    """Sums of h [N, W] over the path of every task; ``path`` as in `TaskTensors`."""
    sums = pad(h, (0, 0, 0, 1))
    for leap in path:  # after the first j, of 2^j tasks
        sums = sums + sums[leap]
    return sums[:-1]
