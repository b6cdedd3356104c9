"""Replays: a policy decides along a trace, and a queue gives the lateness of tuples.

All tuples wait in one queue, which the running plan empties at its capacity. During a move, the old
plan runs for the delay, the job stands still for the interruption, and then the new plan runs. Both
plans cost while a move is under way.
"""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from streamplace.control.policy import MakePolicy, SlotObservation
from streamplace.control.problem import ControlDay
from streamplace.errors import SettingError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.columns import frozen
from streamplace.model.message_text import quoted
from streamplace.planning.result import HOUR

MAX_STEP = 1.0
"""Maximum seconds of a step of the queue; judgement: far below usual lags."""


@dataclass(frozen=True, slots=True, eq=False)
class PolicyReplay:
    """Result of a policy on a trace: costs, moves and lateness."""

    name: str
    level: Ints  # [T] plan that runs at the end of each slot
    moves: int
    machine_cost: float  # of both plans during a move
    move_cost: float  # price of all moves
    punctual: float  # part of the time in which no tuple was later than the lag
    latest: float  # maximum lateness of a tuple in seconds

    @property
    def cost(self) -> float:
        """Cost of the machines and the moves."""
        return self.machine_cost + self.move_cost


def replay(day: ControlDay, name: str, make: MakePolicy) -> PolicyReplay:
    """Let a policy decide at the end of each slot; the cheapest plan for the first slot begins."""
    capacity = frozen(day.rated_capacity.copy())
    policy, run = make(day.choice), _Run(day)
    for slot in range(len(day.slots)):
        run.pass_slot(slot)
        observed = SlotObservation(
            (slot + 1) * day.slots.seconds,
            float(day.offered[slot]),
            run.backlog,
            run.level,
            capacity[slot],
        )
        target = policy.choose(observed)
        if not isinstance(target, Integral) or not 0 <= target < len(day.plans):
            raise SettingError(
                f"policy {quoted(name)} chose {quoted(target)}; it must choose a plan from 0 to "
                f"{len(day.plans) - 1}"
            )
        if slot + 1 < len(day.slots):  # a later move would not happen within the trace
            run.begin_move(int(target))
    return run.result(name)


class _Run:
    """The state of a job and of its queue."""

    def __init__(self, day: ControlDay) -> None:
        self.day = day
        self.level = int(day.carries[0].argmax())
        self.backlog, self.moves, self.machine_cost, self.move_cost = 0.0, 0, 0.0, 0.0
        self.steps = max(1, round(day.slots.seconds / MAX_STEP))
        self.length = day.slots.seconds / self.steps
        self._target, self._ready, self._down = self.level, 0.0, 0.0
        self._levels: list[int] = []
        self._waiting: list[Floats] = []

    @property
    def is_moving(self) -> bool:
        """Whether a move is under way."""
        return self._target != self.level

    def begin_move(self, target: int) -> None:
        """Begin a move to a plan, unless a move is under way."""
        if self.is_moving or target == self.level:
            return
        self._target = target
        self._ready, self._down = self.day.terms.delay, self.day.terms.interruption
        self.moves += 1
        self.move_cost += float(self.day.price[self.level, target])

    def pass_slot(self, slot: int) -> None:
        """Let a slot pass: tuples arrive, the plan works, a move goes on."""
        if self.is_moving:
            service = np.array([self._work_of(slot) for _ in range(self.steps)])
        else:
            capacity = float(self.day.capacity[slot, self.level])
            service = np.full(self.steps, capacity * self.length)
            self.machine_cost += float(self.day.cost[self.level]) * self.day.hours
        change = float(self.day.offered[slot]) * self.length - service
        unbounded = self.backlog + np.cumsum(change)  # below 0 where the plan had nothing to do
        waiting = unbounded - np.minimum(np.minimum.accumulate(unbounded), 0.0)
        self._waiting.append(waiting)
        self.backlog = float(waiting[-1])
        self._levels.append(self.level)

    def _work_of(self, slot: int) -> float:
        """Tuples that a step can process in a slot with a move; adds its cost to `machine_cost`."""
        costs, length = self.day.cost[self.level], self.length
        if self.is_moving:
            costs += self.day.cost[self._target]
        self.machine_cost += float(costs) * length / HOUR
        works = length
        if self.is_moving and self._ready > 0:
            self._ready -= length
        elif self.is_moving:
            works = max(0.0, length - self._down)
            self._down -= length
            if self._down > 1e-9:
                return 0.0
            self.level = self._target
        return float(self.day.capacity[slot, self.level]) * works

    def result(self, name: str) -> PolicyReplay:
        """Return the result of all slots."""
        arrived = np.repeat(self.day.offered * self.length, self.steps)
        late = lateness(arrived, np.concatenate(self._waiting)) * self.length
        punctual: Bools = late <= self.day.terms.lag
        return PolicyReplay(
            name,
            np.array(self._levels, np.int32),
            self.moves,
            self.machine_cost,
            self.move_cost,
            float(punctual.mean()),
            float(late.max()),
        )


def lateness(arrived: Floats, waiting: Floats) -> Floats:
    """Steps since the arrival of the tuple that is processed at the end of each step.

    >>> lateness(np.array([10.0, 10.0, 10.0]), np.array([0.0, 5.0, 15.0])).tolist()
    [0.0, 0.5, 1.5]
    """
    total = np.concatenate(([0.0], np.cumsum(arrived)))
    steps = np.arange(len(total), dtype=np.float64)
    processed = np.maximum(total[1:] - waiting, 0.0)
    # In a pause without arrivals, only the last step precedes the next arrival.
    at = np.interp(processed, total, steps)
    return np.where(waiting > 1e-9 * total[-1], steps[1:] - at, 0.0)
