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

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from streamplace.learn.constructive.policy import Likelihood
from streamplace.learn.constructive.recurrence import lstm_states, lstm_step, one_hot
from streamplace.learn.models.dream import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.models.dream.graphs import GraphBatch
from streamplace.learn.models.dream.prefixes import (
    CLOSED,
    DecoderWeights,
    GraphArrays,
    PrefixTree,
    likelihood,
)
from streamplace.learn.parameters import normal
from streamplace.learn.tensors.draws import gumbel


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
        nodes = lstm_states(inputs, nothing, start, self.recurrent).transpose(0, 1)
        last = (batch.present.sum(1) - 1)[:, None, None].expand(-1, 1, nodes.shape[2])
        return nodes, nodes.gather(1, last).squeeze(1)


@dataclass(frozen=True, slots=True, eq=False)
class StepInputs:
    """Inputs of T steps from earlier decisions, each [G, T, S, D]."""

    previous: Tensor  # one-hot decision of the step before, zero at the first
    loads: Tensor  # load of every device
    used: Tensor  # number of operators on every device
    upstream: Tensor  # share of the upstream operators on each device
    inbound: Tensor  # transfer from each device to this operator
    rules: tuple[Tensor, ...]  # mates and rivals on each device, if there are rules


class EarlierDecisions:
    """Linear maps from decisions to the inputs of later steps."""

    def __init__(self, batch: GraphBatch) -> None:
        maps = [batch.upstream, batch.inbound]
        if batch.mates is not None and batch.rivals is not None:
            maps += [batch.mates, batch.rivals]
        self.batch = batch
        self.maps = torch.stack(maps, dim=2)  # [G, N, maps, N]

    def all(self, chosen: Tensor) -> StepInputs:
        """Inputs of all steps from all decisions ``chosen`` [G, N, S, D]."""
        before = torch.ones_like(self.batch.inbound[0]).tril(-1)
        both = torch.stack([self.batch.load[:, :, None] * chosen, chosen])
        loads, used = (before @ both.flatten(3)).view_as(both)
        previous = torch.nn.functional.pad(chosen[:, :-1], (0, 0, 0, 0, 1, 0))
        mapped = self.maps.flatten(1, 2) @ chosen.flatten(2)
        upstream, inbound, *rules = mapped.view(*self.maps.shape[:3], *chosen.shape[2:]).unbind(2)
        return StepInputs(previous, loads, used, upstream, inbound, tuple(rules))

    def open(self, inputs: StepInputs, steps: slice) -> Tensor:
        """Open devices: allowed, and of interchangeable unused ones only the first.

        An operator follows a mate that is placed, and avoids the devices of its rivals. If no
        device remains, all allowed ones are open and the placement has to be repaired.
        """
        allowed = self.batch.allowed[:, steps, None]
        idle = (inputs.used == 0).to(inputs.used.dtype)
        earlier_idle = idle.flatten(1, 2) @ self.batch.lower
        opened = allowed & (earlier_idle.view_as(idle) == 0)
        if not inputs.rules:
            return opened
        mates, rivals = inputs.rules
        opened = torch.where((mates > 0).any(-1, keepdim=True), mates > 0, opened)
        opened = opened & (rivals == 0)
        return torch.where(opened.any(-1, keepdim=True), opened, allowed)


class DecisionsSoFar:
    """Decisions that are made one after the other, and running sums of them."""

    def __init__(self, earlier: EarlierDecisions, samples: int) -> None:
        self._earlier, self._batch, self.step = earlier, earlier.batch, 0
        graphs, n, devices = self._batch.allowed.shape
        self._chosen = self._batch.load.new_zeros(graphs, n, samples, devices)
        self._loads = self._used = self._previous = torch.zeros_like(self._chosen[:, 0])

    def inputs(self) -> StepInputs:
        """Inputs of the present step."""
        t = self.step
        mapped = self._earlier.maps[:, t, :, :t] @ self._chosen[:, :t].flatten(2)
        shape = (*mapped.shape[:2], *self._chosen.shape[2:])
        previous, loads, used = (p[:, None] for p in (self._previous, self._loads, self._used))
        upstream, inbound, *rules = mapped.view(shape)[:, :, None].unbind(1)
        return StepInputs(previous, loads, used, upstream, inbound, tuple(rules))

    def decide(self, devices: Tensor) -> None:
        """Take devices [G, S] for the present step, and go on to the next."""
        t = self.step
        self._previous = one_hot(devices, self._chosen.shape[3])
        self._chosen[:, t] = self._previous
        self._used = self._used + self._previous
        self._loads = torch.addcmul(self._loads, self._batch.load[:, t, None], self._previous)
        self.step += 1


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
    tree: PrefixTree | None  # all that was decided about the graphs on a CPU


