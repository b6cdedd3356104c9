"""Placing as an environment: operators are put on devices one after the other, then rewarded."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from streamplace.learn.env.batch import Batch, ProblemTensors
from streamplace.learn.env.throughput import throughput
from streamplace.learn.reward import Reward, reward_of, steady
from streamplace.model.problem import Problem

Observation = dict[str, Tensor]
"""Tensors by name, each [G, S, …]; `Environment.reset` tells which."""


class Environment:
    """G problems on a device, of each of which S placements are built side by side.

    Operators come in the order of decision; all G problems take as many steps as the largest, and
    padding goes to the first device. Loads are shares of a device or of a link at full rate, flows
    are shares of a link of usual speed.

    Examples
    --------
    >>> from streamplace import Cluster, Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("g", [Operator("a", ipt=2.5e5, rate=1e4), Operator("b", ipt=5e5)],
    ...                        [Stream("a", "b")])
    >>> env = Environment.of([Problem(graph, Cluster.uniform(2))])
    >>> seen = env.reset(samples=1)
    >>> while not env.done:
    ...     seen = env.step(seen["load"].masked_fill(~seen["open"], 9.0).argmin(-1))
    >>> env.placements.tolist(), env.reward().tolist()
    ([[[0, 1]]], [[0.5]])
    """

    def __init__(
        self,
        batch: Batch,
        problems: Sequence[Problem] | None = None,
        reward: Reward = steady,
    ) -> None:
        self.batch, self._problems, self._reward = batch, problems, reward
        usual = batch.wire.sum((1, 2)) / _links(batch).clamp(min=1)
        usual = usual[:, None, None]
        load = batch.load if batch.constant is None else batch.load + batch.constant
        flow = batch.pairs(batch.bytes * usual).float()
        before = batch.pairs(batch.streams).clamp(max=1)
        maps = [flow, before / before.sum(2, keepdim=True).clamp(min=1)]
        if batch.mates is not None and batch.rivals is not None:
            maps += [batch.pairs(batch.mates), batch.pairs(batch.rivals)]
        self.loads = batch.steps(load).float()  # [G, N, D] in the order of decision
        self.allowed = batch.steps(batch.allowed)
        self.sent = flow.sum(1)  # [G, N] to operators that are decided later
        self.wire = (
            batch.wire / torch.where(usual > 0, usual, 1.0)
        ).float()  # [G, D, D] 1: a link of usual speed
        self._maps = torch.stack(maps, dim=2)  # [G, N, maps, N]
        self._lower = (batch.alike & batch.exists[:, None]).float().triu(1)

    @classmethod
    def of(
        cls,
        problems: Sequence[Problem],
        device: torch.device | str = "cpu",
        objective: str = "throughput",
    ) -> Self:
        """Problems on a device, rewarded by an objective: 0 to 1, 1 is best."""
        tensors = ProblemTensors(problems, device)
        rows = torch.arange(len(problems), device=device)
        return cls(tensors.batch(rows), problems, reward_of(objective, "steady"))

    @property
    def done(self) -> bool:
        """Whether all operators are placed."""
        return self.step_number == self.batch.order.shape[1]

    @property
    def placements(self) -> Tensor:
        """Placements [G, S, N], operators in the order of their graphs; 0 if not yet placed."""
        return self.batch.placements(self._chosen)

    def reset(self, samples: int = 1) -> Observation:
        """Begin anew; the observation of the first decision.

        ==========  ================  ==========================================================
        open        [G, S, D] bool    devices that may be chosen now
        load        [G, S, D]         of the devices
        link        [G, S, D, D]      of the links
        flow        [G, S, D]         into the operator that is placed now, from each device
        upstream    [G, S, D]         share of its upstream operators that is on each device
        loose       [G, S, D]         flow from each device to operators that are placed later
        used        [G, S, D]         operators on each device
        previous    [G, S, D]         1 for the device chosen last
        ==========  ================  ==========================================================
        """
        graphs, n, d = self.loads.shape
        self.step_number = 0
        self._on = self.loads.new_zeros(graphs, n, samples, d)
        self._chosen = self.batch.order.new_zeros(graphs, samples, n)
        nothing = self.loads.new_zeros(graphs, samples, d)
        self._load = self._loose = self._used = self._previous = nothing
        self._link = self.loads.new_zeros(graphs, samples, d, d)
        return self._observation()

    def step(self, devices: Tensor) -> Observation:
        """Put the present operators on these devices [G, S]; the observation of the next one.

        After the last decision, the devices are observed as they then are.
        """
        t = self.step_number
        on = one_hot(devices, self._load.shape[2]).to(self._load.dtype)
        self._on[:, t], self._chosen[:, :, t] = on, devices
        self._load = torch.addcmul(self._load, self.loads[:, t, None], on)
        carried = self._seen["flow"][..., None] * self.wire[:, None]
        self._link = torch.addcmul(self._link, carried, on[:, :, None])
        self._loose = self._loose - self._seen["flow"] + self.sent[:, t, None, None] * on
        self._used, self._previous = self._used + on, on
        self.step_number += 1
        return self._observation()

    def reward(self, placements: Tensor | None = None) -> Tensor:
        """Rewards [G, S] of placements [G, S, N] after repair, by default of those that were built.

        Throughput is computed on the device; all else by the core, on the CPU.
        """
        return self.judged(self.placements if placements is None else placements)[1]

    def judged(self, placements: Tensor) -> tuple[Tensor, Tensor]:
        """Placements [G, S, N] after repair, and their rewards [G, S]."""
        if self._reward is steady and self.batch.mates is None:
            return placements, throughput(self.batch, placements)
        assert self._problems is not None
        legal = placements.to("cpu", torch.int32).numpy()
        rewards = np.zeros(legal.shape[:2])
        for i, problem in enumerate(self._problems):
            own = problem.repaired(np.ascontiguousarray(legal[i, :, : problem.n_operators]))
            legal[i, :, : problem.n_operators] = own
            rewards[i] = self._reward(problem, own)
        to = placements.device
        return torch.from_numpy(legal).long().to(to), torch.from_numpy(rewards).to(to)

    def _observation(self) -> Observation:
        t = min(self.step_number, self.loads.shape[1] - 1)
        mapped = self._maps[:, t, :, :t] @ self._on[:, :t].flatten(2)
        flow, upstream, *rules = mapped.view(*mapped.shape[:2], *self._load.shape[1:]).unbind(1)
        self._seen = {
            "open": self._open(t, rules),
            "load": self._load,
            "link": self._link,
            "flow": flow,
            "upstream": upstream,
            "loose": self._loose,
            "used": self._used,
            "previous": self._previous,
        }
        return self._seen

    def _open(self, t: int, rules: Sequence[Tensor]) -> Tensor:
        """Open devices: allowed, and of interchangeable unused ones only the first.

        An operator follows a mate that is placed, and avoids the devices of its rivals. If no
        device remains, all allowed ones are open and the placement has to be repaired.
        """
        allowed = self.allowed[:, t, None]
        waits = (self._used == 0).to(self._used.dtype) @ self._lower > 0
        opened = allowed & ~waits
        if rules:
            mates, rivals = rules
            opened = torch.where((mates > 0).any(-1, keepdim=True), mates > 0, opened)
            opened = opened & (rivals == 0)
            opened = torch.where(opened.any(-1, keepdim=True), opened, allowed)
        return opened


def _links(batch: Batch) -> Tensor:
    """Number [G] of links."""
    devices = batch.exists.sum(1)
    return devices * (devices - 1)
