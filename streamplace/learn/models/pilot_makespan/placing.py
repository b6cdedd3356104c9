"""Schedules rebuilt by trained weights; numpy and numba alone."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.io.files import spot
from streamplace.io.weights import read_weights, stamped
from streamplace.learn.config import parsed
from streamplace.learn.improving.shapes import check_shapes
from streamplace.learn.models.pilot_makespan.measures import DEVICE_FEATURES, STEP_FEATURES
from streamplace.learn.models.pilot_makespan.network import Network, network_of, shapes
from streamplace.learn.models.pilot_makespan.options import PilotMakespanConfig
from streamplace.learn.models.pilot_makespan.rollout import NOTHING, rollouts
from streamplace.learn.models.pilot_makespan.view import View, before_of, kept
from streamplace.model.arrays import Bools, Floats
from streamplace.scheduling.insertion import NOWHERE, Schedule
from streamplace.scheduling.lists import critical_paths, placed, quick_lists, quickest_device
from streamplace.scheduling.ranks import by_rank, upward

Singles = NDArray[np.float32]

FEATURES = [
    *(f"device {name}" for name in DEVICE_FEATURES),
    *(f"step {name}" for name in STEP_FEATURES),
]
"""What the policy looks at; weights fit only the features that they were trained on."""


NOISE = 0.2
"""Share of the span by which the order is disturbed, at most."""
ACCEPTED = 0.03
"""Share by which a schedule that the next one is made from may be worse, at most."""
DRAWN = 8
"""Schedules of critical paths in which equals are drawn: many tasks and devices are alike."""


class Chance(NamedTuple):
    """What is left to chance when a schedule is rebuilt."""

    noise: Floats  # [N] by which a task comes earlier, in multiples of `NOISE`
    uniform: Singles  # [N] numbers to draw choices with; below 0, the likeliest is taken
    stays: Bools  # [N] tasks that stay where they are


@dataclass(frozen=True, slots=True)
class TrainedPilotMakespan:
    """A network that rebuilds schedules."""

    network: Network

    def schedules(
        self,
        view: View,
        first: Iterable[Schedule],
        worth: Callable[[Schedule], float],
        looks: int,
        samples: int,
        seed: int,
    ) -> Iterator[Schedule]:
        """First schedules; so many rebuilt greedily; some drawn; so many with drawn choices.

        Each look is in sight of the best schedule before, and decides about everything. Samples
        keep a share of what there is, and go on from a little worse schedules, too. What is best
        says ``worth``, the less the better, which is asked once for every schedule in turn.
        """
        rng, sight = np.random.default_rng(seed), _Sight(worth)
        for schedule in first:
            yield sight.offered(schedule)
        if sight.present is None:
            return
        for _ in range(looks):
            yield sight.offered(self.rebuilt(view, sight.present, even(view)))
        for schedule in islice(critical_paths(view.tasks, rng), DRAWN):
            yield sight.offered(schedule)
        for _ in range(samples):
            schedule = self.rebuilt(view, sight.present, chance(view, rng))
            yield sight.offered(schedule, ACCEPTED * rng.random())

    def rebuilt(self, view: View, schedule: Schedule, chance: Chance) -> Schedule:
        """One more schedule, in sight of a complete one."""
        before = before_of(view.tasks, schedule, NOISE * chance.noise)
        given = kept(before, chance.stays)[None]
        _, rows = rollouts(view, before, self.network, given, chance.uniform[None], NOTHING)
        return Schedule(rows.place[0], rows.start[0], rows.finish[0])


class _Sight:
    """The schedule that the next one is made in sight of."""

    def __init__(self, worth: Callable[[Schedule], float]) -> None:
        self.present: Schedule | None = None
        self._worth, self._least = worth, np.inf

    def offered(self, schedule: Schedule, worse: float = 0.0) -> Schedule:
        """Take a complete schedule that is better, or worse by less than this share."""
        reached = self._worth(schedule)
        if schedule.complete and reached <= self._least * (1 + worse):
            self.present, self._least = schedule, reached
        return schedule


def even(view: View) -> Chance:
    """Everything is decided anew, and nothing left to chance."""
    n = view.tasks.n_tasks
    return Chance(np.zeros(n), np.full(n, -1, np.float32), np.zeros(n, np.bool_))


def chance(view: View, rng: np.random.Generator) -> Chance:
    """How much stays, is drawn and is disturbed is a matter of chance itself."""
    n, most = view.tasks.n_tasks, rng.random(3)
    uniform = np.where(rng.random(n) < most[0], rng.random(n), -1).astype(np.float32)
    return Chance(most[1] * rng.random(n), uniform, rng.random(n) < most[2])


def span(schedule: Schedule) -> float:
    """Seconds that a pass takes, on networks in which no transfer waits."""
    return float(schedule.finish.max())


def first_schedules(view: View) -> Iterator[Schedule]:
    """Schedules to begin with: those that cost little, and everything together."""
    tasks = view.tasks
    yield from quick_lists(tasks, view.after)
    quickest = quickest_device(tasks)
    together = np.full(tasks.n_tasks, quickest, np.int32)
    together[np.isinf(tasks.work[:, quickest])] = NOWHERE
    yield placed(tasks, by_rank(tasks, upward(tasks)), together)


def trained(path: Path) -> TrainedPilotMakespan:
    """Policy from a weights file, read once as long as the file stays what it is."""
    return _trained(*stamped(path))


@lru_cache(maxsize=8)
def _trained(path: Path, stamp: tuple[int, int]) -> TrainedPilotMakespan:
    weights = read_weights(path, model="pilot-makespan", features=FEATURES)
    where = spot(path)
    options = parsed(PilotMakespanConfig, weights.document["config"], f"{where}: config")
    check_shapes(weights.tensors, shapes(options.width), where)
    return TrainedPilotMakespan(network_of(weights.tensors))
