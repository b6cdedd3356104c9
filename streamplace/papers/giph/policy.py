"""GiPH: gpNets, the network that scores their nodes, and episodes.

A gpNet has a node for every task on every device that may run it. With p the present placement
there is an edge between two nodes of tasks u and v for every stream from u to v, wherever at least
one of the two is where the placement has its task:

    (u, p(u)) → (v, b) for every device b of v;    (u, a) → (v, p(v)) for every other device a of u

so that the edges of a node show the neighbourhood that its task would have after that move. If only
tasks are chosen, there is one node per task, which represents it on its present device.

The score of a node is MLP([e along : e against]), with its summaries e (equation 1, in
`streamplace.papers.improving.messages`) along the streams and, with other weights, against them.
``no-edges`` sends messages without the features of edges. ``sage`` is a GraphSAGE of three layers
h_u ← relu(A h_u + B mean over ξ(u) of h_v) instead, and ``plain`` scores each node by its own
features. In these three, the features of a node include the mean features of the edges out of it.

At every step of an episode the present placement is simulated and one task is moved. An action is
a node (v, d) of the gpNet: task v and the tasks colocated with it go to device d. It is neither the
present device of a task nor a move of the task that was moved last, so that many tasks are visited;
unless ``printed``, it may be both after the first N + 1 steps. Only legal actions are open. If only
tasks are chosen, the device is the one on which the task finishes first.

Times come from one simulation of the placement. With e(v, d) the time at which all inputs of v
would be on d, the *start-time potential* of a node is e(v, d) minus the start of v: how much
earlier it could start there. The *criticality* of a stream is a share: those out of one task add up
to 1. It begins as the softmax of 10 · bytes over their maximum, and every simulation moves the
streams of its critical path by a tenth towards 1 and their neighbours towards 0. It is 1 for a task
if it has no inputs, else Σ criticality(u) · criticality(u, v) over them. The paper's text lacks it,
and so does a policy that is ``printed``. All features are scaled to [-1, 1] by their least and
largest value under the placement.

Shapes: as in `streamplace.papers.improving.messages`, with a node of each task for every device
(K = D, C = 2), or one (K = C = 1).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from streamplace.learn.registry import STEPS_PER_OPERATOR
from streamplace.papers.giph.model import EDGE_FEATURES, NODE_FEATURES, GiphConfig
from streamplace.papers.improving.batch import PassTimes, TaskBatch
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

HIDDEN = 16
SAGE = (16, 16, 10)
NUDGE = 0.1
"""Share by which the criticality of streams on the critical path moves."""
SHARPNESS = 10.0


class GiphPolicy(ImprovingPolicy):
    """P(u) is the softmax of the scores of open nodes."""

    steps_per_task = STEPS_PER_OPERATOR

    def __init__(self, config: GiphConfig) -> None:
        super().__init__()
        self.config, n = config, config.n_own_features
        nodes, edges = NODE_FEATURES[:n], EDGE_FEATURES[:n]
        self.features = [*(f"node {name}" for name in nodes), *(f"edge {name}" for name in edges)]
        size, of_edge = (n, n) if config.form == "two-way" else (2 * n, 0)
        if config.form in ("two-way", "no-edges"):
            self.along, self.against = Messages(size, of_edge), Messages(size, of_edge)
            size = 2 * WIDTH
        elif config.form == "sage":
            self.layers = nn.ModuleList(map(SageLayer, (size, *SAGE), SAGE))
            size = SAGE[-1]
        self.hidden, self.out = ColumnLinear(size, HIDDEN), ColumnLinear(HIDDEN, 1)
        self.apply(begin)

    def forward(self, graph: NodeGraph) -> Tensor:
        """Score of every node, [X]."""
        h = graph.nodes
        if self.config.form != "two-way":
            h = torch.cat([h, graph.edges.mean(graph.features, 1)])
            graph = graph._replace(nodes=h, features=graph.features[:0])
        if self.config.form in ("two-way", "no-edges"):
            h = summaries(graph, self.along, self.against)
        elif self.config.form == "sage":
            for layer in self.layers:
                h = layer(h, graph.edges)
        return self.out(self.hidden(h).relu())[0]

    def begin(self, batch: TaskBatch, place: Tensor) -> "GiphEpisodes":
        """Start an episode of each problem; legal placements are [T]."""
        return GiphEpisodes(self, batch, place)


class SageLayer(nn.Module):
    """One layer of GraphSAGE."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.own, self.others = ColumnLinear(size, out), ColumnLinear(size, out, bias=False)

    def forward(self, h: Tensor, edges: Edges) -> Tensor:
        """States [out, X] from those before."""
        return (self.own(h) + self.others(edges.mean(edges.sent(h), 0))).relu()


