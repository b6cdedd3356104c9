"""Networks of the code that was published with the DREAM paper, where they differ from its text.

Shapes: G graphs, N operators (padded), W width, S samples per graph or 1, D devices.
"""

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize, one_hot, pad

from streamplace.learn.constructive.policy import CLOSED
from streamplace.learn.env import Batch, Observation
from streamplace.learn.models.dream import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.parameters import lstm

NEIGHBOURS = 4
"""Neighbours that are drawn of each operator, with repetition."""


class MaxPooling(nn.Module):
    """A layer of GraphSAGE (Hamilton et al. 2017, equation 3).

    h_v' = [W h_v : W' max over u of relu(V h_u + b)] over the neighbours u of v; 0 without any.
    """

    def __init__(self, n_in: int, hidden: int, n_out: int) -> None:
        super().__init__()
        self.message = nn.Linear(n_in, hidden)
        self.own = nn.Linear(n_in, n_out, bias=False)
        self.pooled = nn.Linear(hidden, n_out, bias=False)

    def forward(self, h: Tensor, into: Tensor) -> Tensor:
        """View [G, N, 2 out] from the one before [G, N, in]; ``into`` [G, N, N] is 0 or 1."""
        messages = self.message(h).relu()
        most = (into[..., None] * messages[:, None]).amax(2)
        return torch.cat([self.own(h), self.pooled(most)], dim=2)


class GraphSage(nn.Module):
    """Operators as vectors [up : down] of length 1 by layers of GraphSAGE, and one of the graph.

    Both views share their weights. With a generator, each layer draws its neighbours anew.
    """

    def __init__(self, config: GraphAllocatorConfig) -> None:
        super().__init__()
        width, n_out = config.width, config.width // 4
        sizes = [len(config.features)] + [2 * n_out] * (config.hops - 1)
        self.layers = nn.ModuleList(MaxPooling(size, width, n_out) for size in sizes)
        self.pool = nn.Linear(width, width)

    def forward(
        self, features: Tensor, batch: Batch, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Operators [G, N, W] in the order of decision, and graphs [G, W]."""
        joined = batch.streams.clamp(max=1)
        up = down = features
        for layer in self.layers:
            up = layer(up, drawn_neighbours(joined, generator))
            down = layer(down, drawn_neighbours(joined.transpose(1, 2), generator))
            if layer is not self.layers[-1]:
                up, down = up.relu(), down.relu()
        nodes = normalize(torch.cat([up, down], dim=2), dim=2)
        pooled = cast(Tensor, self.pool(nodes))
        graph = pooled.masked_fill(~batch.present[:, :, None], -torch.inf).amax(1)
        return batch.steps(nodes), graph


def drawn_neighbours(joined: Tensor, generator: torch.Generator | None) -> Tensor:
    """1 [G, N, N] for the neighbours that are drawn of each operator; without a generator, all."""
    if generator is None:
        return joined
    size = NEIGHBOURS, *joined.shape
    keys = torch.rand(size, generator=generator, device=joined.device) * joined
    return one_hot(keys.argmax(3), joined.shape[2]).amax(0) * joined


class FeatureMap(nn.Module):
    """Operators as a linear map of their features, and graphs as zeros: nothing is encoded."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features, width, bias=False)

    def forward(
        self, features: Tensor, batch: Batch, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Operators [G, N, W] in the order of decision, and graphs [G, W]."""
        nodes = self.embed(batch.steps(features))
        return nodes, torch.zeros_like(nodes[:, 0])


class ReadOperators(NamedTuple):
    """Encoded operators, and what is computed of them once per graph."""

    inputs: Tensor  # [G, N, 4W] part of the LSTM's input, and its bias
    nodes: Tensor  # [G, N, W]
    hidden_from: Tensor  # [G, 1, N] 0 for operators, -∞ for padding
    upstream: Tensor | None  # [D, 4W] part of the LSTM's input, per device upstream


class AdditiveDecoder(nn.Module):
    """Chooses devices operator by operator; ``upstream`` says whether it reads D^(up).

    ``attends`` says whether it attends to the operators; otherwise it is a causal LSTM.
    """

    def __init__(self, config: AllocatorConfig, *, upstream: bool, attends: bool) -> None:
        super().__init__()
        width, d = config.width, config.devices
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
        with torch.no_grad():  # the gate that forgets is open at first
            self.read.bias.view(4, width).copy_(torch.tensor([[0.0], [1.0], [0.0], [0.0]]))

    def operators(self, nodes: Tensor, batch: Batch) -> ReadOperators:
        """What decisions need of encoded operators [G, N, W] in the order of decision."""
        padding = ~batch.steps(batch.present)[:, None]
        hidden_from = nodes.new_zeros(padding.shape).masked_fill(padding, -torch.inf)
        upstream = None
        if self.read_upstream is not None and self.devices is not None:
            upstream = self.read_upstream(self.devices)
        return ReadOperators(self.read(nodes), nodes, hidden_from, upstream)

    def step(
        self,
        operators: ReadOperators,
        t: int,
        seen: Observation,
        described: Tensor | None,
        state: Tensor,
        cell: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities [G, S, D] of decision t, and the LSTM's state and cell [G, S, W].

        s_t = LSTM(s_(t-1), [h_v : D^(up)(v)]), where s_0 is the graph's vector, and D^(up)(v) the
        sum of b_uv A(d_u) over the operators u upstream of v, whose streams to v have the size b;
        α_j = w · tanh(W s_t + h_j), α̃ = softmax(α) over the operators of the graph;
        P(d_v) = softmax(U [s_t : Σ_j α̃_j h_j]), where [logits : 2 - load] pass one more linear
        layer if loads are read. Where no device is read, one state serves all samples.
        """
        gates = operators.inputs[:, t, None] + linear(state, self.recurrent)
        if self.read_previous is not None:
            previous = seen["previous"]
            gates = gates + linear(previous, self.read_previous.weight[:, : previous.shape[2]])
        if operators.upstream is not None:
            flow = seen["flow"]
            gates = gates + flow @ operators.upstream[: flow.shape[2]]
        state, cell = lstm(gates, cell)
        hidden = state
        if self.query is not None and self.score is not None:
            matched = torch.tanh(self.query(state)[:, :, None] + operators.nodes[:, None])
            attention = (self.score(matched).squeeze(-1) + operators.hidden_from).softmax(-1)
            hidden = torch.cat([state, attention @ operators.nodes], dim=2)
        logits = self.output(hidden)
        if self.read_loads is not None:
            missing = logits.shape[2] - seen["load"].shape[2]
            rest = pad(2 - seen["load"], (0, missing))
            logits = self.read_loads(torch.cat([logits.expand_as(rest), rest], dim=2))
        logits = logits[..., : seen["open"].shape[2]]
        return logits.masked_fill(~seen["open"], CLOSED).log_softmax(-1), state, cell
