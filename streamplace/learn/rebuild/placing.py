"""Schedules rebuilt by trained weights; numpy and numba alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np

from streamplace.io.files import spot
from streamplace.io.weights import read_weights, stamped
from streamplace.learn.improving.shapes import check_shapes
from streamplace.learn.rebuild.measures import DEVICE_FEATURES, STEP_FEATURES
from streamplace.learn.rebuild.network import Network, network_of, shapes
from streamplace.learn.rebuild.rollout import NOTHING, rollouts
from streamplace.learn.rebuild.view import View, before_of, view_of
from streamplace.model.problem import Problem
from streamplace.scheduling.insertion import Schedule, insert_all, plain_choice
from streamplace.scheduling.lists import looking
from streamplace.scheduling.ranks import by_rank, upward

FEATURES = [
    *(f"device {name}" for name in DEVICE_FEATURES),
    *(f"step {name}" for name in STEP_FEATURES),
]
"""What the policy looks at; weights fit only the features that they were trained on."""


@dataclass(frozen=True, slots=True)
class TrainedRebuilder:
    """A network that rebuilds schedules."""

    network: Network

    def greedy(self, problem: Problem, looks: int) -> list[Schedule]:
        """First schedule and so many rebuilt ones, at every decision the likeliest."""
        return list(islice(self.schedules(problem, looks, 0), looks + 1))

    def schedules(self, problem: Problem, looks: int, seed: int) -> Iterator[Schedule]:
        """Rebuild again and again: so many times greedily, then with choices drawn.

        Each is built in sight of the best complete one before.
        """
        view, rng = view_of(problem), np.random.default_rng(seed)
        best = first_schedule(view)
        if best is None:
            return
        yield best
        number = 0
        while True:
            drawn = number >= looks
            schedule = self._rebuilt(view, best, rng, drawn=drawn)
            yield schedule
            number += 1
            if schedule.complete and schedule.finish.max() <= best.finish.max():
                best = schedule

    def _rebuilt(
        self, view: View, schedule: Schedule, rng: np.random.Generator, *, drawn: bool
    ) -> Schedule:
        n = view.tasks.n_tasks
        noise, uniform = np.zeros(n), np.full((1, n), -1, np.float32)
        if drawn:
            noise = NOISE * rng.random() * rng.random(n)
            uniform = rng.random((1, n), dtype=np.float32)
            uniform[rng.random((1, n)) >= rng.random()] = -1
        before, given = before_of(view.tasks, schedule, noise), np.full((1, n), -1, np.int32)
        _, rows = rollouts(view, before, self.network, given, uniform, NOTHING)
        return Schedule(*(part[0] for part in rows))


NOISE = 0.05
"""Shares of the span by which the order of a rebuilt schedule is disturbed, at most."""


def first_schedule(view: View) -> Schedule | None:
    """Foresight's schedule, or HEFT's where the rules left that one no choice; None if both."""
    order = by_rank(view.tasks, upward(view.tasks))
    for choice in (looking(view.after), plain_choice(len(order), True)):
        schedule = insert_all(view.tasks, order, choice)
        if schedule.complete:
            return schedule
    return None


def trained(path: Path) -> TrainedRebuilder:
    """Policy from a weights file, read once as long as the file stays what it is."""
    return _trained(*stamped(path))


@lru_cache(maxsize=8)
def _trained(path: Path, stamp: tuple[int, int]) -> TrainedRebuilder:
    weights = read_weights(path, model="pilot-makespan", features=FEATURES)
    width = int(weights.document["config"]["width"])
    check_shapes(weights.tensors, shapes(width), spot(path))
    return TrainedRebuilder(network_of(weights.tensors))
