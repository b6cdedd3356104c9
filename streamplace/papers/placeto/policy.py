"""Placeto: its network, and episodes that visit every operator.

The embedding e_u of an operator is computed as in `streamplace.papers.improving.messages`, along
the streams and against them, on the graph of the operators and without features of streams. With f
and g a linear map and ReLU each, the scores of the devices for operator v are

    MLP([e_v : g₁(mean f₁(e_u) upstream of v) : g₂(… downstream of v) : g₃(… all others)])

Every operator is visited once, in an order, and goes to a device that the policy chooses. At each
visit the features describe the present placement. Only legal devices are open: the operator
and those colocated with it may run there, and none of its rivals is there. After
the last visit the tour begins again, and all operators count as not yet visited.

Shapes: as in `streamplace.papers.improving.batch`, and one node of each operator.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import check_devices
from streamplace.papers.improving.batch import TaskBatch
from streamplace.papers.improving.episodes import Episodes, ImprovingPolicy
from streamplace.papers.improving.messages import (
    WIDTH,
    ColumnLinear,
    Edges,
    Messages,
    NodeGraph,
    begin,
    scaled,
    summaries,
)
from streamplace.papers.placeto.model import PlacetoConfig

HIDDEN = 32
SUMMARY = 2 * WIDTH
OPERATOR_FEATURES = ("seconds", "bytes out", "visited", "current", "start")
"""Features of an operator, besides one for each device that the model supports."""


class PlacetoPolicy(ImprovingPolicy):
    """A device is drawn by the softmax of the scores of open devices."""

    steps_per_task = 1
    features = (*OPERATOR_FEATURES, "device")

    def __init__(self, config: PlacetoConfig) -> None:
        super().__init__()
        self.config = config
        size = len(OPERATOR_FEATURES) + config.devices
        self.along, self.against = Messages(size, 0), Messages(size, 0)
        self.upstream, self.downstream, self.beside = Pool(), Pool(), Pool()
        self.hidden = ColumnLinear(4 * SUMMARY, HIDDEN)
        self.out = ColumnLinear(HIDDEN, config.devices)
        self.apply(begin)

    def forward(self, graph: NodeGraph, groups: Tensor) -> Tensor:
        """Scores of devices [G, D] for one operator of every episode.

        The groups [4, G, N] are the operator, those upstream and downstream of it, and all others.
        """
        e = summaries(graph, self.along, self.against)
        e = e.view(-1, *groups.shape[1:])  # [10, G, N]
        pools = (self.upstream, self.downstream, self.beside)
        pooled = [pool(e, group) for pool, group in zip(pools, groups[1:], strict=True)]
        parts = torch.cat([(groups[0] * e).sum(2), *pooled])
        return self.out(self.hidden(parts).relu()).T

    def begin(self, batch: TaskBatch, place: Tensor) -> "PlacetoEpisodes":
        """Start an episode of each problem; legal placements are [T]."""
        return PlacetoEpisodes(self, batch, place)


class Pool(nn.Module):
    """g(mean f(e_u)) over a group of operators."""

    def __init__(self) -> None:
        super().__init__()
        self.each, self.pooled = ColumnLinear(SUMMARY, SUMMARY), ColumnLinear(SUMMARY, SUMMARY)

    def forward(self, e: Tensor, group: Tensor) -> Tensor:
        """Pooled embeddings [10, G] of groups [G, N] of operators with embeddings [10, G, N]."""
        share = group / group.sum(1, keepdim=True).clamp(min=1)
        each = self.each(e.flatten(1)).relu().view_as(e)
        return self.pooled((share * each).sum(2)).relu()


class PlacetoEpisodes(Episodes):
    """Episodes of Placeto."""

    def __init__(self, policy: PlacetoPolicy, batch: TaskBatch, place: Tensor) -> None:
        super().__init__(policy, batch, place)
        config, every = policy.config, batch.problems
        self._devices = config.devices
        order = np.tile(np.arange(batch.n), (len(every), 1))
        for row, problem in zip(order, every, strict=True):
            check_devices(problem, config.devices)
            row[: problem.n_operators] = decision_order(problem, config.order)
        self._order = torch.from_numpy(order).to(place.device)  # [G, N] operators by turn
        self._turn = self._order.argsort(1)  # [G, N] turns by operator
        self._upstream = upstream(batch)  # [T, N]
        self._edges = Edges.of_tasks(batch.sweep())
        self._v = batch.first  # [G] current operators
        source, none = batch.source, torch.zeros_like(batch.compute)
        streams = none.index_add(0, source, torch.ones_like(batch.size)).clamp(min=1)
        self._bytes_out = none.index_add(0, source, batch.size) / streams  # [T] mean

    def look(self) -> tuple[tuple[NodeGraph, Tensor], Tensor]:
        """The graph with groups of operators, and open devices among the model's [G, D]."""
        batch = self.batch
        now = (self.steps % batch.count)[:, None]
        v = self._order.gather(1, now)  # [G, 1]
        self._v = batch.first + v[:, 0]
        visited, current = self._turn < now, self._turn == now
        exists = batch.allowed.any(1, keepdim=True)  # [T, 1]
        start = batch.simulate(self.place).start
        costs = torch.stack([batch.compute, self._bytes_out, start]).float()[..., None]
        costs = scaled(costs, exists, batch.episode, len(now))[..., 0]
        bits = torch.stack([visited.flatten(), current.flatten()])
        nodes = torch.cat([costs[:2], bits, costs[2:], one_hot(self.place, self._devices).T])
        graph = NodeGraph(nodes, nodes.new_zeros(0, 1, len(batch.source), 1), self._edges)
        above = self._upstream[self._v]
        below = self._upstream.view(len(v), -1, batch.n).take_along_dim(v[:, None], 2)[..., 0]
        beside = exists.view_as(current) & ~(above | below | current)
        is_open = batch.legal(self.place)[self._v]
        groups = torch.stack([current, above, below, beside])
        return (graph, groups), pad(is_open, (0, self._devices - batch.d))

    def act(self, action: Tensor) -> None:
        """Move the current operators to devices [G]."""
        self.move(self._v, action)


def upstream(batch: TaskBatch) -> Tensor:
    """Whether an operator of the same problem [N] is upstream of another, [T, N]."""
    number = torch.arange(len(batch.unit), device=batch.unit.device)
    itself = one_hot(number % batch.n, batch.n)
    reached = itself.clone()
    for u, v in batch.by_level:
        of_inputs = reached[u]
        reached.scatter_reduce_(0, v[:, None].expand_as(of_inputs), of_inputs, "amax")
    return reached > itself
