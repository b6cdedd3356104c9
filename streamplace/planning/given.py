"""Given machines: a cluster as offers of which each machine costs 1, so that a plan takes few."""

from dataclasses import replace

from streamplace.errors import ProblemError
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem
from streamplace.placers.meter import Meter
from streamplace.planning.demand import demand_of
from streamplace.planning.deployment import deployment_of
from streamplace.planning.links import LinkedDevices, fullest_link
from streamplace.planning.naming import result_of
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.planner import CheapestMachines, cheapest_machines
from streamplace.planning.result import PlanResult
from streamplace.planning.settings import USUAL_SETTINGS, PlanSettings
from streamplace.planning.slots import slot_groups, slots_of


def planned_on(
    graph: StreamGraph, cluster: Cluster, settings: PlanSettings = USUAL_SETTINGS
) -> PlanResult:
    """Return the plan that needs the fewest machines of a cluster; its cost is their number.

    A plan whose links between machines are too slow is cut off, and the search goes on.

    Raises
    ------
    ProblemError
        When the machines do not carry the rate, or the links between them do not.
    """
    catalogue, members = catalogue_of(cluster)
    free = settings.headroom.share(graph, catalogue)
    faster = graph.at_rate(graph.source_rate / (1 - free))
    demand = demand_of(faster, fixed=settings.keep_parallelism)
    linked = LinkedDevices(demand, catalogue, cluster, members, settings.seed)
    try:
        meter = Meter(settings.budget, 1)
        machines = cheapest_machines(graph, catalogue, settings, meter, accept=linked.accept)
    except ProblemError:
        if not linked.carried:
            raise
        raise ProblemError(
            f"the machines carry {graph.source_rate:.6g} tuples/s, but no plan was found within "
            f"the budget whose links between machines do: the best carries "
            f"{linked.carried * graph.source_rate:.6g}; raise the budget, or lower the rate"
        ) from None
    return _named(graph, cluster, catalogue, linked, machines, settings)


def _named(
    graph: StreamGraph,
    cluster: Cluster,
    catalogue: Catalogue,
    linked: LinkedDevices,
    machines: CheapestMachines,
    settings: PlanSettings,
) -> PlanResult:
    demand, free, bound, packed = machines
    assert packed.devices is not None
    result = result_of(
        graph, demand, catalogue, packed, bound, (None, None), headroom=free, seed=settings.seed
    )
    deployment = deployment_of(
        demand, catalogue, packed.parallelism, packed.kinds.tolist(), packed.rows
    )
    names = [cluster.devices.name[d] for d in packed.devices.tolist()]
    placement = linked.placement(deployment, packed.devices)
    slots = slots_of(slot_groups(demand, catalogue), packed.rows).tolist()
    limit = replace(result.limit, machine=names[result.cluster.devices.index(result.limit.machine)])
    fullest = fullest_link(Problem(deployment.expansion.graph, cluster), placement)
    carries = result.carries
    if fullest is not None:
        limit = max(limit, fullest, key=lambda each: each.use)
        carries = min(carries, demand.graph.source_rate / fullest.use)
    return replace(
        result,
        cluster=cluster,
        placement=placement,
        limit=limit,
        carries=carries,
        machines=dict.fromkeys(names, 1),
        slots=replace(result.slots, machines=dict(zip(names, slots, strict=True))),
        priced=False,
    )


def catalogue_of(cluster: Cluster) -> tuple[Catalogue, list[list[int]]]:
    """Offers for the kinds of devices of a cluster, and the numbers of the devices of each."""
    kinds: dict[Offer, list[int]] = {}
    for number, device in enumerate(cluster.devices):
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
        kinds.setdefault(offer, []).append(number)
    offers = tuple(
        replace(offer, name=cluster.devices.name[numbers[0]], at_most=len(numbers))
        for offer, numbers in kinds.items()
    )
    costs = cluster.overhead_s, cluster.overhead_s_per_byte
    return Catalogue(offers, *costs, slot_sharing=True), list(kinds.values())
