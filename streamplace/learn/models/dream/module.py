"""The DREAM paper's models in torch: encoders of graphs (§3.1) and of sequences, and the decoder.

Shapes: G graphs, N operators (padded), V = G · N, E streams, m dimensions per view, W = 2 m, T
steps, S samples per graph, R = G · S rows, D devices.

The graph-aware decoder (§3.2) is an LSTM over decisions with attention and an MLP:

    s_t = LSTM(s_(t-1), [h_v : D^(up)(v) : e(d_(t-1))]), where s_0 is the graph's vector, e embeds
    devices and D^(up)(v) is the mean of e over the devices of v's upstream operators;
    α_j = s_t · h_j, α̃ = softmax(α) over the operators of the graph;
    P(d_v) = softmax(MLP([s_t : Σ_j α̃_j h_j])) over the devices that are open.

The inputs from earlier decisions are linear maps of these in one-hot form, so the same function
serves a single step and all steps at once. Linear maps of an operator are computed once per graph:
its part of the LSTM's input, and its part of the MLP's first layer, which can be moved out of the
attention's sum because both are linear.
"""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from streamplace.learn.constructive.policy import Likelihood
from streamplace.learn.constructive.recurrence import lstm_states, lstm_step, one_hot
from streamplace.learn.models.dream.graphs import OPERATOR_FEATURES, STREAM_FEATURES, GraphBatch
from streamplace.learn.models.dream.options import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.parameters import normal

CLOSED = -1e9
"""Logit of a device that is not open."""


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


@dataclass(frozen=True, slots=True, eq=False)
class StepInputs:
    """Inputs of T steps from earlier decisions."""

    previous: Tensor  # [G, T, S, D] one-hot decision of the step before, zero at the first
    upstream: Tensor  # [G, T, S, D] share of the upstream operators on each device
    open: Tensor  # [G, T, S, D] whether the decision may fall on a device


