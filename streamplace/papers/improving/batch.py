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
    """Order of messages along all streams and against them, both at once, level by level.

    A task receives after all tasks that send to it; tasks of one level receive together. In each
    direction the tasks are columns: tasks that never receive, then level after level. Padding gives
    each level as many columns and streams in one direction as in the other; its tasks, streams and
    columns are 0.
    """

    tasks: int  # T
    ends: Tensor  # [2, S] tasks that send along the streams, and against them
    columns: Tensor  # [2, Σ R] task of each column
    counts: list[int]  # R, columns of tasks that never receive, and of each level
    last: Tensor  # [2 T] column of each task in either direction, of [2, Σ R]
    streams: list[int]  # Q of each level
    is_row: Tensor  # [2, 1, 1, Σ Q, 1] False for padding
    rows: tuple[Tensor, Tensor]  # for C = 1 and 2, [2, C, Σ Q] of the edges' rows [C, S]
    sender: Tensor  # [Σ 2 Q] columns of [2, Σ R], level after level
    sender_task: Tensor  # [Σ 2 Q]
    receiver: Tensor  # [2, Σ Q] columns of its level, from 0 on
    receiver_task: Tensor  # [2, Σ Q]


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
        self.problems, self._passes, at = problems, [], 0
        for problem, same in groupby(problems):
            end = at + len([*same])
            self._passes.append((problem.one_pass, (slice(at, end), slice(problem.n_operators))))
            at = end
        self.n, self.d = np.max([tasks.work.shape for tasks in every], axis=0).tolist()
        first = self.n * np.arange(len(every))
        self.first = tensor(first)  # [G] tasks
        self._itself = np.tile(np.arange(self.n), (len(every), 1))
        self.count = tensor(np.array([tasks.n_tasks for tasks in every]))  # [G]
        self.episode = tensor(np.arange(len(every)).repeat(self.n))  # [T]
        work = [np.ascontiguousarray(one.work[:, one.devices["type"]]) for one in passes]
        self.work = rows(work)  # [T, D] seconds, also where a task may not run
        self.allowed = rows(np.isfinite(tasks.work) for tasks in every)  # [T, D]
        self.compute = rows(table.mean(axis=1) for table in work)  # [T] mean seconds
        self.slowness = padded(table.mean(axis=0) for table in work)[self.episode]  # [T, D]
        self.size = joined(tasks.size for tasks in every)  # [S] bytes

        numbered = [*zip(first, every, strict=True)]
        source = np.concatenate([f + tasks.source for f, tasks in numbered])
        target = np.concatenate([f + tasks.target for f, tasks in numbered])
        self._ends = source, target
        self.source, self.target = tensor(source), tensor(target)  # [S] tasks
        self.everywhere = tensor(np.arange(self.d))
        links = torch.stack(
            [padded(t.latency for t in every), padded(t.wire for t in every)]
        )  # [2, G, D, D] seconds, and seconds per byte
        self._links = torch.cat([links.flatten(1, 2), links.mT.flatten(1, 2)], 1)  # [2, 2 G D, D]
        row = self.d * (self.episode[self.source] + tensor(np.array([[0], [len(every)]])))
        fixed_s = joined(tasks.fixed_s for tasks in every)
        columns = (self.size.repeat(2), fixed_s.repeat(2), row.flatten())
        self._of_rows = [column[:, None] for column in columns]  # [2 S, 1]
        self._level = side_by_side([one.operators["level"] for one in passes]).ravel()
        self.level = tensor(self._level)  # [T] most streams on a path to a task
        order = self._level[target].argsort(kind="stable")
        sizes = np.bincount(self._level[target])[1:].tolist()  # none has level 0
        ends = (tensor(end[order]).split_with_sizes(sizes) for end in (source, target))
        self.in_levels = tensor(order)  # streams, by the levels of their targets
        self.by_level = [*zip(*ends, strict=True)]  # sources and targets of each level

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
        self._limited = any(len(t.rivals) or len(t.room) for t in every)

    def sweep(self, copies: int = 1) -> Sweep:
        """Order of messages in copies of all graphs side by side."""
        level, way = np.tile(self._level, copies), np.arange(2)[:, None]
        t, steps, first = len(level), int(level.max()), len(self._level) * np.arange(copies)
        sender = np.stack([(first[:, None] + end).ravel() for end in self._ends])  # [2, S]
        receiver, s = sender[::-1].copy(), sender.shape[1]
        depth = np.stack([level, steps - level]) - 1  # [2, T]
        receives = np.full((2, t), -1)
        np.put_along_axis(receives, receiver, np.take_along_axis(depth, receiver, 1), 1)
        columns, counts = _by_level(1 + receives, steps + 1)
        streams, sizes = _by_level(np.take_along_axis(depth, receiver, 1), steps)
        is_row, streams, part = streams >= 0, streams.clip(min=0), s * way
        sends, to = (np.take_along_axis(end, streams, 1) for end in (sender, receiver))
        (ways, j), n = (columns >= 0).nonzero(), columns.shape[1]
        last, first_of_level = np.zeros((2, t), np.int64), (counts.cumsum() - counts).repeat(counts)
        last[ways, columns[ways, j]] = j
        within = np.take_along_axis(last - first_of_level[last], to, 1)

        def tensor(array: Array) -> Tensor:
            return torch.from_numpy(array).to(self.source.device)

        def by_level(table: Array) -> Tensor:
            parts = np.split(table, sizes.cumsum()[:-1], axis=1)
            return tensor(np.concatenate([part.ravel() for part in parts]))

        return Sweep(
            tasks=t,
            ends=tensor(sender),
            columns=tensor(columns.clip(min=0)),
            counts=counts.tolist(),
            last=tensor((last + n * way).ravel()),
            streams=sizes.tolist(),
            is_row=tensor(is_row)[:, None, None, :, None],
            rows=(
                tensor(streams.ravel()),
                tensor(np.stack([streams + part, streams + s - part], 1).ravel()),
            ),
            sender=by_level(n * way + np.where(is_row, np.take_along_axis(last, sends, 1), 0)),
            sender_task=by_level(sends),
            receiver=tensor(np.where(is_row, within, 0)),
            receiver_task=tensor(to),
        )

    def simulate(self, place: Tensor) -> PassTimes:
        """One pass of each problem under placements [T], by the core, on the CPU."""
        places = place.view(-1, self.n).to("cpu", torch.int32).numpy()
        times, producers = np.zeros((2, *places.shape)), self._itself.copy()
        for one_pass, rows in self._passes:
            start, finish, producer = operator_times(one_pass, places[rows])
            times[0][rows], times[1][rows] = start, finish
            np.copyto(producers[rows], producer, where=producer >= 0)
        start_s, finish_s = torch.from_numpy(times).to(place.device).flatten(1)
        producer_of = self.first[:, None] + torch.from_numpy(producers).to(place.device)
        return PassTimes(start_s, finish_s, producer_of.flatten())

    def transfer(self, near: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Latency, seconds per byte, and total seconds of streams between two devices [E, D].

        The first S rows are from a device ``near`` [E, 1] to every device. If there are 2 S, the
        others are from every device to it.
        """
        size, fixed_s, row = (column[: len(near)] for column in self._of_rows)
        latency, wire = self._links.index_select(1, (row + near).flatten())
        seconds = latency + size * wire + fixed_s
        return latency, wire, seconds.masked_fill(near == self.everywhere, 0.0)

    def arrival(self, times: PassTimes, seconds: Tensor) -> Tensor:
        """Time at which all inputs of a task would be on a device [T, D], by transfers [S, D]."""
        present = times.finish.take(self.source)[:, None] + seconds
        to = self.target[:, None].expand_as(present)
        return torch.zeros_like(self.work).scatter_reduce(0, to, present, "amax")

    def legal(self, place: Tensor) -> Tensor:
        """Whether a task may move to a device [T, D] with its unit, while all others stay."""
        if not self._limited:
            return self.allowed
        here = one_hot(place, self.d)
        rivals = torch.zeros_like(here).index_add(0, self._rival, here[self._other])
        used = (here * self._memory[:, None]).view(-1, self.n, self.d).sum(1)
        fits = used[self.episode] + self._memory[:, None] <= self._room[self.episode]
        return self.allowed & (here.bool() | (fits & (rivals == 0)))[self.unit]


def _by_level(level: Array, levels: int) -> tuple[Array, Array]:
    """Numbers [2, P] of items with these levels [2, n], level after level, and the levels' sizes.

    In each level there are as many of either row, by padding with -1. Items of level -1 are left
    out.
    """
    way, item = (level >= 0).nonzero()
    group = way * levels + level[way, item]
    counts = np.bincount(group, minlength=2 * levels)
    sizes = counts.reshape(2, -1).max(axis=0, initial=0)
    order = group.argsort(kind="stable")
    rank = np.arange(len(order)) - (counts.cumsum() - counts)[group[order]]
    table = np.full((2, sizes.sum()), -1)
    begin = sizes.cumsum() - sizes
    table[way[order], begin[level[way, item][order]] + rank] = item[order]
    return table, sizes


def side_by_side(arrays: Sequence[Array]) -> Array:
    """Arrays as rows of one, as large as the largest of them, with zeros."""
    shape = np.max([array.shape for array in arrays], axis=0)
    rows = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for row, array in zip(rows, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return rows
