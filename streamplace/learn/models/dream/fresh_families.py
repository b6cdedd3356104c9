"""Families of graphs made as tensors, by draws that depend on a key alone.

Operators are numbered as they are decided about: breadth first, ties in random order.

Shapes: P graphs of an epoch, G of a batch, N operators.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from streamplace.families.branched import STANDARD, Branched, is_small
from streamplace.families.random_dag import RandomDag
from streamplace.learn.tensors.draws import below, children, uniform
from streamplace.model.arrays import Longs
from streamplace.model.units import bandwidth_bps

FAMILY = Branched()
NUMBERS = [i for i, one in enumerate(STANDARD) for _ in range(1 if is_small(one) else 2)]
"""Numbers of topologies, as often as the standard benchmark has them."""
DAGS = [RandomDag(operators=n, devices=v) for n in range(4, 33) for v in range(2, 6)]
"""Random layered graphs of 4 to 32 operators that fill 2 to 5 devices, equally often."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Graphs at their rates."""

    load: Tensor  # [G, N] share of a device
    out: Tensor  # [G, N] bytes/s out of an operator
    flows: Tensor  # [G, N, N] bytes/s into the row's operator from the column's
    streams: Tensor  # [G, N, N] 1 where the column's operator sends to the row's
    present: Tensor  # [G, N]

    def where(self, chosen: Tensor, other: "Drawn") -> "Drawn":
        """These graphs where chosen [G], and elsewhere the others."""
        one, wide = chosen[:, None], chosen[:, None, None]
        return Drawn(
            torch.where(one, self.load, other.load),
            torch.where(one, self.out, other.out),
            torch.where(wide, self.flows, other.flows),
            torch.where(wide, self.streams, other.streams),
            torch.where(one, self.present, other.present),
        )


class BranchedGraphs:
    """Graphs of `streamplace.families.branched`, but for the rounding of instructions.

    The source comes first, then stage by stage all branches, which differ by nothing but their
    draws.
    """

    def __init__(self, count: int, rates: Tensor, speed: float) -> None:
        number = np.resize(NUMBERS, count)
        self._rates, self._speed = rates, speed
        self._shape = torch.tensor(STANDARD, device=rates.device)[number]  # [P, 3]
        self._small = self._shape[:, 2] <= 2
        self.sizes = self._shape[:, 0] * self._shape[:, 1] + 2

    def drawn(self, rows: Tensor, n: int, keys: Tensor) -> Drawn:
        """Draw graphs by keys [G], of at most n operators."""
        k, d, used = self._shape[rows].unbind(1)
        of_graph, of_stages, of_payloads = children(keys, 3)
        which, even, most = uniform(of_graph, 3).unbind(1)
        rate = self._rates[below(which, torch.full_like(k, len(self._rates)))]
        small = self._small[rows][:, None]
        spread = torch.where(small, 1 - even[:, None], 1.0)
        ceiling = 1 + below(most, torch.full_like(k, FAMILY.payload))[:, None]
        ceiling = torch.where(small, ceiling, FAMILY.payload)
        position = torch.arange(n, device=rows.device).expand(len(rows), -1)
        sink = (k * d + 1)[:, None]
        stage = (position - 1).div(k[:, None], rounding_mode="floor")  # -1 for the source
        present, inner = position <= sink, (position > 0) & (position < sink)
        # the stages share the instructions of their graph, none more than its branches can do
        there = torch.arange(n, device=rows.device) < d[:, None]
        parts = uniform(of_stages, n).double() * there
        excess = (parts / parts.sum(1, keepdim=True) - 1 / d[:, None]) * there
        total = (used * FAMILY.device_ipt - 2 * FAMILY.endpoint_ipt)[:, None]
        room = k[:, None] * FAMILY.device_ipt / total - 1 / d[:, None]
        factor = spread * (room.clamp(min=0) / excess.amax(1, keepdim=True)).clamp(max=1)
        shared = (1 / d[:, None] + factor * excess) * total  # [G, stages]
        instructions = torch.where(
            inner, shared.gather(1, stage.clamp(0, n - 1)), FAMILY.endpoint_ipt
        )
        flow = torch.where(inner, rate[:, None] / k[:, None], rate[:, None])
        load = torch.where(present, flow * instructions / self._speed, 0.0)
        payload = 1 + below(uniform(of_payloads, n), ceiling.expand(-1, n))
        sent = torch.where(position < sink, (rate / k)[:, None] * payload, 0.0)
        sender, receiver = position[:, None], position[:, :, None]
        wide, last = k[:, None, None], sink[:, :, None]
        streams = (
            ((sender == 0) & (receiver > 0) & (receiver <= wide))
            | ((sender > 0) & (receiver == sender + wide) & (receiver < last))
            | ((sender > last - 1 - wide) & (sender < last) & (receiver == last))
        )
        streams = streams.double()
        return Drawn(load, streams.sum(1) * sent, streams * sent[:, None], streams, present)


