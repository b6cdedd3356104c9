"""Placing as an environment: operators are put on devices one after the other, then rewarded."""

from collections.abc import Sequence
from functools import cached_property
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
"""Tensors by name, each [G, S, …]; `Environment.reset` lists them."""


class Environment:
    """G problems on a device, with S placements of each built side by side.

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

    @cached_property
    def loads(self) -> Tensor:
        """Loads [G, N, D] by operators in the order of decision."""
        return self.batch.steps(self.batch.full_load).float()

    @cached_property
    def wire(self) -> Tensor:
        """Loads [G, D, D] of links by a flow of 1; 1 for a link of usual speed."""
        usual = self.batch.usual_wire[:, None, None]
        return (self.batch.wire / torch.where(usual > 0, usual, 1.0)).float()

    @cached_property
    def sent(self) -> Tensor:
        """Flow [G, N] of an operator to operators that are decided later."""
        return self._flow.sum(1)

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
        added       [G, S, D, D]      load of each link by it, if it goes to the link's end
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

        After the last decision, the result observes the devices in the end.
        """
        t = self.step_number
        on = one_hot(devices, self._load.shape[2]).to(self._load.dtype)
        self._on[:, t], self._chosen[:, :, t] = on, devices
        self._load = torch.addcmul(self._load, self.loads[:, t, None], on)
        self._link = torch.addcmul(self._link, self._observed["added"], on[:, :, None])
        self._loose = self._loose - self._observed["flow"] + self.sent[:, t, None, None] * on
        self._used, self._previous = self._used + on, on
        self.step_number += 1
        return self._observation()

    def reward(self, placements: Tensor | None = None) -> Tensor:
        """Rewards [G, S] of placements [G, S, N] after repair, by default of the built ones.

        Throughput is computed on the device; other objectives by the core, on the CPU.
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
            repaired = problem.repaired(np.ascontiguousarray(legal[i, :, : problem.n_operators]))
            legal[i, :, : problem.n_operators] = repaired
            rewards[i] = self._reward(problem, repaired)
        to = placements.device
        return torch.from_numpy(legal).long().to(to), torch.from_numpy(rewards).to(to)

    @cached_property
    def _flow(self) -> Tensor:
        """Flow [G, N, N] from operators that are decided before."""
        usual = self.batch.usual_wire[:, None, None]
        return self.batch.pairs(self.batch.bytes * usual).float()

    @cached_property
    def _maps(self) -> Tensor:
        """Relations [G, N, maps, N] of every operator to the operators decided before it."""
        batch = self.batch
        before = batch.pairs(batch.streams).clamp(max=1)
        maps = [self._flow, before / before.sum(2, keepdim=True).clamp(min=1)]
        if batch.mates is not None and batch.rivals is not None:
            maps += [batch.pairs(batch.mates), batch.pairs(batch.rivals)]
        return torch.stack(maps, dim=2)

    @cached_property
    def _allowed(self) -> Tensor:
        """Devices [G, N, D] that operators may use, in the order of decision."""
        return self.batch.steps(self.batch.allowed)

    @cached_property
    def _lower(self) -> Tensor:
        """1 [G, D, D] where the row's device must be in use before the column's."""
        return (self.batch.alike & self.batch.exists[:, None]).float().triu(1)

    def _observation(self) -> Observation:
        t = min(self.step_number, self.loads.shape[1] - 1)
        mapped = self._maps[:, t, :, :t] @ self._on[:, :t].flatten(2)
        flow, upstream, *rules = mapped.view(*mapped.shape[:2], *self._load.shape[1:]).unbind(1)
        self._observed = {
            "open": self._open(t, rules),
            "load": self._load,
            "link": self._link,
            "flow": flow,
            "added": flow[..., None] * self.wire[:, None],
            "upstream": upstream,
            "loose": self._loose,
            "used": self._used,
            "previous": self._previous,
        }
        return self._observed

    def _open(self, t: int, rules: Sequence[Tensor]) -> Tensor:
        """Open devices: allowed, and of interchangeable unused ones only the first.

        An operator follows a mate that is placed, and avoids the devices of its rivals. If no
        device remains, all allowed ones are open and the placement has to be repaired.
        """
        allowed = self._allowed[:, t, None]
        waits = (self._used == 0).to(self._used.dtype) @ self._lower > 0
        opened = allowed & ~waits
        if rules:
            mates, rivals = rules
            opened = torch.where((mates > 0).any(-1, keepdim=True), mates > 0, opened)
            opened = opened & (rivals == 0)
            opened = torch.where(opened.any(-1, keepdim=True), opened, allowed)
        return opened
