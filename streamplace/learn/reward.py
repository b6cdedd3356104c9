"""Rewards of placements of one problem: relative throughput in the steady state, or with queues."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from streamsim import throughput

from streamplace.errors import SettingError
from streamplace.model.problem import Problem

Reward = Callable[[Problem, NDArray[np.int32]], NDArray[np.float64]]
"""Values [B] in 0…1 of placements [B, N]."""


def reward_named(name: str) -> Reward:
    """Reward called ``steady`` or ``engine``."""
    if name not in REWARDS:
        raise SettingError(f"there is no reward {name!r}; choose one of {', '.join(REWARDS)}")
    return REWARDS[name]


def steady(problem: Problem, placements: NDArray[np.int32]) -> NDArray[np.float64]:
    """Relative throughput in the steady state."""
    return throughput(problem.instance, placements)


def engine(problem: Problem, placements: NDArray[np.int32]) -> NDArray[np.float64]:
    """Relative throughput that the engine measures; equal placements are run once."""
    from streamsim.engine import Settings, simulate

    each, where = np.unique(placements, axis=0, return_inverse=True)
    return np.asarray(simulate(problem.instance, each, Settings()).relative)[where.ravel()]


REWARDS: dict[str, Reward] = {"steady": steady, "engine": engine}