class Decoder(nn.Module):
    """Chooses devices operator by operator; ``upstream`` says whether D^(up) is an input."""

    def __init__(self, config: AllocatorConfig, *, upstream: bool) -> None:
        super().__init__()
        width, e, d = config.width, config.embedding, config.devices
        self.devices = normal(d, e)
        self.read = nn.Linear(width, 4 * width)
        self.read_previous = nn.Linear(e, 4 * width, bias=False)
        self.read_upstream = nn.Linear(e, 4 * width, bias=False) if upstream else None
        of_state = config.device_state
        self.read_state = nn.Linear(2 * d, 4 * width, bias=False) if of_state else None
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        self.state_layer = nn.Linear(width, width)
        self.context_layer = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, d)
        nn.init.orthogonal_(self.recurrent)

    def encode(self, batch: GraphBatch, nodes: Tensor, graph: Tensor) -> Encoded:
        """Prepare encoded operators [G, N, W] and graphs [G, W] for decoding."""
        padding = torch.zeros_like(batch.present, dtype=nodes.dtype)
        inputs, values = self.read(nodes), self.context_layer(nodes)
        weight = torch.cat([self.recurrent, *self._input_weights()], dim=1)
        return Encoded(
            earlier=EarlierDecisions(batch),
            inputs=inputs,
            weight=weight,
            keys=nodes.transpose(1, 2),
            values=values,
            hidden_from=padding.masked_fill(~batch.present, -torch.inf)[:, None],
            start=graph,
            tree=self.tree(batch, inputs, weight, nodes, values, graph),
        )

    def tree(self, batch: GraphBatch, *encoded: Tensor) -> PrefixTree | None:
        """What a CPU will have decided about encoded graphs; they begin as `DecoderWeights` do."""
        if encoded[0].is_cuda:
            return None
        weights = DecoderWeights(
            *encoded, *self.state_layer.parameters(), *self.output.parameters()
        )
        none = batch.inbound.new_empty(0, 0, 0)
        graphs = {
            "size": batch.present.sum(1),
            "load": batch.load,
            "upstream": batch.upstream if self.read_upstream is not None else none,
            "inbound": batch.inbound if self.read_state is not None else none,
            "allowed": batch.allowed,
            "lower": batch.lower,
            "mates": none if batch.mates is None else batch.mates,
            "rivals": none if batch.rivals is None else batch.rivals,
        }
        arrays = {name: part.contiguous().numpy() for name, part in graphs.items()}
        return PrefixTree(weights, GraphArrays(**arrays))

    def step(
        self, encoded: Encoded, so_far: DecisionsSoFar, state: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities [G, S, D] of the next decision; the state and cell [R, W] after it."""
        inputs, t = so_far.inputs(), so_far.step
        opened = encoded.earlier.open(inputs, slice(t, t + 1)).squeeze(1)
        graphs, samples, _ = opened.shape
        joined = torch.cat([state, self._read(inputs).flatten(0, 2)], dim=1)
        gates = (joined @ encoded.weight.t()).view(graphs, samples, -1)
        gates = gates.add_(encoded.inputs[:, t, None]).flatten(0, 1)
        state, cell = lstm_step(gates, cell)
        states = state.view(graphs, samples, -1)
        return self._log_probabilities(encoded, states, opened), state, cell

    def all_steps(self, encoded: Encoded, chosen: Tensor) -> Tensor:
        """Log-probabilities [G, N, S, D] of all decisions, given those before each."""
        graphs, n, samples, _ = chosen.shape
        inputs = encoded.earlier.all(chosen)
        opened = encoded.earlier.open(inputs, slice(None))
        start = encoded.start.repeat_interleave(samples, dim=0)
        read = self._read(inputs).transpose(0, 1)
        states = lstm_states(encoded.inputs.transpose(0, 1), read, start, encoded.weight)
        by_graph = states.reshape(n, graphs, samples, -1).transpose(0, 1).flatten(1, 2)
        log_p = self._log_probabilities(encoded, by_graph, opened.flatten(1, 2))
        return log_p.view(graphs, n, samples, -1)

    def _input_weights(self) -> list[Tensor]:
        """Weights [4W, ·] of the previous device, upstream devices and the devices' state."""
        parts = [self.read_previous(self.devices).t()]
        if self.read_upstream is not None:
            parts.append(self.read_upstream(self.devices).t())
        if self.read_state is not None:
            parts.append(self.read_state.weight)
        return parts

    def _read(self, inputs: StepInputs) -> Tensor:
        """The LSTM's inputs from earlier decisions [G, T, S, K], see `Encoded.weight`."""
        parts = [inputs.previous]
        if self.read_upstream is not None:
            parts.append(inputs.upstream)
        if self.read_state is not None:
            parts += [inputs.loads, inputs.inbound]
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
        if encoded.tree is not None:
            return Likelihood(*likelihood(encoded.tree, placements))
        chosen = one_hot(placements.transpose(1, 2), batch.allowed.shape[2]).to(batch.load.dtype)
        each = self.decoder.all_steps(encoded, chosen)
        taken = (each * chosen).sum((1, 3))
        spread = -(each.exp() * each).sum((1, 3)) / batch.present.sum(1)[:, None]
        return Likelihood(taken, spread)

    @torch.no_grad()
    def decide(self, encoded: Encoded, samples: int, keys: Tensor | None) -> Tensor:
        """Placements [G, S, N], step by step: drawn by keys [G]; without keys, the likeliest."""
        graphs, n, devices = encoded.earlier.batch.allowed.shape
        if keys is None:
            noise = encoded.start.new_zeros(graphs, samples, n, devices)
        else:
            noise = gumbel(keys, samples, n, devices)
        if encoded.tree is not None:
            return encoded.tree.drawn(noise)
        so_far = DecisionsSoFar(encoded.earlier, samples)
        state = encoded.start.detach().repeat_interleave(samples, dim=0)
        cell = torch.zeros_like(state)
        decided = []
        for t in range(n):
            log_p, state, cell = self.decoder.step(encoded, so_far, state, cell)
            decided.append((log_p + noise[:, :, t]).argmax(-1))
            so_far.decide(decided[-1])
        return torch.stack(decided, dim=-1)


def built_module(model: str, config: AllocatorConfig) -> EncoderDecoder:
    """Model of this name with fresh parameters from torch's generator."""
    encoder = (
        GraphEncoder(config)
        if isinstance(config, GraphAllocatorConfig)
        else SequenceEncoder(len(config.features), config.width)
    )
    return EncoderDecoder(encoder, Decoder(config, upstream=model == "dream"))
