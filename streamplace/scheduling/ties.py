"""Ties: tries several orders of tasks with equal ranks, which is cheap."""

import numpy as np
from streamsim.jit import kernel, patient

from streamplace.errors import SettingError
from streamplace.model.arrays import Floats
from streamplace.scheduling.insertion import Choice, ListSchedule, insert_all
from streamplace.scheduling.ranks import by_rank
from streamplace.scheduling.tasks import Tasks

TIE = 1e-9
"""Share of the highest rank within which ranks count as equal."""


def tied(
    tasks: Tasks, rank: Floats, choice: Choice, tries: int = 1, seed: int = 0
) -> tuple[ListSchedule, ...]:
    """Schedule by rank, and return also the shortest schedule with random ties, if shorter.

    Parameters
    ----------
    tries
        Number of schedules in total.
    """
    if tries < 1:
        raise SettingError(f"tries is {tries}; it must be at least 1")
    usual = insert_all(tasks, by_rank(tasks, rank), choice)
    if tries == 1:
        return (usual,)
    draws = np.random.default_rng(seed).random((tries - 1, len(rank)))
    shorter = _shorter(tasks, rank, choice, draws, float(usual.finish.max()))
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
