"""Stages: splits a pass at tasks that all others precede or follow.

A *cut task* is a task that every other task precedes or follows. Nothing else runs while it runs,
so the tasks after it depend on its device but on no other earlier decision. The tasks between two
cut tasks form a *stage*: a separate problem, from the end of one cut task to the end of the next,
for every pair of their devices. A pass is a shortest path through such pairs.

Few complete graphs have cut tasks: weights, masks and side outputs bypass them, usually with much
slack. Such streams and tasks may be omitted. A bound of the rest is then a bound of the pass, and a
good schedule of the rest is usually good for all tasks.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from streamsim import _core

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.scheduling.tasks import Tasks

LEEWAYS = (np.inf, 0.2, 0.1, 0.05, 0.02)
"""Slack above which tasks and streams are omitted, as shares of the least makespan; in turn."""
MAX_OMITTED_WORK = 0.02
"""Share of all work that may be omitted, so that the rest still represents the pass."""


class Slack(NamedTuple):
    """Slack of tasks and streams, as shares of a lower bound of the makespan."""

    tasks: Floats  # [N]
    streams: Floats  # [E]


class Stage(NamedTuple):
    """Tasks from one cut task to the next; the stage begins at the end of the first cut task."""

    rows: Ints  # [n] indices of its tasks in the pass, in topological order
    tasks: Tasks
    begins: bool  # whether row 0 is a cut task; else the pass begins here
    ends: bool  # whether the last row is a cut task; else the pass ends here

    def between(self, first: int, last: int) -> Tasks:
        """Tasks with the first and the last cut task on these devices; -1 for no cut task."""
        work = self.tasks.work.copy()
        for row, device in ((0, first), (-1, last)):
            if device >= 0:
                together = self.tasks.unit == self.tasks.unit[row]
                elsewhere = np.arange(work.shape[1]) != device
                work[np.ix_(together, elsewhere)] = np.inf
        return self.tasks._replace(work=work)


class Stages(NamedTuple):
    """Consecutive stages, and whether they include each task."""

    stages: tuple[Stage, ...]
    included: Bools  # [N]

    @classmethod
    def of(cls, tasks: Tasks, max_tasks: int, slack: Slack | None = None) -> Self | None:
        """Split a pass into stages of at most ``max_tasks`` tasks; None if that is impossible.

        If the slack is known, tasks and streams with much slack are omitted as far as necessary,
        but at most `MAX_OMITTED_WORK`. Limits of memory and separations concern the whole pass, so
        a pass under them has no stages.
        """
        if len(tasks.memory) or len(tasks.rivals):
            return None
        everything = Slack(np.zeros(tasks.n_tasks), np.zeros(len(tasks.source)))
        work = tasks.work.min(axis=1)
        for leeway in LEEWAYS[: 1 if slack is None else None]:
            included, streams = (np.asarray(part <= leeway) for part in slack or everything)
            if not included.any() or work[~included].sum() > MAX_OMITTED_WORK * work.sum():
                break
            streams &= included[tasks.source] & included[tasks.target]
            order = tasks.order[included[tasks.order]]
            cuts = _cut_tasks(tasks, order, streams)
            bounds = np.concatenate(([0], cuts, [len(order) - 1]))
            if np.diff(bounds).max() <= min(max_tasks, len(order) / 2):
                return cls(tuple(_parts(tasks, order, streams, cuts)), included)
        return None


def least_by_work(stage: Stage) -> Floats:
    """Lower bound of the seconds of a stage by its work, for every device of its last cut task.

    For any speeds g: T · Σ n_a g_a ≥ Σ over v of min over a of w(v, a) g_a, with n_a cores.
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
    """Positions of the cut tasks in the order."""
    n = len(order)
    position = np.full(tasks.n_tasks, -1)
    position[order] = np.arange(n)
    begin, end = position[tasks.source[streams]], position[tasks.target[streams]]
    reach, has_input = np.arange(n), np.zeros(n, np.bool_)
    np.maximum.at(reach, begin, end)
    has_input[end] = True
    past = np.maximum.accumulate(np.concatenate(([-1], reach)))[:-1]  # furthest reach before here
    last_source = int(np.flatnonzero(~has_input).max(initial=0))
    first_sink = int(np.flatnonzero(reach == np.arange(n)).min(initial=n - 1))
    here = np.arange(n)
    cuts = (past <= here) & (here >= last_source) & (here <= first_sink)
    return np.flatnonzero(cuts & ~_crossed(tasks.unit[order], n)).astype(np.int32)


def _crossed(unit: Ints, n: int) -> Bools:
    """Whether a unit has tasks before and after each position, but not at it."""
    first, last = np.full(unit.max() + 1, n), np.full(unit.max() + 1, -1)
    np.minimum.at(first, unit, np.arange(n))
    np.maximum.at(last, unit, np.arange(n))
    spans = last > first
    change = np.zeros(n + 1, np.int64)
    np.add.at(change, first[spans] + 1, 1)
    np.add.at(change, last[spans], -1)
    here = np.arange(n)
    inside_unit = (first[unit] < here) & (here < last[unit])
    return np.asarray(np.cumsum(change)[:n] - inside_unit > 0)


def _parts(tasks: Tasks, order: Ints, streams: Bools, cuts: Ints) -> Iterator[Stage]:
    """Yield the stages between the cuts of an order."""
    position = np.full(tasks.n_tasks, -1)
    position[order] = np.arange(len(order))
    stream_rows = np.flatnonzero(streams).astype(np.int32)
    ends = position[tasks.target[stream_rows]]
    stream_rows = stream_rows[np.argsort(ends, kind="stable")]
    ends = np.sort(ends)
    bounds = [0, *cuts.tolist(), len(order) - 1]
    for number, (low, high) in enumerate(pairwise(bounds)):
        begins, stops = number > 0, number < len(cuts)
        if low == high and begins:
            continue  # the pass ends with a cut task
        inner = stream_rows[np.searchsorted(ends, low + begins) : np.searchsorted(ends, high + 1)]
        rows = order[low : high + 1]
        yield Stage(rows, _cut_out(tasks, rows, inner, begins), begins, stops)


def _cut_out(tasks: Tasks, rows: Ints, streams: Ints, begins: bool) -> Tasks:
    """Extract tasks and their streams; a cut task in the first row (``begins``) takes no time."""
    n = len(rows)
    local = np.full(tasks.n_tasks, -1, np.int32)
    local[rows] = np.arange(n)
    source, target = local[tasks.source[streams]], local[tasks.target[streams]]
    by_source = np.argsort(source, kind="stable")
    streams, source, target = streams[by_source], source[by_source], target[by_source]
    in_start, in_streams = _core.group_by(target, n)
    out_start = np.searchsorted(source, np.arange(n + 1)).astype(np.int32)
    work = tasks.work[rows].copy()
    if begins:
        work[0] = np.where(np.isinf(work[0]), np.inf, 0.0)
    unit = np.unique(tasks.unit[rows], return_inverse=True)[1].astype(np.int32)
    member_start, members = _core.group_by(unit, int(unit.max()) + 1)
    return tasks._replace(
        work=work,
        order=np.arange(n, dtype=np.int32),
        in_start=in_start,
        in_streams=in_streams,
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