class GiphEpisodes(Episodes):
    """Episodes of GiPH."""

    def __init__(self, policy: GiphPolicy, batch: TaskBatch, place: Tensor) -> None:
        super().__init__(policy, batch, place)
        self._pairs, self._features = policy.config.pairs, policy.config.n_own_features
        ends = [batch.source, batch.target] if self._pairs else [batch.source]
        self._near = torch.cat(ends)  # [C S] tasks whose present nodes edges lead from, or to
        self._of_near = batch.episode[self._near]
        self._size = batch.size.repeat(len(ends))[:, None]
        self._sweep, self._criticality = batch.sweep(), first_criticality(batch)  # [S]
        self._of_tasks = Edges.of_tasks(self._sweep)
        rounds = STEPS_PER_OPERATOR if policy.config.printed else 1
        self._masked = 1 + rounds * batch.count  # [G] steps with masks
        self._last = torch.full_like(batch.first, -1)  # [G] unit that was moved last
        self._moves = batch.everywhere.expand_as(batch.work)  # [T, K] devices to which nodes move

    def look(self) -> tuple[tuple[NodeGraph], Tensor]:
        """The gpNet, and open nodes [G, N · K]."""
        batch, here = self.batch, self.place[:, None]
        times, legal = batch.simulate(self.place), batch.legal(self.place)
        latency, wire, seconds = batch.transfer(here.index_select(0, self._near))  # [C S, D]
        arrival = batch.arrival(times, seconds[: len(batch.source)])
        potential = arrival - times.start[:, None]
        if self._pairs:
            stays, possible, exists = here == batch.everywhere, legal, batch.allowed
            potential = potential.masked_fill(stays, 0.0)
            pairs = ((exists, batch.target), (exists & ~stays, batch.source))
            leads = torch.stack([nodes.index_select(0, tasks) for nodes, tasks in pairs])
            edges = Edges(self.place, leads, self._sweep)
            of_devices = (batch.slowness, batch.work)
        else:
            self._moves = (arrival + batch.work).masked_fill(~legal, torch.inf).argmin(1, True)
            exists = possible = legal.gather(1, here)
            stays = torch.zeros_like(exists)
            potential = potential.masked_fill(~batch.allowed, torch.inf).amin(1, keepdim=True)
            edges, to = self._of_tasks, here.index_select(0, batch.target)
            latency, wire, seconds = (column.gather(1, to) for column in (latency, wire, seconds))
            of_devices = (batch.slowness.gather(1, here), batch.work.gather(1, here))
        self._criticality = nudged(batch, times, self._criticality)
        potential = potential.masked_fill(batch.level[:, None] == 0, 0.0)
        weight = importance(batch, self._criticality)[:, None]
        of_nodes = (batch.compute[:, None], *of_devices, potential, weight)
        criticality = self._criticality.repeat(len(edges.exists))[:, None]
        of_edges = (self._size, latency, seconds, wire, criticality)
        nodes = self._scaled(of_nodes, exists, batch.episode)
        features = self._scaled(of_edges, edges.exists.flatten(0, 1), self._of_near)
        graph = NodeGraph(
            nodes.flatten(1), features.view(len(features), *edges.exists.shape), edges
        )

        again = (batch.unit == self._last.take(batch.episode))[:, None]
        early = (self.steps < self._masked)[:, None]
        possible = possible.view(len(early), -1)
        is_open = possible & ~((stays | again).view(possible.shape) & early)
        is_open = torch.where(is_open.any(1, keepdim=True), is_open, possible)
        return (graph,), is_open

    def _scaled(self, columns: Sequence[Tensor], exists: Tensor, episode: Tensor) -> Tensor:
        """Scaled features [F, R, K], from columns [R, K] or [R, 1]."""
        full = [x.float().expand_as(exists) for x in columns[: self._features]]
        return scaled(torch.stack(full), exists, episode, len(self.batch.first))

    def act(self, action: Tensor) -> None:
        """Move the tasks of nodes [G], and with them their units."""
        k = self._moves.shape[1]
        task = self.batch.first + action // k
        self.move(task, self._moves[task, action % k])
        self._last = self.batch.unit.take(task)


def first_criticality(batch: TaskBatch) -> Tensor:
    """Criticality of the streams [S] before the first simulation."""
    source, size, none = batch.source, batch.size, torch.zeros_like(batch.compute)
    largest = none.scatter_reduce(0, source, size, "amax")[source]
    weight = (SHARPNESS * size / torch.where(largest > 0, largest, 1.0)).exp()
    return weight / none.index_add(0, source, weight)[source]


def nudged(batch: TaskBatch, times: PassTimes, criticality: Tensor) -> Tensor:
    """Criticality of the streams [S] after a simulation: it moves towards the critical path."""
    source, target = batch.source, batch.target
    v = batch.first + times.finish.view(-1, batch.n).argmax(1)
    chain, producer = v, times.producer
    for _ in range(len(batch.by_level).bit_length()):  # the last 2, 4, … tasks of the path
        chain = torch.cat([chain, producer.take(chain)])
        producer = producer.take(producer)
    critical = torch.zeros_like(batch.unit).index_fill(0, chain, 1)
    rises = critical.take(target) * (times.producer.take(target) == source)
    moves = torch.zeros_like(critical).index_add(0, source, rises).take(source) > 0
    return torch.where(moves, criticality + NUDGE * (rises - criticality), criticality)


def importance(batch: TaskBatch, criticality: Tensor) -> Tensor:
    """Criticality of the tasks [T]."""
    weight = (batch.level == 0).to(criticality.dtype)
    shares = criticality.take(batch.in_levels).split_with_sizes([len(u) for u, _ in batch.by_level])
    for (u, v), share in zip(batch.by_level, shares, strict=True):
        weight.index_add_(0, v, weight.take(u) * share)
    return weight
