"""List scheduling by ranks, by earliest start and by batches; the first schedules of searches.

Several orders of equal ranks can be tried, which is cheap.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from streamsim import _core

from streamplace.errors import SettingError
from streamplace.model.arrays import Floats, Ints
from streamplace.scheduling.insertion import NOWHERE, Choice, ListSchedule, insert_all, plain_choice
from streamplace.scheduling.ranks import TIE, by_rank, n_orders, upward
from streamplace.scheduling.tasks import Tasks

RULES: Final = {"min-min": 0, "max-min": 1, "sufferage": 2}
"""Numbers of the rules in the core: next comes the task with the earliest or the latest of the
earliest finishes, or with the largest loss on its second-best device."""
MAX_IN_BATCHES = 3000
"""Most tasks for batch scheduling before a search: its time grows with the square of a batch."""


def quick_lists(tasks: Tasks, after: Floats) -> Iterator[ListSchedule]:
    """Initial schedules of searches: HEFT, two with look-ahead, ETF, and the best by batches.

    Several orders of tied ranks are tried.
    """
    n, rank = tasks.n_tasks, upward(tasks)
    tries = n_orders(n)
    for choice in (plain_choice(n, True), with_lookahead(after), with_lookahead(after / 2)):
        yield rank_schedules(tasks, rank, choice, tries)[-1]
    yield start_soonest(tasks, rank, plain_choice(n, True).forced)
    if n <= MAX_IN_BATCHES:
        yield min((by_batches(tasks, rule, rank) for rule in RULES.values()), key=_length)


def _length(schedule: ListSchedule) -> float:
    return float(schedule.finish.max()) if schedule.complete else np.inf


def with_lookahead(ahead: Floats) -> Choice:
    """Return the rule of the earliest finish plus the expected time after it."""
    return Choice(ahead, np.full(len(ahead), NOWHERE, np.int32), True)


def placed(tasks: Tasks, order: Ints, place: Ints) -> ListSchedule:
    """Schedule of a placement [N]; tasks at -1 go where they finish earliest."""
    return insert_all(tasks, order, Choice(np.zeros((0, 0)), np.array(place, np.int32), True))


def quickest_device(tasks: Tasks) -> int:
    """Device with the least total work of the tasks that it may run."""
    return int(np.where(np.isinf(tasks.work), 0.0, tasks.work).sum(axis=0).argmin())


def critical_paths(tasks: Tasks, rng: np.random.Generator) -> Iterator[ListSchedule]:
    """Yield endless schedules: longest path to an exit first, earliest start, random ties."""
    rank, usable = upward(tasks), np.isfinite(tasks.work)
    tie = TIE * float(rank.max())
    nowhere = np.full(tasks.n_tasks, NOWHERE, np.int32)
    while True:
        order = by_rank(tasks, rank + tie * rng.random(len(rank)))
        noise = tie * rng.random(tasks.work.shape)
        sooner = np.where(usable, noise - np.where(usable, tasks.work, 0.0), np.inf)
        yield insert_all(tasks, order, Choice(sooner, nowhere, False))


def rank_schedules(
    tasks: Tasks, rank: Floats, choice: Choice, tries: int = 1, seed: int = 0
) -> tuple[ListSchedule, ...]:
    """Schedule by rank, then the shortest complete one of the other tries, if it is shorter."""
    if tries < 1:
        raise SettingError(f"tries is {tries}; it must be at least 1")
    usual = insert_all(tasks, by_rank(tasks, rank), choice)
    if tries == 1:
        return (usual,)
    draws = np.random.default_rng(seed).random((tries - 1, len(rank)))
    shorter = _core.shorter(tasks.core, rank, choice, draws, _length(usual))
    return (usual,) if shorter is None else (usual, ListSchedule(*shorter))


def start_soonest(tasks: Tasks, rank: Floats, favourite: Ints) -> ListSchedule:
    """Schedule the pair of ready task and device that can start first; ties by the highest rank.

    A task may have a *favourite* among its successors. The core that ran the task is then reserved
    for the favourite until the favourite could start elsewhere as well.
    """
    return ListSchedule(*_core.start_soonest(tasks.core, rank, favourite))


def by_batches(tasks: Tasks, rule: int, rank: Floats) -> ListSchedule:
    """Schedule all ready tasks as a batch, then the tasks that became ready.

    The tasks of a batch are mapped one at a time, each to the core where it finishes earliest;
    rules differ in which task comes next. Ties within the rule are broken by the highest rank.
    """
    return ListSchedule(*_core.by_batches(tasks.core, rule, rank))
