"""The paper's models in torch: encoders of graphs (§3.1) and of sequences, and the whole model.

Shapes: G graphs, N operators (padded), V = G · N, E streams, m dimensions per view, W = 2 m, S
samples per graph.
"""

from typing import cast

import torch
from torch import Tensor, nn

from streamplace.learn.constructive.policy import Likelihood
from streamplace.learn.constructive.recurrence import lstm_states, one_hot
from streamplace.learn.models.dream.decoder import Decoder, DecoderShape, Encoded
from streamplace.learn.models.dream.graphs import OPERATOR_FEATURES, STREAM_FEATURES, GraphBatch
from streamplace.learn.models.dream.options import AllocatorConfig, GraphAllocatorConfig


class Hop(nn.Module):
    """One update of one view, equation 1, with biases.

    h_u^(in) = tanh(W₁ h_u), or with stream features tanh(W₁ [h_u : f_e]) (footnote 4);
    h_v^(k+1) = tanh(W₂ [h_v : mean of h_u^(in) over the neighbours u of v]).
    """

    def __init__(self, n_in: int, m: int, stream_features: int = 0) -> None:
        super().__init__()
        self.incoming = nn.Linear(n_in + stream_features, m)
        self.update_view = nn.Linear(n_in + m, m)
        self.of_streams = stream_features > 0

    def forward(self, h: Tensor, edges: Tensor, stream_features: Tensor) -> Tensor:
        """View [V, m] from the one before [V, in] and edges [2, E] from u to v."""
        source, target = edges
        if self.of_streams:
            sent = torch.tanh(self.incoming(torch.cat([h[source], stream_features], dim=1)))
        else:
            sent = torch.tanh(self.incoming(h))[source]
        pooled = _mean(sent, target, len(h))
        return torch.tanh(self.update_view(torch.cat([h, pooled], dim=1)))


def _mean(sent: Tensor, target: Tensor, n: int) -> Tensor:
    """Means [n, m] of what arrives [E, m] at each target, 0 where nothing does."""
    total = sent.new_zeros(n, sent.shape[1]).index_add(0, target, sent)
    count = sent.new_zeros(n).index_add(0, target, sent.new_ones(len(target)))
    return total / count.clamp(min=1)[:, None]


class GraphEncoder(nn.Module):
    """Operators as vectors [up : down] that know K hops in each direction, and one of the graph.

    Both views share their weights in the paper's experiments.
    """

    def __init__(
        self, features: int, width: int, hops: int, shared: bool = True, stream_features: int = 0
    ) -> None:
        super().__init__()
        m = width // 2
        sizes = [features] + [m] * (hops - 1)
        self.up = nn.ModuleList(Hop(size, m, stream_features) for size in sizes)
        self.down = (
            self.up if shared else nn.ModuleList(Hop(size, m, stream_features) for size in sizes)
        )
        self.pool = nn.Linear(width, width)

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Operators [G, N, W] and graphs [G, W]; the vectors of padding operators mean nothing."""
        edges, features = batch.edges, batch.stream_features
        up = down = batch.features.flatten(0, 1)
        for hop_up, hop_down in zip(self.up, self.down, strict=True):
            up, down = hop_up(up, edges, features), hop_down(down, edges.flip(0), features)
        nodes = torch.cat([up, down], dim=1).view(*batch.present.shape, -1)
        pooled = cast(Tensor, self.pool(nodes))
        return nodes, pooled.masked_fill(~batch.present[:, :, None], -torch.inf).amax(1)


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


class EncoderDecoder(nn.Module):
    """P(placement | graph), equation 2.

    Shapes: G graphs, S samples of each, N operators in the order of decision.
    """

    def __init__(self, encoder: nn.Module, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, batch: GraphBatch) -> Encoded:
        """Encode graphs, once for all that is asked about them."""
        nodes, graph = self.encoder(batch)
        return self.decoder.encode(batch, nodes, graph)

    def likelihood(self, batch: GraphBatch, encoded: Encoded, placements: Tensor) -> Likelihood:
        """Log-probabilities and entropies of placements [G, S, N], with gradients."""
        chosen = one_hot(placements.transpose(1, 2), batch.n_devices)
        each = self.decoder.all_steps(encoded, chosen)
        taken = (each * chosen).sum((1, 3))
        spread = -(each.exp() * each).sum((1, 3)) / batch.present.sum(1)[:, None]
        return Likelihood(taken, spread)

    @torch.no_grad()
    def decide(self, encoded: Encoded, samples: int, generator: torch.Generator | None) -> Tensor:
        """Placements [G, S, N], step by step: drawn, or without a generator the likeliest."""
        batch = encoded.earlier.batch
        graphs, n, devices = batch.n_graphs, batch.n_operators, batch.n_devices
        chosen = encoded.start.new_zeros(graphs, n, samples, devices)
        state = encoded.start.detach().repeat_interleave(samples, dim=0)
        cell = torch.zeros_like(state)
        noise = torch.zeros_like(chosen)
        if generator is not None:  # the largest of log p + Gumbel noise is a draw from p
            noise.exponential_(generator=generator).log_().neg_()
        decided = []
        for t in range(n):
            log_p, state, cell = self.decoder.step(encoded, chosen, t, state, cell)
            device = log_p.add_(noise[:, t]).argmax(-1)
            chosen[:, t] = one_hot(device, devices)
            decided.append(device)
        return torch.stack(decided, dim=-1)


def built_module(config: AllocatorConfig, *, upstream: bool) -> EncoderDecoder:
    """Model with fresh parameters from torch's generator; ``upstream`` is the paper's F2."""
    shape = DecoderShape(
        width=config.width,
        devices=config.devices,
        embedding=config.embedding,
        upstream=upstream,
        device_state=config.device_state,
    )
    if isinstance(config, GraphAllocatorConfig):
        graph = GraphEncoder(
            features=len(OPERATOR_FEATURES),
            width=config.width,
            hops=config.hops,
            shared=config.shared,
            stream_features=len(STREAM_FEATURES) if config.stream_features else 0,
        )
        return EncoderDecoder(graph, Decoder(shape))
    return EncoderDecoder(SequenceEncoder(len(OPERATOR_FEATURES), config.width), Decoder(shape))
