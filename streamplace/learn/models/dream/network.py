"""The DREAM paper's models in torch: encoders of graphs (§3.1) and of sequences, and the decoder.

Shapes: G graphs, N operators and M streams (padded), m dimensions per view, W = 2 m, S samples per
graph, D devices, F features of a device.
"""

from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from streamplace.learn.constructive.policy import CLOSED, Decisions, FeatureScale, chosen_devices
from streamplace.learn.env import Batch, Environment, Observation
from streamplace.learn.models.dream.additive import (
    AdditiveDecoder,
    Encoded,
    EncodedOperators,
    FeatureMap,
    Generator,
    MaxPooling,
    neighbours,
)
from streamplace.learn.models.dream.devices import N_FEATURES, N_READ, DeviceFeatures, summary
from streamplace.learn.models.dream.features import operator_features
from streamplace.learn.models.dream.model import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.parameters import lstm, normal


class Hop(nn.Module):
    """One update of one view, equation 1, with biases.

    h_u^(in) = tanh(W₁ h_u);
    h_v^(k+1) = tanh(W₂ [h_v : mean of h_u^(in) over the neighbours u of v]).
    """

    def __init__(self, n_in: int, m: int) -> None:
        super().__init__()
        self.incoming = nn.Linear(n_in, m)
        self.update_view = nn.Linear(n_in + m, m)

    def forward(self, h: Tensor, into: Tensor) -> Tensor:
        """View [G, N, m] from the one before [G, N, in], by the streams [G, N, N] into each."""
        total = into @ torch.tanh(self.incoming(h))
        pooled = total / into.sum(2, keepdim=True).clamp(min=1)
        return torch.tanh(self.update_view(torch.cat([h, pooled], dim=2)))


class GraphEncoder(nn.Module):
    """Operators as vectors [up : down] of K hops in each direction, and a vector of the graph.

    Both views share their weights. If all rounds do as well, features are padded to m dimensions.
    By GraphSAGE, the vectors have length 1.
    """

    def __init__(self, config: GraphAllocatorConfig) -> None:
        super().__init__()
        m, self.by_maximum = config.width // 2, config.pooling == "max"
        sizes = [m] if config.tied else [len(config.features)] + [m] * (config.hops - 1)
        self.hops = nn.ModuleList((MaxPooling if self.by_maximum else Hop)(n, m) for n in sizes)
        self.rounds = config.hops
        self.pool = nn.Linear(config.width, config.width)

    def forward(self, features: Tensor, batch: Batch, generator: Generator) -> Encoded:
        """Operators [G, N, W] and graphs [G, W]; the vectors of padding operators mean nothing."""
        first = cast(Hop, self.hops[0]).incoming.in_features
        up = down = nn.functional.pad(features, (0, first - features.shape[2]))
        views = batch.streams, batch.streams.transpose(1, 2)
        for k in range(self.rounds):
            hop, into = self.hops[k % len(self.hops)], views
            if self.by_maximum:
                into = neighbours(views[0], generator), neighbours(views[1], generator)
                up, down = (up.relu(), down.relu()) if k else (up, down)
            up, down = hop(up, into[0]), hop(down, into[1])
        nodes = torch.cat([up, down], dim=2)
        nodes = nn.functional.normalize(nodes, dim=2) if self.by_maximum else nodes
        pooled = cast(Tensor, self.pool(nodes))
        graph = pooled.masked_fill(~batch.present[:, :, None], -torch.inf).amax(1)
        return batch.steps(nodes), graph