class EarlierDecisions:
    """Linear maps from decisions to the inputs of later steps."""

    def __init__(self, batch: GraphBatch) -> None:
        n, like = batch.n_operators, batch.upstream
        before = torch.ones(n, n, dtype=like.dtype, device=like.device).tril(-1)
        previous = before.triu(-1)
        maps = [previous.expand_as(like), like, before.expand_as(like)]
        if batch.mates is not None and batch.rivals is not None:
            maps += [batch.mates, batch.rivals]
        self.batch = batch
        self.before = before
        self.maps = torch.stack(maps, dim=1)

    def inputs(self, chosen: Tensor, steps: slice) -> StepInputs:
        """Inputs of these steps from the decisions ``chosen`` [G, N, S, D] made before them."""
        maps = self.maps[:, :, steps]
        mapped = maps.flatten(1, 2) @ chosen.flatten(2)
        previous, upstream, used, *rules = mapped.view(*maps.shape[:3], *chosen.shape[2:]).unbind(1)
        return StepInputs(previous, upstream, self._open(used, rules, steps))

    def device_state(self, chosen: Tensor, steps: slice) -> Tensor:
        """Load of every device so far and transfer from it to this operator, [G, T, S, 2 D]."""
        load = self.batch.load[:, :, None] * chosen
        loads = self.before[steps] @ load.flatten(2)
        inbound = self.batch.inbound[:, steps] @ chosen.flatten(2)
        shape = (*loads.shape[:2], *chosen.shape[2:])
        return torch.cat([loads.view(shape), inbound.view(shape)], dim=-1)

    def _open(self, used: Tensor, rules: list[Tensor], steps: slice) -> Tensor:
        """Open devices: allowed, and of interchangeable unused ones only the first.

        An operator follows a mate that is placed, and avoids the devices of its rivals. If no
        device remains, all allowed ones are open and the placement has to be repaired.
        """
        allowed = self.batch.allowed[:, steps, None]
        idle = (used == 0).to(used.dtype)
        earlier_idle = idle.flatten(1, 2) @ self.batch.lower
        opened = allowed & (earlier_idle.view_as(used) == 0)
        if not rules:
            return opened
        mates, rivals = rules
        opened = torch.where((mates > 0).any(-1, keepdim=True), mates > 0, opened)
        opened = opened & (rivals == 0)
        return torch.where(opened.any(-1, keepdim=True), opened, allowed)


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """Sizes and inputs of a decoder."""

    width: int
    devices: int
    embedding: int  # dimensions of a device's embedding
    upstream: bool  # whether D^(up) is an input
    device_state: bool  # whether loads and incoming transfers of the devices are inputs


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Encoded graphs for the decoder, computed once for all samples and steps."""

    earlier: EarlierDecisions
    inputs: Tensor  # [G, N, 4W] operators' part of the LSTM's input, and its bias
    weight: Tensor  # [4W, W + K] maps the state and earlier decisions to the rest of the input
    keys: Tensor  # [G, W, N] operators, transposed
    values: Tensor  # [G, N, W] operators' part of the MLP's first layer
    hidden_from: Tensor  # [G, 1, N] 0 for operators, -∞ for padding
    start: Tensor  # [G, W] s_0


class Decoder(nn.Module):
    """Chooses devices operator by operator."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        width, e, d = shape.width, shape.embedding, shape.devices
        self.shape = shape
        self.devices = normal(d, e)
        self.read = nn.Linear(width, 4 * width)
        self.read_previous = nn.Linear(e, 4 * width, bias=False)
        self.read_upstream = nn.Linear(e, 4 * width, bias=False) if shape.upstream else None
        self.read_state = nn.Linear(2 * d, 4 * width, bias=False) if shape.device_state else None
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        self.state_layer = nn.Linear(width, width)
        self.context_layer = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, d)
        nn.init.orthogonal_(self.recurrent)

    def encode(self, batch: GraphBatch, nodes: Tensor, graph: Tensor) -> Encoded:
        """Prepare encoded operators [G, N, W] and graphs [G, W] for decoding."""
        padding = torch.zeros_like(batch.present, dtype=nodes.dtype)
        return Encoded(
            earlier=EarlierDecisions(batch),
            inputs=self.read(nodes),
            weight=torch.cat([self.recurrent, *self._input_weights()], dim=1),
            keys=nodes.transpose(1, 2),
            values=self.context_layer(nodes),
            hidden_from=padding.masked_fill(~batch.present, -torch.inf)[:, None],
            start=graph,
        )

    def step(
        self, encoded: Encoded, chosen: Tensor, t: int, state: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities [G, S, D] of decision t, and the state and cell [R, W] after it."""
        inputs = encoded.earlier.inputs(chosen, slice(t, t + 1))
        read = self._read(encoded, inputs, chosen, slice(t, t + 1)).flatten(0, 2)
        gates = encoded.inputs[:, t].repeat_interleave(chosen.shape[2], dim=0)
        gates.addmm_(torch.cat([state, read], dim=1), encoded.weight.t())
        state, cell = lstm_step(gates, cell)
        states = state.view(chosen.shape[0], chosen.shape[2], -1)
        return self._log_probabilities(encoded, states, inputs.open.squeeze(1)), state, cell

    def all_steps(self, encoded: Encoded, chosen: Tensor) -> Tensor:
        """Log-probabilities [G, N, S, D] of all decisions, given those before each."""
        (graphs, n, samples, _), every = chosen.shape, slice(None)
        inputs = encoded.earlier.inputs(chosen, every)
        read = self._read(encoded, inputs, chosen, every).transpose(0, 1)
        start = encoded.start.repeat_interleave(samples, dim=0)
        states = lstm_states(encoded.inputs.transpose(0, 1), read, start, encoded.weight)
        by_graph = states.reshape(n, graphs, samples, -1).transpose(0, 1).flatten(1, 2)
        log_p = self._log_probabilities(encoded, by_graph, inputs.open.flatten(1, 2))
        return log_p.view(graphs, n, samples, -1)

    def _input_weights(self) -> list[Tensor]:
        """Weights [4W, ·] of the previous device, upstream devices and the devices' state."""
        parts = [self.read_previous(self.devices).t()]
        if self.read_upstream is not None:
            parts.append(self.read_upstream(self.devices).t())
        if self.read_state is not None:
            parts.append(self.read_state.weight)
        return parts

    def _read(self, encoded: Encoded, inputs: StepInputs, chosen: Tensor, steps: slice) -> Tensor:
        """The LSTM's inputs from earlier decisions [G, T, S, K], see `Encoded.weight`."""
        parts = [inputs.previous]
        if self.shape.upstream:
            parts.append(inputs.upstream)
        if self.shape.device_state:
            parts.append(encoded.earlier.device_state(chosen, steps))
        return torch.cat(parts, dim=-1)

    def _log_probabilities(self, encoded: Encoded, states: Tensor, opened: Tensor) -> Tensor:
        """Attention, MLP and softmax: [G, X, D] from states [G, X, W]."""
        scores = torch.baddbmm(encoded.hidden_from, states, encoded.keys)
        context = scores.softmax(-1) @ encoded.values
        hidden = torch.relu(self.state_layer(states) + context)
        return self.output(hidden).masked_fill(~opened, CLOSED).log_softmax(-1)


class EncoderDecoder(nn.Module):
    """P(placement | graph), equation 2; operators are in the order of decision."""

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
