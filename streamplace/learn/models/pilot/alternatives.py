"""What else could have been decided: at some steps of a rollout, every open device is tried."""

from dataclasses import dataclass

import numpy as np

from streamplace.learn.models.pilot.rollout import RolloutRecord
from streamplace.model.arrays import Floats, Ints, Singles


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Beginnings of rollouts that differ from the sampled ones in their last decision.

    Attributes
    ----------
    given
        [K, T] devices up to that decision, -1 after it.
    rollout, step, device
        [K] which rollout, which of its decisions, and what is tried.
    shape
        Rollouts, steps and devices in all.
    """

    given: Ints
    rollout: Ints
    step: Ints
    device: Ints
    shape: tuple[int, int, int]

    def worth(self, values: Floats) -> Singles:
        """Values [K] where they belong, [S, T, D]; NaN where nothing was tried."""
        worth = np.full(self.shape, np.nan, np.float32)
        worth[self.rollout, self.step, self.device] = values
        return worth


def alternatives(
    record: RolloutRecord, chosen: Ints, forks: int, rng: np.random.Generator
) -> Alternatives:
    """Try every open device at up to ``forks`` steps of each of these rollouts [S, T]."""
    n_steps = chosen.shape[1]
    tries = [
        (rollout, step, device)
        for rollout in range(len(chosen))
        for step in rng.permutation(n_steps)[:forks].tolist()
        if record.open[rollout, step].sum() > 1
        for device in np.flatnonzero(record.open[rollout, step]).tolist()
    ]
    table = np.array(tries, np.int32).reshape(-1, 3)
    steps = np.arange(n_steps)[None]
    given = np.where(steps < table[:, 1:2], chosen[table[:, 0]], -1)
    given = np.where(steps == table[:, 1:2], table[:, 2:3], given).astype(np.int32, order="C")
    return Alternatives(given, table[:, 0], table[:, 1], table[:, 2], record.open.shape)
