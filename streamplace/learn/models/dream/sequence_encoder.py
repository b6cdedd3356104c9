"""Sequence encoder of the paper's baseline B: an LSTM over operators in the order of decision."""

import torch
from torch import Tensor, nn

from streamplace.learn.constructive.recurrence import lstm_states
from streamplace.learn.models.dream.graphs import GraphBatch


class SequenceEncoder(nn.Module):
    """Operators as the states of an LSTM that reads their features; the graph as the last state."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.read = nn.Linear(features, 4 * width)
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        nn.init.orthogonal_(self.recurrent)

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Operators [G, N, W] and graphs [G, W]."""
        inputs = self.read(batch.features).transpose(0, 1)
        start = inputs.new_zeros(inputs.shape[1], self.recurrent.shape[1])
        nothing = inputs.new_empty(*inputs.shape[:2], 1, 0)
        nodes = lstm_states(inputs, nothing, start, self.recurrent).transpose(0, 1)
        last = (batch.present.sum(1) - 1)[:, None, None].expand(-1, 1, nodes.shape[2])
        return nodes, nodes.gather(1, last).squeeze(1)
