"""The RNN placer in torch: a bidirectional LSTM reads, an LSTM with attention decides.

Shapes: G graphs, N nodes (padded), S samples of a graph, R = G · S rows, W width, D devices,
F features.

    e_1 … e_N  = BiLSTM(x_1 … x_N)                        each [forward : backward]
    s_t        = LSTM(s_(t-1), [e_t : device of node t - 1])     s_0 = [forward_N : backward_1]
    α_tj       = softmax over nodes j of  v · tanh(W₁ e_j + W₂ s_t)
    P(d_t)     = softmax over open devices of  C tanh(W₃ [s_t : Σ_j α_tj e_j] / T)

Attention is that of Bahdanau et al.; C and T delay a deterministic softmax. Problems become
sequences of nodes, in the order of the nodes' first operators.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import (
    CLOSED,
    ConstructivePolicy,
    EncodedBatch,
    Likelihood,
)
from streamplace.learn.constructive.recurrence import lstm_states
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.parameters import normal
from streamplace.learn.tensors.draws import gumbel
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.papers.groups import Trait
from streamplace.papers.groups.nodes import Nodes, Traits
from streamplace.papers.groups.placing import placed_in_batches
from streamplace.papers.hdp import HdpConfig

TRAITS: tuple[Trait, ...] = ("kind", "output", "work", "neighbours")
BATCH = 64
"""Problems that are placed at once."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadSequences:
    """G graphs as encoded sequences of nodes, computed once for all samples and steps."""

    present: Tensor  # [G, N] false for padding, which comes last
    open: Tensor  # [G, N, D] devices that a node may use; padding only the first
    values: Tensor  # [G, N, W] e
    inputs: Tensor  # [G, N, 4W] their part of the LSTM's input, and its bias
    recurrent: Tensor  # [4W, W] maps the state to the rest of it
    reading: Tensor  # [4W, D] maps the previous device to it
    keys: Tensor  # [G, N, W] W₁ e
    hidden_from: Tensor  # [G, 1, N] 0 for nodes, -∞ for padding
    start: Tensor  # [G, W] s_0


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

    def encode(self, features: Tensor, present: Tensor, opened: Tensor) -> ReadSequences:
        """Encode sequences of nodes with these features [G, N, F]."""
        lengths = present.sum(1)
        packed = pack_padded_sequence(features, lengths, batch_first=True, enforce_sorted=False)
        states, (last, _) = self.encoder(packed)
        most = features.shape[1]
        values, _ = pad_packed_sequence(states, batch_first=True, total_length=most)
        padding = torch.zeros_like(present, dtype=values.dtype)
        return ReadSequences(
            present=present,
            open=opened,
            values=values,
            inputs=self.read(values),
            recurrent=self.recurrent,
            reading=self.read_previous(self.devices).t(),
            keys=self.key(values),
            hidden_from=padding.masked_fill(~present, -torch.inf)[:, None],
            start=torch.cat([last[0], last[1]], dim=1),
        )

    def log_probabilities(self, read: ReadSequences, chosen: Tensor) -> Tensor:
        """Log-probabilities [G, S, N, D] of all decisions, given devices [G, S, N] before each."""
        graphs, samples, n = chosen.shape
        before = one_hot(chosen, self.config.devices).float().roll(1, dims=2)
        before[:, :, 0] = 0
        start = read.start.repeat_interleave(samples, dim=0)
        inputs, given = read.inputs.transpose(0, 1), before.permute(2, 0, 1, 3)
        states = lstm_states(inputs, given, start, read.recurrent, read.reading)
        by_graph = states.view(n, graphs, samples, -1).permute(1, 2, 0, 3).flatten(1, 2)
        opened = read.open[:, None].expand(-1, samples, -1, -1).flatten(1, 2)
        return self._decided(read, by_graph, opened).view(graphs, samples, n, -1)

    @torch.no_grad()
    def decide(self, read: ReadSequences, samples: int, keys: Tensor | None) -> Tensor:
        """Devices [G, S, N], step by step: drawn by keys [G], or without the likeliest."""
        graphs, n, devices = read.open.shape
        noise = None if keys is None else gumbel(keys, samples, n, devices)
        state = read.start.repeat_interleave(samples, dim=0)
        cell, before = torch.zeros_like(state), state.new_zeros(len(state), devices)
        decided = []
        for t in range(n):
            gates = read.inputs[:, t].repeat_interleave(samples, dim=0)
            gates.addmm_(state, read.recurrent.t()).addmm_(before, read.reading.t())
            state, cell = lstm_step(gates, cell)
            opened = read.open[:, t, None].expand(-1, samples, -1)
            log_p = self._decided(read, state.view(graphs, samples, -1), opened)
            decided.append((log_p if noise is None else log_p + noise[:, :, t]).argmax(-1))
            before = one_hot(decided[-1].flatten(), devices).float()
        return torch.stack(decided, dim=-1)

    def _decided(self, read: ReadSequences, states: Tensor, opened: Tensor) -> Tensor:
        """Attention and softmax: log-probabilities [G, X, D] from states [G, X, W]."""
        mixed = torch.tanh(read.keys[:, None] + self.query(states)[:, :, None])
        scores = self.attend(mixed).squeeze(-1) + read.hidden_from
        context = scores.softmax(-1) @ read.values
        logits = self.out(torch.cat([states, context], dim=-1)) / self.config.temperature
        clipped = self.config.clip * torch.tanh(logits)
        return clipped.masked_fill(~opened, CLOSED).log_softmax(-1)


