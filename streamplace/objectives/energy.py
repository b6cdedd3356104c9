"""Energy: joules of one pass, on busy cores and on links."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.mixins import kept
from streamplace.model.problem import Problem
from streamplace.objectives.pass_bounds import least_of_a_pass
from streamplace.objectives.registry import objective


def _refusal(problem: Problem) -> str | None:
    if problem.cluster.devices.watts.any() or problem.cluster.joules_per_byte:
        return None
    return (
        "no device states its power; add watts to the devices of the cluster, or set "
        "joules_per_byte"
    )


def _watts(problem: Problem) -> Floats:
    """Watts of a core second of each device, [D].

    CPU of other processes makes operators slower, but its energy is not counted.
    """
    instance = problem.instance
    return np.asarray(instance.free_cores / instance.cores * problem.cluster.devices.watts)


@kept
def bound(problem: Problem) -> float:
    """Least energy if only a spanning forest of the streams costs anything."""
    apart, joules = 1.0 - np.eye(problem.n_devices), problem.cluster.joules_per_byte
    return least_of_a_pass(problem, _watts(problem), lambda tuples, size: joules * size * apart)


@objective(
    "energy",
    sense="min",
    unit="J",
    of=" per pass",
    refuses=_refusal,
    beside="throughput",
    bound=bound,
)
def energy(problem: Problem, placements: Ints) -> Floats:
    """Joules per pass: the devices' watts × busy core seconds, and joules per byte sent.

    A pass is one tuple of the fastest source. Constant loads keep cores busy as long as a pass
    lasts at the rate that the placement carries.
    """
    from streamsim.pass_costs import spent

    passed = spent(problem.instance, np.atleast_2d(placements))
    joules = passed.priced(_watts(problem))
    return np.asarray(joules + problem.cluster.joules_per_byte * passed.remote_bytes)
