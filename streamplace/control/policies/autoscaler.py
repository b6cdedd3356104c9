"""The rule of Flink's autoscaler: a target utilization, catching up, and slow scaling down."""

from collections import deque

from streamplace.control.policy import PlanChoice, SlotObservation, policy

TARGET, LOWEST = 0.7, 0.4
"""Target utilization, and the utilization below which a job goes down; it goes up above 1."""
WINDOW, STABLE, CATCH_UP, RESTART, DOWN_INTERVAL = 900.0, 300.0, 1800.0, 300.0, 3600.0
"""Seconds: of metrics, until a job is stable after a move, to drain a backlog, of an expected
restart, and of recommendations whose largest counts when going down."""


@policy("autoscaler")
class AutoscalerPolicy:
    """Follow the documented rule of Flink's autoscaler with its default settings.

    With the backlog b and the capacity r to drain in 30 minutes the tuples of a restart,

        target = rate / 0.7 + r + b / 30 min.

    A job goes up if its capacity is below rate + b / 30 min, and down if it is above the target
    with rate / 0.4. The rate is the mean of 15 minutes, which begin 5 minutes after a start or a
    move; until they have passed, nothing is decided.
    """

    def __init__(self, plans: PlanChoice) -> None:
        self._rates: deque[float] = deque(maxlen=max(1, round(WINDOW / plans.seconds)))
        self._wanted: deque[int] = deque(maxlen=max(1, round(DOWN_INTERVAL / plans.seconds)))
        self._moved, self._level = float("-inf"), -1

    def choose(self, observed: SlotObservation) -> int:
        """The plan whose utilization would be the target."""
        if observed.level != self._level:
            self._moved, self._level = observed.time, observed.level
            self._rates.clear()
        self._rates.append(observed.rate)
        if observed.time - self._moved < STABLE + WINDOW:
            return observed.level
        rate = sum(self._rates) / len(self._rates)
        pending, restart = observed.backlog / CATCH_UP, rate * RESTART / CATCH_UP
        target = observed.least_level(rate / TARGET + restart + pending)
        self._wanted.append(target)
        capacity = float(observed.capacity[observed.level])
        if capacity < rate + pending and target > observed.level:
            return target
        enough = capacity > rate / LOWEST + restart + pending
        if enough and len(self._wanted) == self._wanted.maxlen:
            return min(max(self._wanted), observed.level)
        return observed.level
