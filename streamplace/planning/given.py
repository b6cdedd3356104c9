"""Given machines: a cluster as offers of which each machine costs 1, so that a plan takes few."""

from collections.abc import Sequence
from dataclasses import replace

from streamplace.errors import ProblemError
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.registry import Budget
from streamplace.planning.deployment import ROUNDING
from streamplace.planning.headroom import Headroom
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.planner import NONE, USUAL, USUAL_ERROR, planned
from streamplace.planning.result import PlanLimit, PlanResult


def planned_on(
    graph: StreamGraph,
    cluster: Cluster,
    *,
    headroom: Headroom = NONE,
    robust: int = 0,
    error: float = USUAL_ERROR,
    seed: int = 0,
    budget: Budget = USUAL,
) -> PlanResult:
    """Return the plan that needs the fewest machines of a cluster; its cost is their number.

    Links between machines are checked at the end.

    Raises
    ------
    ProblemError
        When the machines do not carry the rate, or the links between them do not.
    """
    catalogue, members = catalogue_of(cluster)
    result = planned(
        graph,
        catalogue,
        headroom=headroom,
        robust=robust,
        error=error,
        seed=seed,
        budget=budget,
        neighbours=False,
    )
    devices = _devices(result, members)
    place = [cluster.devices.index(devices[d]) for d in result.placement.index.tolist()]
    placement = Placement(result.placement.operators, cluster.devices.name, place)
    _check_links(result, cluster, placement)
    limit = _renamed(result.limit, result.cluster.devices.index(result.limit.machine), devices)
    machines = dict.fromkeys(devices, 1)
    return replace(
        result,
        cluster=cluster,
        placement=placement,
        limit=limit,
        machines=machines,
        priced=False,
    )


def catalogue_of(cluster: Cluster) -> tuple[Catalogue, dict[str, list[str]]]:
    """Offers for the kinds of devices of a cluster, and the devices of each."""
    kinds: dict[Offer, list[str]] = {}
    for device in cluster.devices:
        offer = Offer(
            "machine",
            1.0,
            device.mips,
            device.cores,
            device.memory,
            device.egress,
            device.ingress,
            tags=device.tags,
        )
        kinds.setdefault(offer, []).append(device.name)
    offers, members = [], {}
    for offer, names in kinds.items():
        offers.append(replace(offer, name=names[0], at_most=len(names)))
        members[names[0]] = names
    return Catalogue(tuple(offers), cluster.overhead_s), members


def _devices(result: PlanResult, members: dict[str, list[str]]) -> list[str]:
    """Name of the given device that each planned machine is."""
    taken: dict[str, int] = {}
    names = []
    for machine in result.cluster.devices.name:
        offer = machine.rpartition("-")[0]
        number = taken.get(offer, 0)
        taken[offer] = number + 1
        names.append(members[offer][number])
    return names


def _check_links(result: PlanResult, cluster: Cluster, placement: Placement) -> None:
    from streamsim import throughput

    from streamplace.model.expansion import expand

    instance = Problem(expand(result.graph).graph, cluster).instance
    reached = float(throughput(instance, placement.index[None])[0])
    if reached < 1 - ROUNDING:
        raise ProblemError(
            f"the machines carry {result.rate:.6g} tuples/s, but the links between them carry "
            f"{reached * result.rate:.6g} with this placement; place the graph with its "
            "parallelism by `streamplace place --subtasks`, which heeds links"
        )


def _renamed(limit: PlanLimit, machine: int, devices: Sequence[str]) -> PlanLimit:
    return PlanLimit(limit.resource, devices[machine], limit.operator, limit.use)
