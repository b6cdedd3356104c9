"""Stages: where everything passes through one task, a pass is one short pass after the other.

A *cut task* is a task that every other task comes before or after. Nothing else runs while it runs,
so what follows depends on its device and on no other earlier decision. What lies between two cut
tasks is a *stage*: a problem of its own, from the end of one cut task to the end of the next, for
every pair of their devices. A pass is a shortest path through such pairs.

Few graphs have cut tasks as they stand: weights, masks and side outputs lead past them, and have
much time to spare. Such streams and tasks may be left out. Then a bound of the rest is a bound of
the whole pass, and a good schedule of the rest is mostly a good one of the whole.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from streamsim.topology import group_by

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.scheduling.tasks import Tasks

LEEWAYS = (np.inf, 0.2, 0.1, 0.05, 0.02)
"""Shares of the shortest pass: what has more time to spare is left out."""
MOST_LEFT_OUT = 0.02
"""Share of all work; where more is left out, what is left says little of the whole."""


class Slack(NamedTuple):
    """Time to spare, as shares of a pass that no schedule is below."""

    tasks: Floats  # [N]
    streams: Floats  # [E]


class Stage(NamedTuple):
    """Tasks from one cut task to the next; the first cut task has been run when it begins."""

    rows: Ints  # [n] tasks of the whole, in topological order
    tasks: Tasks
    begins: bool  # whether row 0 is a cut task; else the pass begins here
    ends: bool  # whether the last row is one; else the pass ends here

    def between(self, first: int, last: int) -> Tasks:
        """Tasks with the first and the last cut task on these devices; -1 where there is none."""
        work = self.tasks.work.copy()
        for row, device in ((0, first), (-1, last)):
            if device >= 0:
                together = self.tasks.unit == self.tasks.unit[row]
                elsewhere = np.arange(work.shape[1]) != device
                work[np.ix_(together, elsewhere)] = np.inf
        return self.tasks._replace(work=work)


class Stages(NamedTuple):
    """A row of stages, and which tasks are in one."""

    stages: tuple[Stage, ...]
    inside: Bools  # [N]

    @classmethod
    def of(cls, tasks: Tasks, most: int, slack: Slack | None = None) -> Self | None:
        """Stages of up to so many tasks; None where there are none.

        What has time to spare, if that is known, is left out as far as it takes, but next to no
        work. Rules about memory, or about who may not meet, concern the whole: there are no stages
        under them.
        """
        if len(tasks.memory) or len(tasks.rivals):
            return None
        everything = Slack(np.zeros(tasks.n_tasks), np.zeros(len(tasks.source)))
        work = tasks.work.min(axis=1)
        for leeway in LEEWAYS[: 1 if slack is None else None]:
            inside, streams = (np.asarray(part <= leeway) for part in slack or everything)
            if work[~inside].sum() > MOST_LEFT_OUT * work.sum():
                break
            streams &= inside[tasks.source] & inside[tasks.target]
            order = tasks.order[inside[tasks.order]]
            cuts = _cut_tasks(tasks, order, streams)
            bounds = np.concatenate(([0], cuts, [len(order) - 1]))
            if np.diff(bounds).max() <= min(most, len(order) / 2):
                return cls(tuple(_parts(tasks, order, streams, cuts)), inside)
        return None


def least_by_work(stage: Stage) -> Floats:
    """Least seconds of a stage on every device of its last cut task, by what there is to work.

    For any speeds g: T · Σ n_a g_a ≥ Σ over v of min over a of w(v, a) g_a, n_a being cores.
    """
    tasks, last = stage.tasks, len(stage.rows) - 1
    inner = tasks.work[int(stage.begins) : last if stage.ends else last + 1]
    usable = np.isfinite(inner)
    total = np.where(usable, inner, 0.0).sum(axis=0)
    speed = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    power = (np.diff(tasks.core_start) * speed).sum()
    effort = np.where(usable, inner, np.inf) * np.where(usable, speed, 1.0)
    least = effort.min(axis=1).sum() / power if power > 0 else 0.0
    return np.asarray(least + tasks.work[last]) if stage.ends else np.array([least])


def _cut_tasks(tasks: Tasks, order: Ints, streams: Bools) -> Ints:
    """Positions in the order that all others come before or after."""
    n = len(order)
    position = np.full(tasks.n_tasks, -1)
    position[order] = np.arange(n)
    begin, end = position[tasks.source[streams]], position[tasks.target[streams]]
    reach, comes = np.arange(n), np.zeros(n, np.bool_)
    np.maximum.at(reach, begin, end)
    comes[end] = True
    past = np.maximum.accumulate(np.concatenate(([-1], reach)))[:-1]  # how far those before reach
    last_source = int(np.flatnonzero(~comes).max(initial=0))
    first_sink = int(np.flatnonzero(reach == np.arange(n)).min(initial=n - 1))
    here = np.arange(n)
    cuts = (past <= here) & (here >= last_source) & (here <= first_sink)
    return np.flatnonzero(cuts & ~_crossed(tasks.unit[order], n)).astype(np.int32)


def _crossed(unit: Ints, n: int) -> Bools:
    """Whether tasks before and after a position have to stay together, but not with that one."""
    first, last = np.full(unit.max() + 1, n), np.full(unit.max() + 1, -1)
    np.minimum.at(first, unit, np.arange(n))
    np.maximum.at(last, unit, np.arange(n))
    spans = last > first
    change = np.zeros(n + 1, np.int64)
    np.add.at(change, first[spans] + 1, 1)
    np.add.at(change, last[spans], -1)
    here = np.arange(n)
    own = (first[unit] < here) & (here < last[unit])
    return np.asarray(np.cumsum(change)[:n] - own > 0)


def _parts(tasks: Tasks, order: Ints, streams: Bools, cuts: Ints) -> Iterator[Stage]:
    """Stages between the cuts of an order."""
    at = np.full(tasks.n_tasks, -1)
    at[order] = np.arange(len(order))
    rows_left = np.flatnonzero(streams).astype(np.int32)
    ends = at[tasks.target[rows_left]]
    rows_left = rows_left[np.argsort(ends, kind="stable")]
    ends = np.sort(ends)
    bounds = [0, *cuts.tolist(), len(order) - 1]
    for number, (low, high) in enumerate(pairwise(bounds)):
        begins, stops = number > 0, number < len(cuts)
        if low == high and begins:
            continue  # the pass ends with a cut task
        inner = rows_left[np.searchsorted(ends, low + begins) : np.searchsorted(ends, high + 1)]
        rows = order[low : high + 1]
        yield Stage(rows, _cut_out(tasks, rows, inner, begins), begins, stops)


def _cut_out(tasks: Tasks, rows: Ints, streams: Ints, begins: bool) -> Tasks:
    """Tasks of some rows with some streams between them; the first has been run if it begins."""
    n = len(rows)
    local = np.full(tasks.n_tasks, -1, np.int32)
    local[rows] = np.arange(n)
    source, target = local[tasks.source[streams]], local[tasks.target[streams]]
    by_source = np.argsort(source, kind="stable")
    streams, source, target = streams[by_source], source[by_source], target[by_source]
    in_start, in_stream = group_by(target, n)
    out_start = np.searchsorted(source, np.arange(n + 1)).astype(np.int32)
    work, release = tasks.work[rows].copy(), tasks.release[rows].copy()
    if begins:
        work[0] = np.where(np.isinf(work[0]), np.inf, 0.0)
        release[:] = 0.0
    unit = np.unique(tasks.unit[rows], return_inverse=True)[1].astype(np.int32)
    member_start, members = group_by(unit, int(unit.max()) + 1)
    return tasks._replace(
        work=work,
        release=release,
        order=np.arange(n, dtype=np.int32),
        in_start=in_start,
        in_stream=in_stream,
        out_start=out_start[:-1].copy(),
        out_end=out_start[1:].copy(),
        source=source,
        target=target,
        size=tasks.size[streams],
        fixed_s=tasks.fixed_s[streams],
        unit=unit,
        member_start=member_start,
        members=members,
        rival_start=np.zeros(len(member_start), np.int32),
    )