def lstm_step(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """State and cell [R, H] after a step; ``gates`` [R, 4H] are the sum of all inputs."""
    i, f, o, g = gates.chunk(4, dim=1)
    after = (f.sigmoid() * cell).addcmul_(i.sigmoid(), g.tanh())
    return o.sigmoid() * after.tanh(), after


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSequences(EncodedBatch):
    """Encoded sequences."""

    module: HdpModule
    read: ReadSequences
    place: Tensor  # [G, N] decision about an operator
    first: Tensor  # [G, V] first operator of the node that a decision is about

    @property
    def order(self) -> Tensor:
        """Operators, those of one node together."""
        return self.place.argsort(dim=1, stable=True)

    def drawn(self, samples: int, keys: Tensor | None) -> Tensor:
        """Placements [G, S, N], drawn node by node, or without keys the likeliest."""
        decided = self.module.decide(self.read, samples, keys)
        end = torch.zeros_like(decided[:, :, :1])  # the decision about padding
        where = self.place[:, None].expand(-1, samples, -1)
        return torch.cat([decided, end], dim=2).gather(2, where)

    def likelihood(self, placements: Tensor) -> Likelihood:
        """Likelihood of placements, all steps at once."""
        first = self.first[:, None].expand(-1, placements.shape[1], -1)
        decided = placements.gather(2, first) * self.read.present[:, None]
        each = self.module.log_probabilities(self.read, decided)
        taken = (each * one_hot(decided, each.shape[3])).sum((2, 3))
        spread = -(each.exp() * each).sum((2, 3)) / self.read.present.sum(1)[:, None]
        return Likelihood(taken, spread)


class PreparedSequences:
    """Problems as sequences of nodes, in the order of the nodes' first operators."""

    def __init__(self, module: HdpModule, traits: Traits, problems: Sequence[Problem]) -> None:
        self._module, self._problems, config = module, problems, module.config
        parts = [Nodes.at_most(problem, config.groups) for problem in problems]
        self.sizes = np.array([[part.n_nodes, len(part.label)] for part in parts])
        p, (v, n) = len(parts), self.sizes.max(axis=0)
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
        self._columns = [torch.from_numpy(array) for array in arrays]

    def encoded(self, rows: Tensor, n: int, keys: Tensor) -> EncodedSequences:
        """Encode problems."""
        features, present, opened, place, first = (column[rows] for column in self._columns)
        v = min(n, present.shape[1])
        read = self._module.encode(features[:, :v], present[:, :v], opened[:, :v])
        return EncodedSequences(self._module, read, place[:, :n].clamp(max=v), first[:, :v])

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest device, node by node."""

        def drawn(some: Sequence[int]) -> Tensor:
            numbers = torch.tensor(some)
            n = int(self.sizes[some, 1].max())
            return self.encoded(numbers, n, numbers).drawn(1, None)

        return placed_in_batches(self._problems, rows, BATCH, drawn)


def traits_of(problems: Sequence[Problem], config: HdpConfig) -> Traits:
    """Traits of a training set."""
    nodes = [Nodes.at_most(problem, config.groups) for problem in problems]
    return Traits.of(nodes, TRAITS, places=config.groups)


def build(traits: Traits, config: HdpConfig) -> ConstructivePolicy:
    """Build the placer with fresh parameters from torch's generator."""
    return ConstructivePolicy(HdpModule(len(traits.names), config), traits, PreparedSequences)
