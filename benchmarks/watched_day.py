"""A day of a Flink job in minutes: its phases, and what became of it under a watch.

Everything here is part of the protocol of the watched day in docs/results/evidence.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

LAG_SECONDS = 10.0
"""Tuples that wait no longer than this are in time."""
LAST_SECONDS = 30.0
"""A phase is settled if the job was in time for this long at its end."""
STEP_SECONDS = 5.0
"""Time for which a rate that swings stays the same."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the day.

    Attributes
    ----------
    rate
        Tuples/s that arrive, relative to what four TaskManagers carried before.
    share
        Share of the tuples with one key.
    work
        Factor of the work of the counting operator.
    is_lost
        Whether a TaskManager that the job uses is killed at its beginning.
    swing
        The rate rises and falls by this share of it, as one period of a sine.
    """

    name: str
    rate: float
    share: float = 0.0
    work: float = 1.0
    is_lost: bool = False
    swing: float = 0.0


DAY = (
    Phase("morning", 0.35),
    Phase("doubled", 0.70),
    Phase("halved", 0.35),
    Phase("a sine", 0.45, swing=0.5),
    Phase("one key is popular", 0.35, share=0.3),
    Phase("an operator is twice as slow", 0.35, work=2.0),
    Phase("a TaskManager is lost", 0.40, is_lost=True),
    Phase("night", 0.10),
)


class Moment(NamedTuple):
    """The job at one moment.

    Attributes
    ----------
    second
        Since the beginning of the day.
    read
        Tuples that the source has read so far.
    waits
        Tuples that have arrived and were not read.
    machines
        TaskManagers that the job uses; 0 while it does not run.
    """

    second: float
    read: float
    waits: float
    machines: int


class Move(NamedTuple):
    """A move, or a replacement of a TaskManager.

    Attributes
    ----------
    second
        When it was begun.
    outage
        Seconds for which the job did not run; None if unknown.
    """

    second: float
    kind: str
    outage: float | None


class PhaseResult(NamedTuple):
    """What became of a phase.

    Attributes
    ----------
    in_time
        Share of the moments at which no tuple waited too long.
    machines
        Mean number of TaskManagers that the job used.
    is_settled
        Whether the job was in time at the end of the phase, after at most one move.
    """

    name: str
    in_time: float
    machines: float
    moves: int
    is_settled: bool


@dataclass(frozen=True)
class Phases:
    """The day, with the length of a phase and the rate of 1.

    >>> day = Phases([Phase("noon", 0.5), Phase("night", 0.1, 0.3)], 60, 1000)
    >>> day.arrived(70.0), day.at(70.0).name
    (31000.0, 'night')
    """

    phases: Sequence[Phase]
    seconds: float
    capacity: float

    def text(self) -> str:
        """File that the job reads: a line for each rate, and one after which nothing arrives."""
        lines = [
            f"{begin:g} {rate:.6g} {self.at(begin).share:g} {self.at(begin).work:g}"
            for begin, _, rate in self.rates()
        ]
        return "\n".join([*lines, f"{self.end:g} 0 0 1"])

    def rates(self) -> Iterator[tuple[float, float, float]]:
        """Beginning, end and tuples/s of every part of the day with one rate."""
        for i, phase in enumerate(self.phases):
            step = STEP_SECONDS if phase.swing else self.seconds
            for begin in np.arange(0.0, self.seconds, step).tolist():
                end = min(begin + step, self.seconds)
                angle = math.pi * (begin + end) / self.seconds  # in the middle of the step
                rate = phase.rate * self.capacity * (1 + phase.swing * math.sin(angle))
                yield i * self.seconds + begin, i * self.seconds + end, rate

    def arrived(self, second: float) -> float:
        """Tuples that have arrived until a second of the day."""
        return sum(
            rate * min(max(second - begin, 0.0), end - begin) for begin, end, rate in self.rates()
        )

    def rate(self, second: float) -> float:
        """Tuples/s that arrive at a moment; of the last ones after the end."""
        begun = [rate for begin, _, rate in self.rates() if begin <= max(second, 0.0)]
        return begun[-1]

    def at(self, second: float) -> Phase:
        """The phase at a moment."""
        return self.phases[min(int(second / self.seconds), len(self.phases) - 1)]

    @property
    def end(self) -> float:
        """Seconds of the day."""
        return len(self.phases) * self.seconds

    @property
    def loss(self) -> float:
        """Second at which a TaskManager is killed."""
        losses = (i * self.seconds for i, phase in enumerate(self.phases) if phase.is_lost)
        return next(losses, -1.0)

    def results(self, moments: Sequence[Moment], moves: Sequence[Move]) -> list[PhaseResult]:
        """Judge every phase of a day that was measured."""
        results = []
        for i, phase in enumerate(self.phases):
            start, end = i * self.seconds, (i + 1) * self.seconds
            own = [moment for moment in moments if start <= moment.second < end]
            timely = [
                moment.waits <= LAG_SECONDS * self.rate(moment.second) and moment.machines > 0
                for moment in own
            ]
            pairs = zip(own, timely, strict=True)
            last = [fine for moment, fine in pairs if moment.second >= end - LAST_SECONDS]
            number = sum(start <= move.second < end for move in moves)
            results.append(
                PhaseResult(
                    phase.name,
                    float(np.mean(timely)) if timely else 0.0,
                    float(np.mean([moment.machines for moment in own])) if own else 0.0,
                    number,
                    bool(last) and all(last) and number <= 1,
                )
            )
        return results


def outage_quantile(moves: Sequence[Move], quantile: float = 0.95) -> float | None:
    """Quantile of the known outages; None if none is known."""
    known = [move.outage for move in moves if move.outage is not None]
    return float(np.quantile(known, quantile)) if known else None
