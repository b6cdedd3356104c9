"""List schedulers: combinations of an order of the tasks and a rule for choosing devices.

Several orders of tasks with equal ranks can be tried, which is cheap.
"""

from collections.abc import Iterator

import numpy as np
from streamsim.jit import kernel, patient

from streamplace.errors import SettingError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.scheduling.batches import RULES, by_batches
from streamplace.scheduling.insertion import (
    NOWHERE,
    Choice,
    ListSchedule,
    by_upward_rank,
    insert_all,
    plain_choice,
)
from streamplace.scheduling.ranks import (
    by_rank,
    downward,
    least_after,
    optimistic_costs,
    upward,
)
from streamplace.scheduling.soonest import start_soonest
from streamplace.scheduling.tasks import Tasks, tasks_of

TRIES, TRIED_TASKS = 8, 2000
"""Most orders of tied ranks to try before a search, and most tasks of all of them together."""
MOST_IN_BATCHES = 3000
"""Most tasks for batch scheduling before a search: its time grows with the square of a batch."""
TIE = 1e-9
"""Share of the highest rank within which ranks count as equal."""


def by_ranks(problem: Problem, insertion: bool, tries: int, seed: int) -> tuple[ListSchedule, ...]:
    """Schedules of HEFT."""
    tasks = tasks_of(problem)
    if tries == 1:
        return (by_upward_rank(tasks, insertion),)
    return tied(tasks, upward(tasks), plain_choice(tasks.n_tasks, insertion), tries, seed)


def foresighted(problem: Problem, tries: int, seed: int) -> tuple[ListSchedule, ...]:
    """Schedules of PEFT."""
    tasks = tasks_of(problem)
    table = optimistic_costs(tasks)
    return tied(tasks, _mean_where_allowed(tasks, table), looking(table), tries, seed)


def farsighted(problem: Problem, tries: int, seed: int) -> Iterator[ListSchedule]:
    """Schedules with look-ahead by the least time to the end: in full, by half and without."""
    tasks = tasks_of(problem)
    after, rank = least_after(tasks), upward(tasks)
    for choice in (looking(after), looking(after / 2), plain_choice(tasks.n_tasks, True)):
        yield from tied(tasks, rank, choice, tries, seed)


def quick_lists(tasks: Tasks, after: Floats) -> Iterator[ListSchedule]:
    """Initial schedules of searches: HEFT, two with look-ahead, ETF, and the best by batches.

    Several orders of tied ranks are tried.
    """
    n, rank = tasks.n_tasks, upward(tasks)
    tries = int(np.clip(TRIED_TASKS // n, 1, TRIES))
    for choice in (plain_choice(n, True), looking(after), looking(after / 2)):
        yield tied(tasks, rank, choice, tries)[-1]
    yield start_soonest(tasks, rank, plain_choice(n, True).forced)
    if n <= MOST_IN_BATCHES:
        yield min((by_batches(tasks, rule, rank) for rule in RULES.values()), key=_length)


def _length(schedule: ListSchedule) -> float:
    return float(schedule.finish.max()) if schedule.complete else np.inf


def looking(ahead: Floats) -> Choice:
    """Return the rule of the earliest finish plus the expected time after it."""
    return Choice(ahead, np.full(len(ahead), NOWHERE, np.int32), True)


def placed(tasks: Tasks, order: Ints, place: Ints) -> ListSchedule:
    """Schedule of a placement [N]; tasks at -1 go where they finish earliest."""
    return insert_all(tasks, order, Choice(np.zeros((0, 0)), np.array(place, np.int32), True))


def quickest_device(tasks: Tasks) -> int:
    """Device with the least total work of the tasks that it may run."""
    return int(np.where(np.isinf(tasks.work), 0.0, tasks.work).sum(axis=0).argmin())


def path_on_one_device(problem: Problem, tries: int, seed: int) -> tuple[ListSchedule, ...]:
    """Schedules of CPOP."""
    tasks = tasks_of(problem)
    priority = upward(tasks) + downward(tasks)
    forced = np.full(tasks.n_tasks, NOWHERE, np.int32)
    left = _critical_path(tasks, priority)
    while len(left):
        allowed = np.isfinite(tasks.work[left])
        most = allowed.sum(axis=0)
        total = np.where(allowed, tasks.work[left], 0.0).sum(axis=0)
        device = int(np.lexsort((total, -most))[0])
        forced[left[allowed[:, device]]] = device
        left = left[~allowed[:, device]]
    schedules = tied(tasks, priority, Choice(np.zeros((0, 0)), forced, True), tries, seed)
    if schedules[-1].complete:
        return schedules
    return tied(tasks, priority, plain_choice(tasks.n_tasks, True), tries, seed)


def critical_paths(tasks: Tasks, rng: np.random.Generator) -> Iterator[ListSchedule]:
    """Yield schedules without end: longest path to an exit first, earliest start, random ties."""
    rank, usable = upward(tasks), np.isfinite(tasks.work)
    tie = TIE * float(rank.max())
    nowhere = np.full(tasks.n_tasks, NOWHERE, np.int32)
    while True:
        order = by_rank(tasks, rank + tie * rng.random(len(rank)))
        noise = tie * rng.random(tasks.work.shape)
        sooner = np.where(usable, noise - np.where(usable, tasks.work, 0.0), np.inf)
        yield insert_all(tasks, order, Choice(sooner, nowhere, False))


def _critical_path(tasks: Tasks, priority: Floats) -> Ints:
    """Path of highest priorities from a source to a sink."""
    sources = np.flatnonzero(np.diff(tasks.in_start) == 0)
    path = [int(sources[np.argmax(priority[sources])])]
    while tasks.out_start[path[-1]] < tasks.out_end[path[-1]]:
        followers = tasks.target[tasks.out_start[path[-1]] : tasks.out_end[path[-1]]]
        path.append(int(followers[np.argmax(priority[followers])]))
    return np.array(path, np.int32)


def _mean_where_allowed(tasks: Tasks, table: Floats) -> Floats:
    allowed = np.isfinite(tasks.work)
    return np.asarray(np.where(allowed, table, 0.0).sum(axis=1) / allowed.sum(axis=1))


def tied(
    tasks: Tasks, rank: Floats, choice: Choice, tries: int = 1, seed: int = 0
) -> tuple[ListSchedule, ...]:
    """Schedule by rank; also the shortest complete one of the other tries, if it is shorter."""
    if tries < 1:
        raise SettingError(f"tries is {tries}; it must be at least 1")
    usual = insert_all(tasks, by_rank(tasks, rank), choice)
    if tries == 1:
        return (usual,)
    draws = np.random.default_rng(seed).random((tries - 1, len(rank)))
    least = float(usual.finish.max()) if usual.complete else np.inf
    shorter = _shorter(tasks, rank, choice, draws, least)
    return (usual, shorter) if shorter.complete else (usual,)


@patient
@kernel
def _shorter(
    tasks: Tasks, rank: Floats, choice: Choice, draws: Floats, least: float
) -> ListSchedule:
    """Shortest schedule with random ties that is below ``least``; without devices if none is."""
    n = len(rank)
    best = ListSchedule(np.full(n, -1, np.int32), np.zeros(n), np.zeros(n))
    usual, tie = by_rank(tasks, rank), TIE * rank.max()
    for i in range(len(draws)):
        order = by_rank(tasks, rank + tie * draws[i])
        if (order == usual).all():
            continue
        schedule = insert_all(tasks, order, choice)
        if (schedule.place >= 0).all() and schedule.finish.max() < least:
            best, least = schedule, schedule.finish.max()
    return best