class SequenceEncoder(nn.Module):
    """Operators as the states of an LSTM that reads their features; the graph as the last state."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.read = nn.Linear(features, 4 * width)
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        nn.init.orthogonal_(self.recurrent)

    def forward(self, features: Tensor, batch: Batch, generator: Generator) -> Encoded:
        """Operators [G, N, W] in the order of decision, and graphs [G, W]."""
        inputs, states = self.read(batch.steps(features)), []
        state = cell = inputs.new_zeros(len(inputs), self.recurrent.shape[1])
        for gates in inputs.unbind(1):
            state, cell = lstm(gates + linear(state, self.recurrent), cell)
            states.append(state)
        nodes = torch.stack(states, dim=1)
        last = (batch.present.sum(1) - 1)[:, None, None].expand(-1, 1, nodes.shape[2])
        return nodes, nodes.gather(1, last).squeeze(1)


class Decoder(nn.Module):
    """Chooses devices operator by operator; ``upstream`` says whether D^(up) is an input (§3.2)."""

    def __init__(self, config: AllocatorConfig, *, upstream: bool) -> None:
        super().__init__()
        width, e, d = config.width, config.embedding, config.devices
        described = config.device_state
        self.devices = None if described else normal(d, e)
        self.read = nn.Linear(width, 4 * width)
        reads = config.previous and not described
        self.read_previous = nn.Linear(e, 4 * width, bias=False) if reads else None
        of_numbers = upstream and not described
        self.read_upstream = nn.Linear(e, 4 * width, bias=False) if of_numbers else None
        self.read_state = nn.Linear(N_READ, 4 * width, bias=False) if described else None
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        self.state_layer = nn.Linear(width, width)
        self.context_layer = nn.Linear(width, width, bias=False)
        self.device_layer = nn.Linear(N_FEATURES, width, bias=False) if described else None
        self.output = nn.Linear(width, 1 if described else d)
        self.follows = described or config.previous or upstream
        nn.init.orthogonal_(self.recurrent)

    def values(self, nodes: Tensor) -> Tensor:
        """`EncodedOperators.values` of encoded operators."""
        return cast(Tensor, self.context_layer(nodes))

    def step(
        self, operators: EncodedOperators, t: int, seen: Observation, state: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities [G, S, D] of decision t, and the LSTM's state and cell [G, S, W].

        s_t = LSTM(s_(t-1), [h_v : D^(up)(v) : e(d_(t-1))]), where s_0 is the graph's vector, e
        embeds devices and D^(up)(v) is the mean of e over the devices of v's upstream operators;
        α_j = s_t · h_j, α̃ = softmax(α) over the operators of the graph;
        P(d_v) = softmax(MLP([s_t : Σ_j α̃_j h_j])) over the devices that are open.

        Devices that are ``described`` [G, S, D, F] take the place of their embeddings: the LSTM
        reads their summary, and the MLP each of them.
        """
        described = seen.get("described")
        gates = operators.inputs[:, t, None] + linear(state, self.recurrent)
        for layer, devices in (
            (self.read_previous, seen["previous"]),
            (self.read_upstream, seen["upstream"]),
        ):
            if layer is not None and self.devices is not None:
                gates = gates + layer(devices @ self.devices[: devices.shape[2]])
        if self.read_state is not None and described is not None:
            gates = gates + self.read_state(summary(described, seen))
        state, cell = lstm(gates, cell)
        scores = torch.baddbmm(operators.hidden_from, state, operators.nodes.transpose(1, 2))
        hidden = self.state_layer(state) + scores.softmax(-1) @ operators.values
        if self.device_layer is not None and described is not None:
            each = (hidden[:, :, None] + self.device_layer(described)).relu()
            logits = self.output(each).squeeze(-1)
        else:
            logits = self.output(hidden.relu())[..., : seen["open"].shape[2]]
        return logits.masked_fill(~seen["open"], CLOSED).log_softmax(-1), state, cell


class EncoderDecoder(nn.Module):
    """P(placement | graph), equation 2."""

    mean: Tensor
    std: Tensor

    def __init__(
        self, encoder: nn.Module, decoder: Any, scale: FeatureScale, config: AllocatorConfig
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.names = encoder, decoder, scale.names
        self._described, self._all_open = config.device_state, config.renumbered
        self.register_buffer("mean", torch.from_numpy(scale.mean), persistent=False)
        self.register_buffer("std", torch.from_numpy(scale.std), persistent=False)

    def forward(
        self,
        batch: Batch,
        samples: int,
        given: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Decisions:
        """Placements of a batch; see `streamplace.learn.constructive.policy`."""
        features = ((operator_features(batch, self.names) - self.mean) / self.std).float()
        units = batch.in_yardsticks() if self._described else batch
        alike = torch.zeros_like(batch.alike) if self._all_open else batch.alike
        env = Environment(replace(units, alike=alike))
        nodes, graph = self.encoder(features, batch, generator)
        padding = ~batch.steps(batch.present)[:, None]
        hidden_from = nodes.new_zeros(padding.shape).masked_fill(padding, -torch.inf)
        values = self.decoder.values(nodes)
        operators = EncodedOperators(self.decoder.read(nodes), nodes, hidden_from, values)
        if given is None:
            given = batch.order[:, None][:, :0]
        replayed = batch.along(batch.canonical(given))
        count = samples + replayed.shape[1]
        seen = env.reset(count)
        devices = DeviceFeatures(env) if self._described else None
        state = graph[:, None].expand(-1, count if self.decoder.follows else 1, -1)
        cell, each = torch.zeros_like(state), []
        for t in range(nodes.shape[1]):
            if devices is not None:
                seen["described"] = devices.of(seen)
            log_p, state, cell = self.decoder.step(operators, t, seen, state, cell)
            drawn = chosen_devices(log_p[:, :samples].detach(), generator)
            chosen = torch.cat([drawn, replayed[:, :, t]], dim=1)
            each.append((log_p, chosen))
            seen = env.step(chosen)
        return Decisions.of(env.placements, each, batch.present.sum(1))


def built_module(model: str, config: AllocatorConfig, scale: FeatureScale) -> EncoderDecoder:
    """Model of this name with fresh parameters from torch's generator."""
    upstream, additive = model == "dream", config.attention == "additive"
    if isinstance(config, GraphAllocatorConfig):
        encoder: nn.Module = GraphEncoder(config)
    else:
        encoder = (FeatureMap if additive else SequenceEncoder)(len(config.features), config.width)
    kind = AdditiveDecoder if additive else Decoder
    return EncoderDecoder(encoder, kind(config, upstream=upstream), scale, config)
