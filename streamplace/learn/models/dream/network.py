"""The DREAM paper's models in torch: encoders of graphs (§3.1) and of sequences, and the decoder.

Shapes: G graphs, N operators and M streams (padded), m dimensions per view, W = 2 m, T steps, S
samples per graph, R = G · S rows, D devices.

The graph-aware decoder (§3.2) is an LSTM over decisions with attention and an MLP:

    s_t = LSTM(s_(t-1), [h_v : D^(up)(v) : e(d_(t-1))]), where s_0 is the graph's vector, e embeds
    devices and D^(up)(v) is the mean of e over the devices of v's upstream operators;
    α_j = s_t · h_j, α̃ = softmax(α) over the operators of the graph;
    P(d_v) = softmax(MLP([s_t : Σ_j α̃_j h_j])) over the devices that are open.

The inputs from earlier decisions are linear maps of these in one-hot form: products for all steps
at once, running sums step by step. Linear maps of an operator are computed once per graph:
its part of the LSTM's input, and its part of the MLP's first layer, which can be moved out of the
attention's sum because both are linear.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn

from streamplace.learn.constructive.recurrence import lstm_states
from streamplace.learn.models.dream import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.models.dream.devices import N_FEATURES, N_READ, DeviceCosts
from streamplace.learn.models.dream.graphs import GraphBatch
from streamplace.learn.models.dream.prefixes import DecoderWeights, GraphArrays, PrefixTree
from streamplace.learn.parameters import normal


class Hop(nn.Module):
    """One update of one view, equation 1, with biases.

    h_u^(in) = tanh(W₁ h_u);
    h_v^(k+1) = tanh(W₂ [h_v : mean of h_u^(in) over the neighbours u of v]).
    """

    def __init__(self, n_in: int, m: int) -> None:
        super().__init__()
        self.incoming = nn.Linear(n_in, m)
        self.update_view = nn.Linear(n_in + m, m)

    def forward(self, h: Tensor, batch: GraphBatch, *, upward: bool) -> Tensor:
        """View [G, N, m] from the one before [G, N, in]; upward, from operators upstream."""
        into = batch.streams if upward else batch.streams.transpose(1, 2)
        total = into @ torch.tanh(self.incoming(h))
        pooled = total / into.sum(2, keepdim=True).clamp(min=1)
        return torch.tanh(self.update_view(torch.cat([h, pooled], dim=2)))


class GraphEncoder(nn.Module):
    """Operators as vectors [up : down] that know K hops in each direction, and one of the graph.

    Both views share their weights. If all rounds do as well, features are padded to m dimensions.
    """

    def __init__(self, config: GraphAllocatorConfig) -> None:
        super().__init__()
        m = config.width // 2
        sizes = [m] if config.tied else [len(config.features)] + [m] * (config.hops - 1)
        self.hops = nn.ModuleList(Hop(size, m) for size in sizes)
        self.rounds = config.hops
        self.pool = nn.Linear(config.width, config.width)

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Operators [G, N, W] and graphs [G, W]; the vectors of padding operators mean nothing."""
        first, features = cast(Hop, self.hops[0]).incoming.in_features, batch.features
        up = down = nn.functional.pad(features, (0, first - features.shape[2]))
        for k in range(self.rounds):
            hop = self.hops[k % len(self.hops)]
            up, down = hop(up, batch, upward=True), hop(down, batch, upward=False)
        nodes = torch.cat([up, down], dim=2)
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
        reading = self.recurrent.new_empty(len(self.recurrent), 0)
        states = lstm_states(inputs, nothing, start, self.recurrent, reading)
        nodes = states.transpose(0, 1)
        last = (batch.present.sum(1) - 1)[:, None, None].expand(-1, 1, nodes.shape[2])
        return nodes, nodes.gather(1, last).squeeze(1)


