"""The RNN placer in torch: a bidirectional LSTM reads, an LSTM with attention decides.

Shapes: G graphs, N nodes (padded), S samples of a graph, W width, D devices, F features.

    e_1 … e_N  = BiLSTM(x_1 … x_N)                        each [forward : backward]
    s_t        = LSTM(s_(t-1), [e_t : device of node t - 1])     s_0 = [forward_N : backward_1]
    α_tj       = softmax over nodes j of  v · tanh(W₁ e_j + W₂ s_t)
    P(d_t)     = softmax over open devices of  C tanh(W₃ [s_t : Σ_j α_tj e_j] / T)

Attention as in Bahdanau et al.; C and T delay a deterministic softmax. Problems become
sequences of nodes, in the order of the nodes' first operators.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import (
    CLOSED,
    ConstructivePolicy,
    Decisions,
    chosen_devices,
)
from streamplace.learn.parameters import lstm, normal
from streamplace.model.problem import Problem
from streamplace.papers.groups.model import Trait
from streamplace.papers.groups.nodes import Nodes, Traits
from streamplace.papers.hdp.model import HdpConfig

TRAITS: tuple[Trait, ...] = ("kind", "output", "work", "neighbours")


class Sequences(NamedTuple):
    """G graphs as sequences of nodes."""

    features: Tensor  # [G, V, F]
    present: Tensor  # [G, V] false for padding, which comes last
    open: Tensor  # [G, V, D] devices that a node may use; padding only the first
    place: Tensor  # [G, N] decision about an operator, V for padding
    first: Tensor  # [G, V] first operator of the node that a decision is about


class HdpModule(nn.Module):
    """The policy."""

    def __init__(self, features: int, config: HdpConfig) -> None:
        super().__init__()
        width, devices = config.width, config.devices
        self.config = config
        self.encoder = nn.LSTM(features, width // 2, batch_first=True, bidirectional=True)
        self.devices = normal(devices, config.embedding)
        self.read = nn.Linear(width, 4 * width)
        self.read_previous = nn.Linear(config.embedding, 4 * width, bias=False)
        self.recurrent = nn.Parameter(torch.empty(4 * width, width))
        self.key = nn.Linear(width, width)
        self.query = nn.Linear(width, width, bias=False)
        self.attend = nn.Linear(width, 1, bias=False)
        self.out = nn.Linear(2 * width, devices)
        nn.init.orthogonal_(self.recurrent)

    def forward(
        self,
        batch: Sequences,
        samples: int,
        given: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Decisions:
        """Placements of a batch; see `streamplace.learn.constructive.policy`."""
        values, start = self.encode(batch)
        inputs, keys = self.read(values), self.key(values)[:, None]
        hidden_from = torch.zeros_like(values[..., 0]).masked_fill(~batch.present, -torch.inf)
        replayed = self._decided(batch, given)
        count = samples + replayed.shape[1]
        state = start[:, None].expand(-1, count, -1)
        cell, previous, each = torch.zeros_like(state), state[..., :1] * 0, []
        for t in range(inputs.shape[1]):
            gates = inputs[:, t, None] + linear(state, self.recurrent) + previous
            state, cell = lstm(gates, cell)
            scores = self.attend(torch.tanh(keys + self.query(state)[:, :, None])).squeeze(-1)
            attention = (scores + hidden_from[:, None]).softmax(-1)
            logits = self.out(torch.cat([state, attention @ values], dim=2))
            clipped = self.config.clip * torch.tanh(logits / self.config.temperature)
            log_p = clipped.masked_fill(~batch.open[:, t, None], CLOSED).log_softmax(-1)
            drawn = chosen_devices(log_p[:, :samples].detach(), generator)
            devices = torch.cat([drawn, replayed[:, :, t]], dim=1)
            previous = self.read_previous(self.devices[devices])
            each.append((log_p, devices))
        decided = torch.stack([devices for _, devices in each], dim=2)
        padded = torch.cat([decided, torch.zeros_like(decided[:, :, :1])], dim=2)
        where = batch.place[:, None].expand(-1, count, -1)
        return Decisions.of(padded.gather(2, where), each, batch.present.sum(1))

    def encode(self, batch: Sequences) -> tuple[Tensor, Tensor]:
        """Nodes e [G, V, W], and s_0 [G, W]."""
        lengths = batch.present.sum(1).cpu()  # torch packs by lengths on the CPU
        packed = pack_padded_sequence(
            batch.features, lengths, batch_first=True, enforce_sorted=False
        )
        states, (last, _) = self.encoder(packed)
        n = batch.features.shape[1]
        values, _ = pad_packed_sequence(states, batch_first=True, total_length=n)
        return values, torch.cat([last[0], last[1]], dim=1)

    def _decided(self, batch: Sequences, given: Tensor | None) -> Tensor:
        """Devices [G, S, V] of the decisions of placements; padding is on the first device."""
        if given is None:
            return batch.first[:, None][:, :0]
        first = batch.first[:, None].expand(-1, given.shape[1], -1)
        return given.gather(2, first) * batch.present[:, None]


class PreparedSequences:
    """Problems as sequences of nodes, in the order of the nodes' first operators."""

    def __init__(
        self,
        traits: Traits,
        config: HdpConfig,
        problems: Sequence[Problem],
        device: torch.device,
    ) -> None:
        parts = [Nodes.at_most(problem, config.groups) for problem in problems]
        self.sizes = np.array([len(part.label) for part in parts], np.int64)
        self._nodes = np.array([part.n_nodes for part in parts])
        p, v, n = len(parts), self._nodes.max(), self.sizes.max()
        features = np.zeros((p, v, len(traits.names)), np.float32)
        opened, present = np.zeros((p, v, config.devices), bool), np.zeros((p, v), bool)
        opened[:, :, 0] = True
        place, first = np.full((p, n), v), np.zeros((p, v), np.int64)
        for i, (problem, nodes) in enumerate(zip(problems, parts, strict=True)):
            check_devices(problem, config.devices)
            along = nodes.label[decision_order(problem, config.order)]
            order = np.array(list(dict.fromkeys(along.tolist())))
            size = len(order)
            features[i, :size], present[i, :size] = traits.rows(nodes)[order], True
            opened[i, :size] = False
            opened[i, :size, : problem.n_devices] = nodes.allowed[order]
            place[i, : len(along)] = np.argsort(order)[nodes.label]
            first[i, :size] = nodes.first[order]
        arrays = (features, present, opened, place, first)
        self._columns = Sequences(*(torch.from_numpy(array).to(device) for array in arrays))

    def batch(self, rows: Tensor, generator: torch.Generator | None = None) -> Sequences:
        """Some of the problems."""
        numbers = rows.cpu().numpy()
        v, n = int(self._nodes[numbers].max()), int(self.sizes[numbers].max())
        features, present, opened, place, first = (column[rows] for column in self._columns)
        return Sequences(
            features[:, :v], present[:, :v], opened[:, :v], place[:, :n].clamp(max=v), first[:, :v]
        )


def traits_of(problems: Sequence[Problem], config: HdpConfig) -> Traits:
    """Traits of a training set."""
    nodes = [Nodes.at_most(problem, config.groups) for problem in problems]
    return Traits.of(nodes, TRAITS, places=config.groups)


def build(traits: Traits, config: HdpConfig) -> ConstructivePolicy:
    """Build the placer with fresh parameters from torch's generator."""
    module = HdpModule(len(traits.names), config)
    return ConstructivePolicy(module, traits, partial(PreparedSequences, traits, config))
