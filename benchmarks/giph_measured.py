"""Walks in a recording: which placements were measured, and what each measurement said.

A measurement may be noisy, as in appendix B.5 of the GiPH paper: every computation and every
transfer of a pass takes its expected time times a factor that is uniform on [1 - σ, 1 + σ], and is
drawn anew for every measurement.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from streamsim.passes import GIPH, makespans

from streamplace import Problem
from streamplace.model.arrays import Floats, Ints
from streamplace.objectives.registry import OBJECTIVES, Objective

MAKESPAN = OBJECTIVES["makespan"]


def noisy(problem: Problem, places: Ints, sigma: float, rng: np.random.Generator) -> Floats:
    """Seconds [B] of one pass under each placement [B, N], measured under noise."""
    size, one = len(places), problem.one_pass
    work = rng.uniform(1 - sigma, 1 + sigma, (size, one.n_operators))
    send = rng.uniform(1 - sigma, 1 + sigma, (size, one.n_streams))
    return makespans(one, places, GIPH, work_factors=work, send_factors=send)


@dataclass
class Recording:
    """Measured placements, in order, and what was measured."""

    sigma: float
    rng: np.random.Generator
    places: list[Ints] = field(default_factory=list)
    seconds: list[Floats] = field(default_factory=list)

    def objective(self) -> Objective:
        """Makespan that measures so, and records."""
        return replace(MAKESPAN, evaluate=self._measured, ordered=False)

    def _measured(self, problem: Problem, placements: Ints) -> Floats:
        places = np.array(np.atleast_2d(placements), np.int32)
        self.places.append(places)
        self.seconds.append(noisy(problem, places, self.sigma, self.rng))
        return self.seconds[-1]

    def walk(self) -> tuple[Ints, Floats]:
        """Placements [T, N] and their measured seconds [T]."""
        return np.concatenate(self.places), np.concatenate(self.seconds)


def best_so_far(seconds: Floats) -> Ints:
    """Number of the placement of the least measurement up to each one."""
    best = np.zeros(len(seconds), np.int32)
    for t in range(1, len(seconds)):
        best[t] = t if seconds[t] < seconds[best[t - 1]] else best[t - 1]
    return best
