"""Steps of learning as CUDA graphs: a GPU replays them without waiting for Python.

A graph is captured for every shape of a batch. It holds the whole step, from problems to gradient,
the memories of the placements included, which it changes in place.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

Step = Callable[..., tuple[Tensor, Tensor]]
"""Loss and report of rows [G], a seed and a number of random samples; further sizes by name."""

WARM = 2
"""Runs before a capture, in which libraries take their memory."""


class Captured(NamedTuple):
    """A graph, and the tensors that it reads and writes."""

    graph: "torch.cuda.CUDAGraph"
    inputs: tuple[Tensor, Tensor, Tensor]
    results: tuple[Tensor, Tensor, Tensor]


class CapturedSteps:
    """Replays a step; ``state`` are the tensors that it changes."""

    def __init__(self, step: Step, parameters: Sequence[Tensor], state: Sequence[Tensor]) -> None:
        self._step, self._parameters, self._state = step, parameters, state
        self._captured: dict[tuple[int, ...], Captured] = {}
        self._pool: Any = None

    def __call__(
        self, rows: Tensor, seed: int, explored: int, *, n: int, most: int
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Loss, report and gradient."""
        shape = (len(rows), n, most)
        if shape not in self._captured:
            self._captured[shape] = self._capture(rows, n, most)
        graph, (of_rows, of_seed, of_explored), results = self._captured[shape]
        of_rows.copy_(rows, non_blocking=True)
        of_seed.fill_(seed)
        of_explored.fill_(explored)
        graph.replay()
        loss, report, flat = (result.clone() for result in results)
        parts = torch.split(flat, [parameter.numel() for parameter in self._parameters])
        pairs = zip(parts, self._parameters, strict=True)
        return loss, report, tuple(part.view_as(parameter) for part, parameter in pairs)

    def _computed(
        self, rows: Tensor, seed: Tensor, explored: Tensor, *, n: int, most: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Loss, report and flat gradient; parameters without a gradient have zeros."""
        loss, report = self._step(rows, seed, explored, n=n, most=most)
        found = torch.autograd.grad(
            loss, list(self._parameters), allow_unused=True, materialize_grads=True
        )
        return loss.detach(), report, torch.cat([each.flatten() for each in found])

    def _capture(self, rows: Tensor, n: int, most: int) -> Captured:
        device = self._parameters[0].device
        inputs = (
            rows.to(device),
            torch.zeros((), dtype=torch.int64, device=device),
            torch.zeros((), dtype=torch.int64, device=device),
        )
        before = [tensor.clone() for tensor in self._state]
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM):
                self._computed(*inputs, n=n, most=most)
            for tensor, kept in zip(self._state, before, strict=True):
                tensor.copy_(kept)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            results = self._computed(*inputs, n=n, most=most)
        self._pool = graph.pool()
        return Captured(graph, inputs, results)
