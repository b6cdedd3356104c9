"""Problems side by side in tensors: their passes, transfers and legal moves.

Shapes: G episodes, each of a problem with at most N tasks and D devices, the others padded;
T = G · N tasks, of which task v of episode g is row g · N + v; S streams in all.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from streamsim.passes import operator_times
from torch import Tensor
from torch.nn.functional import one_hot

from streamplace.model.arrays import Array
from streamplace.model.devices import SLACK
from streamplace.model.problem import Problem
from streamplace.scheduling.tasks import tasks_of


class PassTimes(NamedTuple):
    """One pass of each problem under the present placements."""

    start: Tensor  # [T] seconds
    finish: Tensor  # [T]
    producer: Tensor  # [T] task whose output arrives last; without inputs, the task itself


class Sweep(NamedTuple):
    """Streams in the order of messages that go through all graphs in one direction.

    A task receives after all tasks that send to it; those of one level receive together.
    """

    stream: Tensor  # [S] level after level
    sizes: list[int]  # number of streams to each level
    receiver: Tensor  # tasks, level after level
    counts: list[int]  # number of receivers in each level
    shift: Tensor  # [S] of every stream, position of its receiver in the level minus its number


class TaskBatch:
    """The problems of G episodes, on a device of torch."""

    def __init__(self, problems: Sequence[Problem], device: torch.device) -> None:
        def tensor(array: Array) -> Tensor:
            return torch.from_numpy(array).to(device)

        def padded(arrays: Iterable[Array]) -> Tensor:  # [G, …]
            return tensor(side_by_side([*arrays]))

        def rows(arrays: Iterable[Array]) -> Tensor:  # [T, …]
            return padded(arrays).flatten(0, 1)

        def joined(arrays: Iterable[Array]) -> Tensor:
            return tensor(np.concatenate([*arrays]))

        every, passes = [tasks_of(p) for p in problems], [p.one_pass for p in problems]
        self.problems = problems
        self.n, self.d = np.max([tasks.work.shape for tasks in every], axis=0).tolist()
        first = self.n * np.arange(len(every))
        self.first = tensor(first)  # [G] tasks
        self.count = tensor(np.array([tasks.n_tasks for tasks in every]))  # [G]
        self.episode = tensor(np.arange(len(every)).repeat(self.n))  # [T]
        work = [np.ascontiguousarray(one.work[:, one.devices["type"]]) for one in passes]
        self.work = rows(work)  # [T, D] seconds, also where a task may not run
        self.allowed = rows(np.isfinite(tasks.work) for tasks in every)  # [T, D]
        self.compute = rows(table.mean(axis=1) for table in work)  # [T] mean seconds
        self.slowness = padded(table.mean(axis=0) for table in work)[self.episode]  # [T, D]
        self._latency = padded(tasks.latency for tasks in every)  # [G, D, D] seconds
        self._wire = padded(tasks.wire for tasks in every)  # [G, D, D] seconds per byte
        self._fixed_s = joined(tasks.fixed_s for tasks in every)  # [S] seconds
        self.size = joined(tasks.size for tasks in every)  # [S] bytes

        numbered = [*zip(first, every, strict=True)]
        source = np.concatenate([f + tasks.source for f, tasks in numbered])
        target = np.concatenate([f + tasks.target for f, tasks in numbered])
        self.source, self.target = tensor(source), tensor(target)  # [S] tasks
        self.level = rows(one.operators["level"] for one in passes)  # [T] most streams to a task
        self.along, self.against = self.sweeps(1)

        heads = [tasks.members[tasks.member_start[:-1]] for tasks in every]  # first of each unit
        units = [*zip(first, every, heads, strict=True)]
        self.unit = rows(f + head[tasks.unit] for f, tasks, head in units)  # [T] by first task
        self._rival = joined(f + head.repeat(np.diff(t.rival_start)) for f, t, head in units)
        self._other = joined(f + head[tasks.rivals] for f, tasks, head in units)
        self._memory = rows(  # [T] bytes of a unit at its first task
            np.bincount(head, tasks.memory, tasks.n_tasks)
            if len(tasks.memory)
            else np.zeros(tasks.n_tasks)
            for _, tasks, head in units
        )
        most = (t.room if len(t.room) else np.full(t.n_devices, np.inf) for t in every)
        self._room = padded(most) * (1 + SLACK)  # [G, D] bytes

    def sweeps(self, copies: int) -> tuple[Sweep, Sweep]:
        """Order of messages along the streams of copies of all graphs, and against them."""
        level = self.level.cpu().numpy()
        first = len(level) * np.arange(copies)[:, None]
        source, target = ((first + v.cpu().numpy()).ravel() for v in (self.source, self.target))
        levels, device = np.tile(level, copies), self.level.device
        return _sweep(levels, target, device), _sweep(-levels, source, device)

    def simulate(self, place: Tensor) -> PassTimes:
        """One pass of each problem under placements [T], by the core, on the CPU."""
        places = place.view(-1, self.n).to("cpu", torch.int32).numpy()
        times, at = np.zeros((2, *places.shape)), 0
        producers = np.tile(np.arange(self.n), (len(places), 1))
        for problem, same in groupby(self.problems):
            end = at + len([*same])
            rows = slice(at, end), slice(problem.n_operators)
            start, finish, producer = operator_times(problem.one_pass, places[rows])
            times[0][rows], times[1][rows] = start, finish
            np.copyto(producers[rows], producer, where=producer >= 0)
            at = end
        start_s, finish_s = torch.from_numpy(times).to(place.device).flatten(1)
        producer_of = self.first[:, None] + torch.from_numpy(producers).to(place.device)
        return PassTimes(start_s, finish_s, producer_of.flatten())

    def transfer(self, sender: Tensor, receiver: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Latency, seconds per byte, and seconds in all of streams between devices [S, C]."""
        link = (self.episode[self.source][:, None] * self.d + sender) * self.d + receiver
        latency, wire = self._latency.take(link), self._wire.take(link)
        seconds = latency + self.size[:, None] * wire + self._fixed_s[:, None]
        return latency, wire, seconds.masked_fill(sender == receiver, 0.0)

    def arrival(self, times: PassTimes, place: Tensor) -> Tensor:
        """Time at which all inputs of a task would be on a device [T, D], the others fixed."""
        everywhere = torch.arange(self.d, device=place.device)
        seconds = self.transfer(place[self.source][:, None], everywhere)[2]
        present = times.finish[self.source][:, None] + seconds
        to = self.target[:, None].expand_as(present)
        return torch.zeros_like(self.work).scatter_reduce(0, to, present, "amax")

    def legal(self, place: Tensor) -> Tensor:
        """Whether a task may move to a device [T, D] with its unit, while all others stay."""
        here = one_hot(place, self.d)
        rivals = torch.zeros_like(here).index_add(0, self._rival, here[self._other])
        used = (here * self._memory[:, None]).view(-1, self.n, self.d).sum(1)
        fits = used[self.episode] + self._memory[:, None] <= self._room[self.episode]
        return self.allowed & (here.bool() | (fits & (rivals == 0)))[self.unit]


def _sweep(level: Array, receiver: Array, device: torch.device) -> Sweep:
    """Order of streams to receivers [S], by the levels of all tasks [T]."""
    tasks = np.unique(receiver)
    tasks = tasks[level[tasks].argsort(kind="stable")]
    counts, sizes = (np.unique(level[v], return_counts=True)[1] for v in (tasks, receiver))
    shift = np.zeros(len(level), np.int64)
    shift[tasks] = np.arange(len(tasks)) - (counts.cumsum() - counts).repeat(counts) - tasks
    columns = (level[receiver].argsort(kind="stable"), tasks, shift[receiver])
    stream, receivers, shifts = (torch.from_numpy(column).to(device) for column in columns)
    return Sweep(stream, sizes.tolist(), receivers, counts.tolist(), shifts)


def side_by_side(arrays: Sequence[Array]) -> Array:
    """Arrays as rows of one, as large as the largest of them, with zeros."""
    shape = np.max([array.shape for array in arrays], axis=0)
    rows = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for row, array in zip(rows, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return rows
