"""Schedules rebuilt by trained weights; numpy alone."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamplace.learn.algorithms.kernels import feature_names, weights_of
from streamplace.learn.model_weights import check_maps, loaded, read_model
from streamplace.learn.models.pilot_makespan.features import (
    PilotMakespanFeatures,
    TaskDeviceFeature,
    TaskStepFeature,
    previous_of,
    staying,
)
from streamplace.learn.models.pilot_makespan.model import PilotMakespanConfig
from streamplace.learn.models.pilot_makespan.rollouts import (
    PilotMakespanNetwork,
    maps_of,
    rollouts,
)
from streamplace.model.arrays import Bools, Floats, Singles
from streamplace.scheduling.insertion import NOWHERE, ListSchedule
from streamplace.scheduling.lists import critical_paths, placed, quick_lists, quickest_device
from streamplace.scheduling.ranks import by_rank, upward

FEATURES = [
    *(f"device {name}" for name in feature_names(TaskDeviceFeature)),
    *(f"step {name}" for name in feature_names(TaskStepFeature)),
]
"""Features of the policy; weights only fit the features that they were trained on."""
NOISE = 0.2
"""Largest share of the span by which the order is perturbed."""
MAX_EXCESS = 0.03
"""Largest share by which the schedule that is rebuilt may be worse than the best."""
N_CRITICAL_PATHS = 8
"""Number of critical-path schedules with random ties: many tasks and devices are alike."""


class Chance(NamedTuple):
    """Random parts of the rebuilding of a schedule."""

    noise: Floats  # [N] shift of every task in the order, in multiples of `NOISE`
    uniform: Singles  # [N] numbers to draw choices with; below 0, the likeliest is taken
    stays: Bools  # [N] tasks that keep their device


@dataclass(frozen=True, slots=True)
class TrainedPilotMakespan:
    """A network that rebuilds schedules."""

    network: PilotMakespanNetwork

    def schedules(
        self,
        features: PilotMakespanFeatures,
        first: Iterable[ListSchedule],
        value: Callable[[ListSchedule], float],
        sweeps: int,
        samples: int,
        seed: int,
    ) -> Iterator[ListSchedule]:
        """Yield the first schedules, greedy rebuilds, random list schedules, and samples.

        Each of the ``sweeps`` greedy rebuilds decides anew about every task of the best schedule so
        far. Samples keep the devices of a share of the tasks, and may also start from a schedule
        that is slightly worse. ``value`` is called once for every schedule in turn; the schedule
        with the lowest value is the best.
        """
        rng, least = np.random.default_rng(seed), np.inf
        present: list[ListSchedule] = []  # schedule to rebuild next

        def offered(schedule: ListSchedule, worse: float = 0.0) -> ListSchedule:
            """Go on from a complete schedule that is better than the last one, or hardly worse."""
            nonlocal least
            reached = value(schedule)
            if schedule.complete and reached <= least * (1 + worse):
                present[:], least = [schedule], reached
            return schedule

        for schedule in first:
            yield offered(schedule)
        if not present:
            return
        for _ in range(sweeps):
            yield offered(self.rebuilt(features, present[0], even(features)))
        for schedule in islice(critical_paths(features.tasks, rng), N_CRITICAL_PATHS):
            yield offered(schedule)
        for _ in range(samples):
            schedule = self.rebuilt(features, present[0], chance(features, rng))
            yield offered(schedule, MAX_EXCESS * rng.random())

    def rebuilt(
        self, features: PilotMakespanFeatures, schedule: ListSchedule, chance: Chance
    ) -> ListSchedule:
        """Rebuild a complete schedule."""
        before = previous_of(features.tasks, schedule, NOISE * chance.noise)
        fixed, uniform = staying(before, chance.stays)[None], chance.uniform[None]
        rows = rollouts(features, before, self.network, fixed, uniform)
        return ListSchedule(rows.place[0], rows.start[0], rows.finish[0])


def even(features: PilotMakespanFeatures) -> Chance:
    """Nothing random: every task is decided again."""
    n = features.tasks.n_tasks
    return Chance(np.zeros(n), np.full(n, -1, np.float32), np.zeros(n, np.bool_))


def chance(features: PilotMakespanFeatures, rng: np.random.Generator) -> Chance:
    """Draw which tasks stay or are drawn, and their noise, in shares that are drawn as well."""
    n, shares = features.tasks.n_tasks, rng.random(3)
    uniform = np.where(rng.random(n) < shares[0], rng.random(n), -1).astype(np.float32)
    return Chance(shares[1] * rng.random(n), uniform, rng.random(n) < shares[2])


def span(schedule: ListSchedule) -> float:
    """Seconds that a pass takes, on networks in which no transfer waits."""
    return float(schedule.finish.max())


def first_schedules(features: PilotMakespanFeatures) -> Iterator[ListSchedule]:
    """Schedules to begin with: quick heuristics, and all tasks on the quickest device."""
    tasks = features.tasks
    yield from quick_lists(tasks, features.after)
    quickest = quickest_device(tasks)
    together = np.full(tasks.n_tasks, quickest, np.int32)
    together[np.isinf(tasks.work[:, quickest])] = NOWHERE
    yield placed(tasks, by_rank(tasks, upward(tasks)), together)


@loaded
def trained(path: Path) -> TrainedPilotMakespan:
    """Policy from a weights file."""
    weights, options, where = read_model(path, "pilot-makespan", PilotMakespanConfig, FEATURES)
    check_maps(weights.tensors, maps_of(options.width), where)
    return TrainedPilotMakespan(weights_of(PilotMakespanNetwork, weights.tensors))