class Decoder(nn.Module):
    """Chooses devices operator by operator; ``upstream`` says whether D^(up) is an input."""

    def __init__(self, config: AllocatorConfig, *, upstream: bool) -> None:
        super().__init__()
        width, e, d = config.width, config.embedding, config.devices
        described = config.device_state
        self.devices = None if described else normal(d, e)
        self.read = nn.Linear(width, 4 * width)
        self.read_previous = None if described else nn.Linear(e, 4 * width, bias=False)
        of_numbers = upstream and not described
        self.read_upstream = nn.Linear(e, 4 * width, bias=False) if of_numbers else None
        self.read_state = nn.Linear(N_READ, 4 * width, bias=False) if described else None
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        self.state_layer = nn.Linear(width, width)
        self.context_layer = nn.Linear(width, width, bias=False)
        self.device_layer = nn.Linear(N_FEATURES, width, bias=False) if described else None
        self.output = nn.Linear(width, 1 if described else d)
        nn.init.orthogonal_(self.recurrent)

    def encode(self, batch: GraphBatch, nodes: Tensor, graph: Tensor) -> PrefixTree:
        """Prepare encoded operators [G, N, W] and graphs [G, W] for decoding."""
        layer = self.device_layer
        weights = DecoderWeights(
            inputs=self.read(nodes),
            recurrent=self.recurrent,
            reading=torch.cat(self._input_weights(), dim=1),
            keys=nodes,
            values=self.context_layer(nodes),
            start=graph,
            state=self.state_layer.weight,
            state_bias=self.state_layer.bias,
            output=self.output.weight,
            output_bias=self.output.bias,
            described=nodes.new_empty(0, nodes.shape[2]) if layer is None else layer.weight.t(),
        )
        return PrefixTree(weights, self._arrays(batch))

    def _arrays(self, batch: GraphBatch) -> GraphArrays:
        none = batch.inbound.new_empty(0, 0, 0)
        graphs = {
            "size": batch.present.sum(1),
            "upstream": none if self.read_upstream is None else batch.upstream,
            "allowed": batch.allowed,
            "lower": batch.lower,
            "mates": none if batch.mates is None else batch.mates,
            "rivals": none if batch.rivals is None else batch.rivals,
        }
        costs = dict.fromkeys(DeviceCosts._fields, none)
        costs |= dict.fromkeys(("least", "coming", "sent", "away"), none.flatten(1))
        if self.device_layer is not None:
            least = batch.load.amin(2).masked_fill(~batch.present, 0)
            others = batch.load[:, 0].isfinite().sum(1, keepdim=True) - 1
            costs = {
                "load": batch.load,
                "least": least,
                "coming": least.flip(1).cumsum(1).flip(1),
                "upstream": batch.upstream,
                "inbound": batch.inbound,
                "sent": batch.inbound.sum(1),
                "wire": batch.wire,
                "away": batch.wire.sum(2) / others.clamp(min=1),
            }
        arrays: dict[str, Any] = {n: part.contiguous().numpy() for n, part in graphs.items()}
        of_devices = {name: part.contiguous().numpy() for name, part in costs.items()}
        return GraphArrays(costs=DeviceCosts(**of_devices), **arrays)

    def _input_weights(self) -> list[Tensor]:
        """Weights [4W, ·] of the inputs from earlier decisions."""
        if self.read_state is not None:
            return [self.read_state.weight]
        layers = self.read_previous, self.read_upstream
        return [layer(self.devices).t() for layer in layers if layer is not None]


class EncoderDecoder(nn.Module):
    """P(placement | graph), equation 2; operators are in the order of decision."""

    def __init__(self, encoder: nn.Module, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, batch: GraphBatch) -> PrefixTree:
        """Encode graphs, once for all that is asked about them."""
        nodes, graph = self.encoder(batch)
        encoded: PrefixTree = self.decoder.encode(batch, nodes, graph)
        return encoded


def built_module(model: str, config: AllocatorConfig) -> EncoderDecoder:
    """Model of this name with fresh parameters from torch's generator."""
    encoder = (
        GraphEncoder(config)
        if isinstance(config, GraphAllocatorConfig)
        else SequenceEncoder(len(config.features), config.width)
    )
    return EncoderDecoder(encoder, Decoder(config, upstream=model == "dream"))
