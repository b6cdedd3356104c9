"""Energy: joules of one pass, on busy cores and on links."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import objective


def _refusal(problem: Problem) -> str | None:
    if problem.cluster.devices.watts.any() or problem.cluster.joules_per_byte:
        return None
    return (
        "no device states its power; add watts to the devices of the cluster, or set "
        "joules_per_byte"
    )


@objective("energy", sense="min", unit="J", of=" per pass", refuses=_refusal, beside="throughput")
def energy(problem: Problem, placements: Ints) -> Floats:
    """Joules per pass: the devices' watts × busy core seconds, and joules per byte sent.

    A pass is one tuple of the fastest source. Constant loads keep cores busy as long as a pass
    lasts at the rate that the placement carries.
    """
    from streamsim.pass_costs import spent

    passed = spent(problem.instance, np.atleast_2d(placements))
    cluster = problem.cluster
    # What other processes take makes operators slower, but is not their work.
    free_share = problem.instance.free_cores / problem.instance.cores
    joules = passed.core_seconds @ (free_share * cluster.devices.watts)
    return np.asarray(joules + cluster.joules_per_byte * passed.remote_bytes)
