"""The paper's formulas, operator by operator, from a policy's parameters; slow and literal."""

import math
from typing import Any

import torch
from torch import Tensor

from streamplace.learn.models.dream.network import EncoderDecoder
from streamplace.model.problem import Problem


class Reference:
    """The text of section 3 for one problem, in float64; its parameters have gradients."""

    def __init__(
        self, policy: EncoderDecoder, problem: Problem, features: Any, hops: int = 2
    ) -> None:
        state = policy.state_dict()
        self.parameters = {n: p.double().clone().requires_grad_() for n, p in state.items()}
        self.problem, self.hops = problem, hops
        self.features = list(torch.as_tensor(features).double())
        instance = problem.instance
        self.ends = list(zip(instance.source.tolist(), instance.target.tolist(), strict=True))
        self.n_devices = len(self.parameters["decoder.devices"])

    def has(self, layer: str) -> bool:
        """Whether the policy has a layer."""
        return f"{layer}.weight" in self.parameters

    def linear(self, layer: str, x: Tensor) -> Tensor:
        """W x + b of a layer."""
        product = self.parameters[f"{layer}.weight"] @ x
        bias = f"{layer}.bias"
        return product + self.parameters[bias] if bias in self.parameters else product

    def graph_vectors(self) -> tuple[Tensor, Tensor]:
        """Vectors of operators [N, W] in operator order, and of the graph [W] (§3.1)."""
        views = []
        tied = not self.has("encoder.hops.1.incoming")
        for forward in (True, False):
            h = self.features
            if tied:  # one W₁ and one W₂, of m rows: so h⁰ has m dimensions as well
                m = len(self.parameters["encoder.hops.0.incoming.bias"])
                h = [torch.cat([f, f.new_zeros(m - len(f))]) for f in h]
            for k in range(self.hops):
                hop = f"encoder.hops.{0 if tied else k}"
                h = [self.one_update(hop, h, v, forward) for v in range(len(h))]
            views.append(h)
        nodes = torch.stack([torch.cat([up, down]) for up, down in zip(*views, strict=True)])
        return nodes, torch.stack([self.linear("encoder.pool", h) for h in nodes]).amax(0)

    def one_update(self, hop: str, h: list[Tensor], v: int, forward: bool) -> Tensor:
        """Equation 1 for one operator and one view."""
        arriving = []
        for u, w in self.ends:
            neighbour, here = (u, w) if forward else (w, u)
            if here == v:
                arriving.append(torch.tanh(self.linear(f"{hop}.incoming", h[neighbour])))
        nothing = torch.zeros_like(self.parameters[f"{hop}.incoming.bias"])
        mean = torch.stack(arriving).mean(0) if arriving else nothing
        return torch.tanh(self.linear(f"{hop}.update_view", torch.cat([h[v], mean])))

    def sequence_vectors(self, order: list[int]) -> tuple[Tensor, Tensor]:
        """Vectors of operators [N, W] in operator order, and of the graph [W], of B."""
        recurrent = self.parameters["encoder.recurrent"]
        state = cell = recurrent.new_zeros(recurrent.shape[1])
        nodes = {}
        for v in order:
            gates = self.linear("encoder.read", self.features[v])
            nodes[v] = state, cell = lstm(gates + recurrent @ state, cell)
        return torch.stack([nodes[v][0] for v in range(len(nodes))]), state

    def probabilities(self, placement: dict[int, int], order: list[int], canonical: bool) -> Tensor:
        """P(d_v | decisions before) [N, D], in the order of decision, along a placement (§3.2)."""
        graph = self.has("encoder.pool")
        nodes, state = self.graph_vectors() if graph else self.sequence_vectors(order)
        devices = self.parameters["decoder.devices"]
        cell, previous = torch.zeros_like(state), devices.new_zeros(devices.shape[1])
        decided: dict[int, int] = {}
        rows = []
        for v in order:
            gates = self.linear("decoder.read", nodes[v])
            gates = gates + self.linear("decoder.read_previous", previous)
            if self.has("decoder.read_upstream"):
                mean = self.upstream_mean(v, decided, devices)
                gates = gates + self.linear("decoder.read_upstream", mean)
            if self.has("decoder.read_state"):
                gates = gates + self.linear("decoder.read_state", self.device_state(v, decided))
            state, cell = lstm(gates + self.parameters["decoder.recurrent"] @ state, cell)
            attention = torch.stack([state @ h for h in nodes]).softmax(0)
            context = attention @ nodes
            hidden = self.linear("decoder.state_layer", state)
            hidden = hidden + self.linear("decoder.context_layer", context)
            score = self.linear("decoder.output", hidden.relu()).exp()
            open_devices = [self.is_open(d, decided, canonical) for d in range(self.n_devices)]
            score = score * torch.tensor(open_devices)
            rows.append(score / score.sum())
            decided[v] = placement[v]
            previous = devices[placement[v]]
        return torch.stack(rows)

    def log_probability(self, placement: dict[int, int], order: list[int]) -> Tensor:
        """The logarithm of equation 2."""
        rows = self.probabilities(placement, order, canonical=False)
        return torch.stack([rows[t, placement[v]].log() for t, v in enumerate(order)]).sum()

    def upstream_mean(self, v: int, decided: dict[int, int], devices: Tensor) -> Tensor:
        """D^(up)(v): mean embedding of the devices of v's upstream neighbours, once decided."""
        known = [devices[decided[u]] for u in {u for u, w in self.ends if w == v} if u in decided]
        return torch.stack(known).mean(0) if known else devices.new_zeros(devices.shape[1])

    def device_state(self, v: int, decided: dict[int, int]) -> Tensor:
        """Load of every device so far, and what it would send to v as a share of a link."""
        instance, d = self.problem.instance, self.problem.n_devices
        load, inbound = torch.zeros(2, self.n_devices, dtype=torch.float64)
        for u, device in decided.items():
            load[device] += instance.load[u, instance.device_type[device]]
        wire = instance.seconds_per_byte.sum() / max(d * (d - 1), 1)
        for (u, w), traffic in zip(self.ends, instance.traffic, strict=True):
            if w == v and u in decided:
                inbound[decided[u]] += traffic * wire
        return torch.cat([load, inbound])

    def is_open(self, device: int, decided: dict[int, int], canonical: bool) -> bool:
        """If canonical, of interchangeable devices only the first unused is open; without rules."""
        if device >= self.problem.n_devices:
            return False
        used, classes = set(decided.values()), self.problem.interchangeable
        alike = [d for d, c in enumerate(classes.tolist()) if c == classes[device]]
        return not canonical or all(other in used for other in alike if other < device)


def lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    i, f, o, g = gates.chunk(4)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def random_samples(epoch: int, memory_is_empty: bool) -> int:
    """20 in the first epoch, exponentially fewer, 20 while nothing good is known (§3.3)."""
    return 20 if memory_is_empty else round(20 * math.exp(-epoch))
