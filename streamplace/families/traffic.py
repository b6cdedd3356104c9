"""Traffic on a grid of streets: where a car is, second by second, without a traffic simulator.

A car starts on a street, keeps its speed, and at every crossing goes straight on three times of
five, else left or right; at the edge of the area it takes a street that stays inside.
"""

from typing import NamedTuple

import numpy as np

from streamplace.model.arrays import Floats

CROSSINGS = 6
BLOCK_M = 380.0
"""Streets of an area: six by six crossings, so far apart that three are near a car on average."""
SPEEDS = (8.0, 14.0)
STRAIGHT = 0.6
_DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))


class Car(NamedTuple):
    """A drive: the crossings that a car comes by, and its speed.

    Attributes
    ----------
    way
        [K, 2] crossings in order, in blocks.
    offset
        Metres from the first of them at time 0.
    speed
        Metres per second.
    """

    way: Floats
    offset: float
    speed: float

    def at(self, seconds: float) -> Floats:
        """Position in metres, [2]."""
        blocks = (self.offset + self.speed * seconds) / BLOCK_M
        leg = int(blocks)
        start, end = self.way[leg], self.way[leg + 1]
        return np.asarray((start + (blocks - leg) * (end - start)) * BLOCK_M)


def crossings() -> Floats:
    """Positions of all crossings in metres, [36, 2]."""
    rows = np.arange(CROSSINGS) * BLOCK_M
    return np.stack(np.meshgrid(rows, rows, indexing="ij"), axis=-1).reshape(-1, 2)


def drive(seconds: float, rng: np.random.Generator) -> Car:
    """Draw a drive of at least so many seconds."""
    speed = float(rng.uniform(*SPEEDS))
    offset = float(rng.uniform(0, BLOCK_M))
    at = tuple(rng.integers(CROSSINGS, size=2).tolist())
    heading = int(rng.integers(4))
    way = [at]
    while (len(way) - 2) * BLOCK_M < offset + speed * seconds:
        heading = _turned(at, heading, rng)
        at = _next(at, heading)
        way.append(at)
    return Car(np.array(way, np.float64), offset, speed)


def _turned(at: tuple[int, int], heading: int, rng: np.random.Generator) -> int:
    """Heading after a crossing, one that does not leave the area nor turns round."""
    wish = 0 if rng.random() < STRAIGHT else int(rng.choice([1, 3]))
    for turn in (wish, 1, 3):
        x, y = _next(at, (heading + turn) % 4)
        if 0 <= x < CROSSINGS and 0 <= y < CROSSINGS:
            break
    return (heading + turn) % 4


def _next(at: tuple[int, int], heading: int) -> tuple[int, int]:
    dx, dy = _DIRECTIONS[heading]
    return at[0] + dx, at[1] + dy