class RandomDags:
    """Graphs of `streamplace.families.random_dag` with its default options, but for `DAGS`.

    The streams are drawn as there, and the operators numbered anew; then come all sizes. Relative
    ones are enough, since CPU and traffic of a graph are given.
    """

    def __init__(self, count: int, rates: Tensor, speed: float) -> None:
        def column(of_dags: Sequence[object]) -> Tensor:
            return torch.from_numpy(np.array(of_dags)).to(rates.device)

        self._rates = rates
        self._number = column(np.resize(np.arange(len(DAGS)), count).tolist())  # [P]
        self._sizes = column([dag.operators for dag in DAGS])
        self._layers = column([_layers(dag) for dag in DAGS])  # [len(DAGS), 4, N]
        self._further = column([dag.n_streams - dag.operators + 1 for dag in DAGS])
        self._load = column([dag.devices * dag.mips * 1e6 / dag.rate / speed for dag in DAGS])
        self._bytes = column(
            [dag.network * bandwidth_bps(dag.bandwidth) / 8 / dag.rate for dag in DAGS]
        )
        self.sizes = self._sizes[self._number]

    def drawn(self, rows: Tensor, n: int, keys: Tensor) -> Drawn:
        """Draw graphs by keys [G], of at most n operators."""
        of_rate, of_streams, of_ties, of_operators, of_shares = children(keys, 5)
        which = below(uniform(of_rate), torch.full_like(rows, len(self._rates)))
        dags, rate = self._number[rows], self._rates[which]
        position = torch.arange(n, device=rows.device)
        present = position < self._sizes[dags][:, None]
        depth = RandomDag(operators=n).n_layers - 1  # of the deepest graph
        joined = _in_order(self._joined(dags, of_streams, present), of_ties, present, depth)
        level, work, payload = uniform(of_operators, 3, n).double().unbind(1)
        level = (1 + (DAGS[0].selectivity - 1) * level) * present
        shares = (0.5 + uniform(of_shares, n, n).double()) * joined
        shares = shares / shares.sum(1, keepdim=True).clamp(min=0.5)
        flow = source = (position == 0).double().expand_as(level)
        for _ in range(depth):
            flow = source + (shares * flow[:, None]).sum(2)
        work = work * flow * level  # instructions/s, and below bytes/s, but for the unit
        flows = shares * (flow * payload)[:, None] * level[:, :, None]
        out = flows.sum(1)
        load = work * (rate * self._load[dags] / work.sum(1))[:, None]
        factor = (rate * self._bytes[dags] / out.sum(1))[:, None]
        return Drawn(load, out * factor, flows * factor[:, :, None], joined.double(), present)

    def _joined(self, dags: Tensor, keys: Tensor, present: Tensor) -> Tensor:
        """Whether a stream [G, N, N] leads to the row's operator, all numbered by layer."""
        n = present.shape[1]
        layer, place, first, end = self._layers[dags, :, :n].unbind(1)
        of_deal, of_pairs = children(keys, 2)
        by_layer = torch.where(present, layer, n) + uniform(of_deal, n).double()
        dealt = by_layer.argsort(dim=1, stable=True)
        feeder = dealt.gather(1, place.clamp(max=n - 1))[:, :, None]  # a larger graph is not used
        sender = torch.arange(n, device=dags.device)
        pool = (sender >= first[:, :, None]) & (sender < end[:, :, None]) & present[:, :, None]
        cover = pool & (sender == feeder)
        noise = uniform(of_pairs, n, n).masked_fill(~pool | cover, 2.0).flatten(1)
        rank = noise.argsort(dim=1, stable=True).argsort(dim=1, stable=True)
        return cover | (rank < self._further[dags][:, None]).view_as(cover)


def _in_order(joined: Tensor, keys: Tensor, present: Tensor, depth: int) -> Tensor:
    """The same in the order of decision: by the last operator upstream, then at random."""
    n = present.shape[1]
    ties = uniform(keys, n).double()
    place = torch.arange(n, device=keys.device).expand(len(keys), -1)
    order = place
    for _ in range(depth):  # each sorts one more layer for good
        last = torch.where(joined, place[:, None], -1).amax(2)
        order = torch.where(present, last + ties, n).argsort(dim=1, stable=True)
        place = order.argsort(dim=1, stable=True)
    across = order[:, None].expand(-1, n, -1)
    return joined.gather(1, across.transpose(1, 2)).gather(2, across)


def _layers(dag: RandomDag) -> Longs:
    """Layer, place of the dealt feeder, and first feeder and end of the feeders; [4, N]."""
    layers, most = dag.make_layers(), DAGS[-1].operators
    before = np.maximum(layers.layer - 1, 0)
    number = np.arange(dag.operators) - layers.start[layers.layer]
    feeder = layers.start[before] + number % layers.width[before]
    first, end = layers.pool_start, layers.pool_start + layers.pool_size
    rows = np.stack([layers.layer, feeder, first, end])
    return np.pad(rows, ((0, 0), (0, most - dag.operators)))


GENERATORS: dict[str, tuple[type[BranchedGraphs | RandomDags], ...]] = {
    "branched": (BranchedGraphs,),
    "random-dag": (RandomDags,),
    "both": (BranchedGraphs, RandomDags),
}
"""What makes the graphs, by the option `fresh_family`; several take turns."""
