"""Unknowns: unmeasured quantities that a plan depends on, their effect, and how to measure them.

The effect of an assumed cost is predicted by the model: the plan is evaluated again with twice the
cost, or with the cost if the plan leaves it out. The effect of a measured cost follows from its
variation.
"""

from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.engines.flink.measure.sending_cost import SendingCost
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand
from streamplace.model.graph import PROFILE_SPREAD, StreamGraph
from streamplace.model.problem import Problem
from streamplace.planning.result import PlanResult

LEAST_SHARE = 0.005
"""Effects below this share of the rate are not mentioned."""
ERRORS = 2.0
"""Maximum error of the mean cost of the windows, in standard errors."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A quantity that was not measured, or not well."""

    what: str  # description of the quantity
    share: float  # share by which the plan may carry less than predicted
    measurement: str  # how to measure it, in words


def unknowns(plan: PlanResult, seen: JobProfile, sending: SendingCost) -> list[Unknown]:
    """Return the unknowns of a plan, the most important ones first.

    ``sending``: cost of remote tuples, as measured, assumed or given.
    """
    reasons = []
    if sending.is_assumed:
        own = plan.cluster
        dearer = replace(
            own,
            overhead_s=own.overhead_s + sending.per_tuple,
            overhead_s_per_byte=own.overhead_s_per_byte + sending.per_byte,
        )
        reasons.append(
            Unknown(
                "what a tuple costs that leaves its TaskManager (assumed)",
                _lost(plan, plan.graph, dearer),
                "run the job on two TaskManagers or more, such that its streams cross, and give "
                "advice again",
            )
        )
    spread, number = plan.graph.attributes.get(PROFILE_SPREAD), max(1, len(seen.windows))
    if isinstance(spread, float | int):
        error = ERRORS * float(spread) / np.sqrt(number)
        longer = f"watch the job for longer than {number} windows (seconds in --settings)"
        varied = "the CPU per tuple, which varied while it was watched"
        reasons.append(Unknown(varied, error, longer))
    if plan.errors is not None:
        reasons.append(
            Unknown(
                "how far jobs are from their predictions at all, a job that runs elsewhere "
                "included",
                1 - plan.errors.least,
                "move the job to where it is planned and measure it there (streamplace flink "
                "move), which writes the ledger",
            )
        )
    return sorted((one for one in reasons if one.share >= LEAST_SHARE), key=lambda one: -one.share)


def _lost(plan: PlanResult, graph: StreamGraph, cluster: Cluster) -> float:
    """Share of the rate that the placement of a plan loses with another graph or cluster."""
    before = _capacity(plan, plan.graph, plan.cluster)
    after = _capacity(plan, graph, cluster)
    return 1 - after / before if isfinite(before) and before > 0 else 0.0


def _capacity(plan: PlanResult, graph: StreamGraph, cluster: Cluster) -> float:
    """Multiple of the sources' rates that the placement of a plan carries."""
    from streamsim import bottleneck, resource_loads

    problem = Problem(expand(graph).graph, cluster)
    load = bottleneck(resource_loads(problem.instance, plan.placement.index)).load
    return 1 / load if load else float("inf")
