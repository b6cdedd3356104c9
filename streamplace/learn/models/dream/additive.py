"""Networks of the DREAM paper's published code that differ from its text.

Shapes: G graphs, N operators (padded), W width, S samples per graph or 1, D devices.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, one_hot, pad

from streamplace.learn.constructive.policy import CLOSED
from streamplace.learn.env import Batch, Observation
from streamplace.learn.models.dream.model import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.parameters import lstm

Encoded = tuple[Tensor, Tensor]
Generator = torch.Generator | None


class MaxPooling(nn.Module):
    """A layer of GraphSAGE (Hamilton et al. 2017, equation 3), with a ReLU before the next one.

    h_v' = [W h_v : W' max over u of relu(V h_u + b)] over the neighbours u of v; 0 without any.
    """

    def __init__(self, n_in: int, m: int) -> None:
        super().__init__()
        self.incoming = nn.Linear(n_in, 2 * m)
        self.own = nn.Linear(n_in, m // 2, bias=False)
        self.pooled = nn.Linear(2 * m, m // 2, bias=False)

    def forward(self, h: Tensor, into: Tensor) -> Tensor:
        """View [G, N, m] from the one before [G, N, in]; ``into`` [G, N, N] is 0 or 1."""
        largest = (into[..., None] * self.incoming(h).relu()[:, None]).amax(2)
        return torch.cat([self.own(h), self.pooled(largest)], dim=2)


def neighbours(streams: Tensor, generator: Generator) -> Tensor:
    """1 [G, N, N] for four drawn neighbours of each operator; without a generator, for all."""
    joined = streams.clamp(max=1)
    if generator is None:
        return joined
    keys = torch.rand(4, *joined.shape, generator=generator, device=joined.device) * joined
    return one_hot(keys.argmax(3), joined.shape[2]).amax(0) * joined


class FeatureMap(nn.Module):
    """Operators as a linear map of their features, and graphs as zeros: nothing is encoded."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features, width, bias=False)

    def forward(self, features: Tensor, batch: Batch, generator: Generator) -> Encoded:
        """Operators [G, N, W] in the order of decision, and graphs [G, W]."""
        nodes = self.embed(batch.steps(features))
        return nodes, torch.zeros_like(nodes[:, 0])


class EncodedOperators(NamedTuple):
    """Encoded operators, and their parts of layers, computed once per graph."""

    inputs: Tensor  # [G, N, 4W] part of the LSTM's input, and its bias
    nodes: Tensor  # [G, N, W]
    hidden_from: Tensor  # [G, 1, N] 0 for operators, -∞ for padding
    values: Tensor  # [G, N, W] part of the MLP's first layer, or [D, 4W] of the LSTM's input


class AdditiveDecoder(nn.Module):
    """Chooses devices operator by operator; without a graph encoder, it is one causal LSTM."""

    def __init__(self, config: AllocatorConfig, *, upstream: bool) -> None:
        super().__init__()
        width, d, attends = config.width, config.devices, isinstance(config, GraphAllocatorConfig)
        self.read = nn.Linear(width, 4 * width)
        self.read_previous = nn.Linear(d, 4 * width, bias=False) if config.previous else None
        self.devices = nn.Parameter(torch.empty(d, width)) if upstream else None
        self.read_upstream = nn.Linear(width, 4 * width, bias=False) if upstream else None
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        self.query = nn.Linear(width, width, bias=False) if attends else None
        self.score = nn.Linear(width, 1, bias=False) if attends else None
        self.output = nn.Linear(2 * width if attends else width, d, bias=False)
        self.read_loads = nn.Linear(2 * d, d, bias=False) if config.utilisation else None
        self.follows = config.previous or upstream
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        nn.init.zeros_(self.read.bias)
        nn.init.ones_(self.read.bias[width : 2 * width])  # the gate that forgets, open at first

    def values(self, nodes: Tensor) -> Tensor:
        """`EncodedOperators.values` of encoded operators."""
        return nodes if self.read_upstream is None else self.read_upstream(self.devices)

    def step(
        self, operators: EncodedOperators, t: int, seen: Observation, state: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities [G, S, D] of decision t, and the LSTM's state and cell [G, S, W].

        s_t = LSTM(s_(t-1), [h_v : D^(up)(v)]), where s_0 is the graph's vector, and D^(up)(v) the
        sum of b_uv A(d_u) over the operators u upstream of v, whose streams to v have the size b;
        α_j = w · tanh(W s_t + h_j), α̃ = softmax(α) over the operators of the graph;
        P(d_v) = softmax(U [s_t : Σ_j α̃_j h_j]), where [logits : 2 - load] pass one more linear
        layer if loads are read. Where no device is read, one state serves all samples.
        """
        gates = operators.inputs[:, t, None] + linear(state, self.recurrent)
        devices = seen["open"].shape[2]
        if self.read_previous is not None:
            gates = gates + linear(seen["previous"], self.read_previous.weight[:, :devices])
        if self.read_upstream is not None:
            gates = gates + seen["flow"] @ operators.values[:devices]
        state, cell = lstm(gates, cell)
        hidden = state
        if self.query is not None and self.score is not None:
            matched = torch.tanh(self.query(state)[:, :, None] + operators.nodes[:, None])
            attention = (self.score(matched).squeeze(-1) + operators.hidden_from).softmax(-1)
            hidden = torch.cat([state, attention @ operators.nodes], dim=2)
        logits = self.output(hidden)
        if self.read_loads is not None:
            rest = pad(2 - seen["load"], (0, logits.shape[2] - seen["load"].shape[2]))
            logits = self.read_loads(torch.cat([logits.expand_as(rest), rest], dim=2))
        return logits[..., :devices].masked_fill(~seen["open"], CLOSED).log_softmax(-1), state, cell
