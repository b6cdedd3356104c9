"""Rates over a week by which parameters of policies are chosen; `controllers.py` judges by others.

They differ from the traces of the published page in their generators, their seed and their
periods, so that a parameter which fits these by chance gains nothing there.
"""

from collections.abc import Iterator

import numpy as np

from streamplace.model.arrays import Floats

SEED, ROW, DAYS = 4_711, 300.0, 7
HOUR = 3600.0


def development_traces() -> Iterator[tuple[str, Floats]]:
    """Names, and rates in rows of five minutes."""
    rng = np.random.default_rng(SEED)
    at = np.arange(0.0, DAYS * 24 * HOUR, ROW) / HOUR
    hour, day, rows = at % 24, (at // 24).astype(int), len(at)

    tilted = np.where(hour < 8, hour / 8, (24 - hour) / 16)
    yield "tilted days", (0.3 + tilted**1.5) * rng.lognormal(0.0, 0.05, rows)

    turn = 2 * np.pi * at / 9
    waves = 1.6 + np.sin(turn) + 0.3 * np.sin(3 * turn + 1)
    yield "nine hours", waves * rng.lognormal(0.0, 0.03, rows)

    work = np.clip(hour - 7, 0, 1) * np.clip(18.5 - hour, 0, 1)
    yield "office", (0.25 + work * np.where(day < 5, 1.0, 0.3)) * rng.lognormal(0.0, 0.03, rows)

    bursts = 1 + 0.3 * np.sin(2 * np.pi * at / 24)
    for start in rng.uniform(0, at[-1], 9).tolist():
        age = np.maximum(at - start, 0.0)
        bursts += (at >= start) * rng.uniform(0.5, 2.0) * np.exp(-age / rng.uniform(0.3, 2.0))
    yield "bursts", bursts * rng.lognormal(0.0, 0.03, rows)

    held = np.repeat(rng.lognormal(0.0, 0.4, rows), rng.geometric(1 / 72, rows))[:rows]
    yield "shifts", held * rng.lognormal(0.0, 0.04, rows)

    yield "returning", np.exp(0.35 * _correlated(rng, rows, 72)) * rng.lognormal(0.0, 0.01, rows)

    growing = (1.2 + np.sin(2 * np.pi * (at - 9) / 24)) * (1 + at / at[-1])
    yield "growing days", growing * np.exp(0.06 * _correlated(rng, rows, 10))

    peaks = np.full(rows, 0.35)
    for number in range(DAYS):
        for middle, width in ((8.5, 1.0), (13.0, 1.5), (20.5, 2.0)):
            centre = 24 * number + middle + rng.normal(0.0, 0.4)
            peaks += rng.uniform(0.6, 1.1) * np.exp(-(((at - centre) / width) ** 2) / 2)
    yield "three peaks", peaks * rng.lognormal(0.0, 0.04, rows)


def _correlated(rng: np.random.Generator, rows: int, memory: float) -> Floats:
    """Noise of mean 0 and deviation 1 that forgets within so many rows."""
    keep = np.exp(-1 / memory)
    drawn, values = rng.normal(0.0, np.sqrt(1 - keep**2), rows), np.empty(rows)
    now = float(rng.normal())
    for row in range(rows):
        now = keep * now + float(drawn[row])
        values[row] = now
    return values
