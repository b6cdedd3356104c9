"""Deployment: packed machines as a graph, a cluster and a placement of subtasks.

A packing counts the subtasks on each machine; a deployment places each subtask, beside its partners
in one-to-one streams if possible.

The load of a machine depends on its contents only, but the load of a link between two machines
depends on both. If links are too slow, machines of a cluster swap devices of their type, then
subtasks move; if that is not enough, the plan is refused and the search goes on. Ignoring links
only lowers the cost, so the bound holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from streamsim import bottleneck, resource_loads, throughput, throughput_of

from streamplace.errors import GraphError
from streamplace.model.arrays import Ints
from streamplace.model.cluster import MAX_DEVICES, Cluster
from streamplace.model.coarsening import finest_level
from streamplace.model.constraints import Constraints
from streamplace.model.devices import SLACK
from streamplace.model.expansion import Expansion, expand
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import with_parallelism
from streamplace.objectives.throughput.loads import link_loads
from streamplace.placers.anneal.starts import first_place
from streamplace.placers.anneal.throughput import with_lower_peak
from streamplace.placers.anneal.walk import placement_of
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget
from streamplace.planning.demand import Demand
from streamplace.planning.offers import Catalogue
from streamplace.planning.packing import Accept, PackedMachines, packing_of, uses
from streamplace.planning.problem import PlanProblem
from streamplace.planning.result import PlanLimit

if TYPE_CHECKING:
    from streamsim.steady import Loads

TOLERANCE = 1e-8
"""Share by which the closed form of the simulator may miss a rate that counts as carried."""
MAX_SWAPS = 40
"""Most swaps of devices for one plan."""
MAX_MOVES = 20_000
"""Moves of subtasks to try for one plan."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedDeployment:
    """Subtasks, machines, and the placement of the subtasks on them."""

    expansion: Expansion  # the graph at its rate and the planned parallelisms, and its subtasks
    cluster: Cluster  # the machines, named after their offers
    placement: Placement  # the machine of every subtask
    # Whether subtasks that are joined one to one are on different machines, although the counts on
    # the machines would let them share one.
    is_apart: bool = False

    @property
    def problem(self) -> Problem:
        """The placement problem of the subtasks on the cluster."""
        return Problem(self.expansion.graph, self.cluster, known=self.placement)

    @property
    def loads(self) -> "Loads":
        """Loads of the machines and links, by the simulator."""
        return resource_loads(self.problem.instance, self.placement.index)

    @property
    def carries(self) -> bool:
        """Whether the machines carry the rate, by the closed form of the simulator."""
        return throughput_of(self.problem.instance, self.placement.index) >= 1 - TOLERANCE

    @property
    def load_apart(self) -> float:
        """Load of the fullest resource if partners are apart; else 0.

        A packing assumes that partners share a machine wherever the counts let them.
        """
        return bottleneck(self.loads).load if self.is_apart else 0.0

    def on(self, cluster: Cluster, devices: Ints) -> Placement:
        """Return the placement on these devices of a cluster, one for each machine."""
        operators = self.expansion.graph.operators.name
        return Placement(operators, cluster.devices.name, devices[self.placement.index])


def deployed(problem: PlanProblem, packed: PackedMachines) -> PlannedDeployment:
    """Return the deployment of packed machines; devices of a cluster keep names and links."""
    deployment = deployment_of(problem.demand, problem.catalogue, packed)
    if problem.cluster is None or packed.devices is None:
        return deployment
    placement = deployment.on(problem.cluster, packed.devices)
    return replace(deployment, cluster=problem.cluster, placement=placement)


def deployment_of(
    demand: Demand, catalogue: Catalogue, packed: PackedMachines
) -> PlannedDeployment:
    """Return the deployment of packed machines, named after their offers and numbered."""
    expansion = expand(with_parallelism(demand.graph, packed.parallelism))
    kinds = packed.kinds.tolist()
    devices = [
        catalogue.offers[kind].device(name)
        for kind, name in zip(kinds, catalogue.machines(kinds), strict=True)
    ]
    bandwidth, latency = catalogue.between(kinds)
    cluster = Cluster.of(
        devices,
        bandwidth=bandwidth,
        latency=latency,
        overhead=catalogue.overhead,
        overhead_per_byte=catalogue.overhead_per_byte,
    )
    where, is_apart = paired(demand, packed.parallelism, packed.rows)
    subtasks = expansion.graph.operators.name
    placement = Placement(subtasks, cluster.devices.name, np.concatenate(where).astype(np.int32))
    return PlannedDeployment(expansion, cluster, placement, is_apart)


def paired(demand: Demand, parallelism: Ints, rows: Ints) -> tuple[list[Ints], bool]:
    """Machine of each subtask of each operator, and whether partners are apart.

    Each operator is put beside the partners of its first one-to-one input. If that separates
    partners of other inputs needlessly, operators are put beside each other along the heaviest
    one-to-one streams instead. If these form loops, some partners may remain apart.
    """
    best: list[Ints] = []
    least = inf
    for neighbours_of in (_first_inputs, _one_to_one_trees):
        where = _beside(demand, rows, neighbours_of(demand, parallelism))
        crossing = _crossing(demand, parallelism, rows, where)
        if crossing < least:
            best, least = where, crossing
        if not least:
            break
    return best, least > 0


def _beside(demand: Demand, rows: Ints, neighbours: list[list[int]]) -> list[Ints]:
    """Machine of each subtask, with operators put beside their neighbours in turn."""
    where: dict[int, Ints] = {}
    for root in demand.graph.order.tolist():
        alone = np.full(rows[:, root].sum(), -1, np.int32)
        waiting = [] if root in where else [(root, alone)]
        while waiting:
            v, partners = waiting.pop()
            if v in where:  # it is colocated with an operator that came first
                continue
            for u, place in _unit_placed(demand, rows, v, partners):
                where[u] = place
                waiting += [(w, where[u]) for w in neighbours[u] if w not in where]
    return [where[v] for v in range(demand.n_operators)]


def _unit_placed(demand: Demand, rows: Ints, v: int, partners: Ints) -> Iterator[tuple[int, Ints]]:
    """Machine of each subtask of an operator and of its colocated operators.

    Subtask i of p is in part ⌊i·g/p⌋ of the g parts of the unit, as in `Expansion.constraints`.
    """
    members = next((unit for unit in demand.units if v in unit), (v,))
    totals = rows[:, list(members)].sum(axis=0)
    number = int(np.gcd.reduce(totals))
    size = len(partners) // number if len(members) > 1 else 1
    place = _placed(rows[:, v] // size, partners[::size])
    for u, total in zip(members, totals.tolist(), strict=True):
        yield u, np.repeat(place, total // number) if len(members) > 1 else place


def _crossing(demand: Demand, parallelism: Ints, rows: Ints, where: list[Ints]) -> float:
    """Bits and tuples per second between partners that could be on one machine but are apart."""
    apart = 0.0
    for e in np.flatnonzero(demand.one_to_one(parallelism)).tolist():
        u, v = int(demand.source[e]), int(demand.target[e])
        pairs = int(np.minimum(rows[:, u], rows[:, v]).sum() - (where[u] == where[v]).sum())
        apart += pairs / float(parallelism[u]) * float(demand.bits[e] + demand.tuples[e])
    return apart


def _placed(row: Ints, partners: Ints) -> Ints:
    """Machine of each subtask of an operator; ``row`` counts them by machine."""
    place = np.full(len(partners), -1, np.int32)
    order = np.argsort(partners, kind="stable")
    wanted = partners[order]  # ascending, with -1 for no partner
    rank = np.arange(len(wanted)) - np.searchsorted(wanted, wanted)
    beside = (wanted >= 0) & (rank < row[wanted])
    place[order[beside]] = wanted[beside]
    rest = row - np.bincount(wanted[beside], minlength=len(row))
    place[place < 0] = np.repeat(np.arange(len(row), dtype=np.int32), rest)
    return place


def _first_inputs(demand: Demand, parallelism: Ints) -> list[list[int]]:
    """Operators whose first one-to-one input is each operator."""
    streams = np.flatnonzero(demand.one_to_one(parallelism)).tolist()
    first: dict[int, int] = {}
    for e in streams:
        first.setdefault(int(demand.target[e]), int(demand.source[e]))
    neighbours: list[list[int]] = [[] for _ in range(demand.n_operators)]
    for v, u in first.items():
        neighbours[u].append(v)
    return neighbours


def _one_to_one_trees(demand: Demand, parallelism: Ints) -> list[list[int]]:
    """Neighbours of each operator in the heaviest spanning forest of one-to-one streams."""
    streams = np.flatnonzero(demand.one_to_one(parallelism))
    heaviest = np.lexsort((-demand.tuples[streams], -demand.bits[streams]))
    neighbours: list[list[int]] = [[] for _ in range(demand.n_operators)]
    tree = np.arange(demand.n_operators)
    for e in streams[heaviest].tolist():
        u, v = int(demand.source[e]), int(demand.target[e])
        if tree[u] != tree[v]:
            tree[tree == tree[v]] = tree[u]
            neighbours[u].append(v)
            neighbours[v].append(u)
    return neighbours


def has_loops(demand: Demand, parallelism: Ints) -> bool:
    """Whether one-to-one streams form loops, so that partners may have to be apart."""
    direct = demand.one_to_one(parallelism)
    pairs = set(zip(demand.source[direct].tolist(), demand.target[direct].tolist(), strict=True))
    in_trees = sum(map(len, _one_to_one_trees(demand, parallelism))) // 2
    return len(pairs) > in_trees


def acceptor(problem: PlanProblem) -> Accept:
    """Return a function that accepts packed machines if they carry the rate in the simulator.

    On the machines of a cluster, it also assigns devices whose links carry the rate, and it moves
    subtasks if links are too slow. It refuses parallelisms with too many streams between subtasks
    or unequal inputs of a subtask that fires once per set of tuples, and more machines than a
    cluster may have.
    """
    with_links: Accept | None = None
    if problem.cluster is not None:
        with_links = LinkedDevices(problem, problem.cluster).accept
    elif problem.is_linked:
        with_links = partial(_moved_for_links, problem)

    def accept(packed: PackedMachines) -> PackedMachines | None:
        if len(packed.kinds) > MAX_DEVICES:
            return None
        try:
            linked = packed if with_links is None else with_links(packed)
            if linked is None:
                return None
            deployment = deployed(problem, linked)
            if with_links is None and not deployment.carries:
                return None
            return linked if deployment.load_apart <= 1 + TOLERANCE else None
        except GraphError:
            if problem.demand.fixed:
                raise  # there are no other parallelisms to try
            return None

    return accept


class LinkedDevices:
    """Devices of a cluster on which packed machines may run."""

    def __init__(self, problem: PlanProblem, cluster: Cluster) -> None:
        self._demand, self._catalogue = problem.demand, problem.catalogue
        self._cluster, self._members = cluster, problem.members
        self._problem = problem

    def accept(self, packed: PackedMachines) -> PackedMachines | None:
        """Assign devices whose links carry the rate; None if none are found."""
        devices, carried = self._swapped(packed, self._first(packed))
        if carried < 1 - TOLERANCE:
            deployment = deployment_of(self._demand, self._catalogue, packed)
            present = deployment.on(self._cluster, devices)
            packed = moved(self._problem, packed, deployment, self._cluster, present, devices)
            devices, carried = self._swapped(packed, devices)
        return None if carried < 1 - TOLERANCE else replace(packed, devices=devices)

    def _first(self, packed: PackedMachines) -> Ints:
        """First devices of each type, in the order of the cluster."""
        members = [iter(devices) for devices in self._members]
        return np.array([next(members[kind]) for kind in packed.kinds.tolist()], np.int32)

    def _swapped(self, packed: PackedMachines, devices: Ints) -> tuple[Ints, float]:
        """Swap devices of one type while the carried share of the rate grows; return both."""
        deployment = deployment_of(self._demand, self._catalogue, packed)
        machine, present = deployment.placement.index, deployment.on(self._cluster, devices)
        instance = Problem(deployment.expansion.graph, self._cluster, known=present).instance
        carried = throughput_of(instance, devices[machine])
        for _ in range(MAX_SWAPS):
            swaps = self._swaps(packed, devices)
            if carried >= 1 - TOLERANCE or not swaps:
                break
            reached = throughput(instance, np.array(swaps, np.int32)[:, machine])
            best = int(np.argmax(reached))
            if reached[best] <= carried:
                break
            devices, carried = swaps[best], float(reached[best])
        return devices, carried

    def _swaps(self, packed: PackedMachines, devices: Ints) -> list[Ints]:
        """Devices after each swap with another machine of the type, or with an unused device.

        Interchangeable devices are not swapped, because that changes nothing.
        """
        at, alike = {int(d): m for m, d in enumerate(devices)}, self._cluster.interchangeable
        swaps = []
        for m, kind in enumerate(packed.kinds.tolist()):
            for d in self._members[kind]:
                other = at.get(d)
                if alike[d] == alike[devices[m]] or (other is not None and other <= m):
                    continue
                changed = devices.copy()
                if other is not None:
                    changed[other] = devices[m]
                changed[m] = d
                swaps.append(changed)
        return swaps


def _moved_for_links(problem: PlanProblem, packed: PackedMachines) -> PackedMachines | None:
    """Move subtasks until the links between offers carry the rate; None if they never do."""
    deployment = deployed(problem, packed)
    if deployment.carries:
        return packed
    present = deployment.placement
    all_machines = np.arange(len(packed.kinds), dtype=np.int32)
    packed = moved(problem, packed, deployment, deployment.cluster, present, all_machines)
    return packed if deployed(problem, packed).carries else None


def moved(
    problem: PlanProblem,
    packed: PackedMachines,
    deployment: PlannedDeployment,
    cluster: Cluster,
    present: Placement,
    devices: Ints,
) -> PackedMachines:
    """Move subtasks until links carry the rate; keep the result if resources still suffice."""
    placing = placing_of(problem, replace(deployment, cluster=cluster, placement=present), devices)
    level = finest_level(placing)
    start = first_place(placing, level, [present])
    meter = Meter(Budget(None, MAX_MOVES), 1)
    place = with_lower_peak(level, start, problem.settings.seed, meter, 1.0)
    rows = deployment.expansion.fold(placement_of(placing, place))[:, devices].T
    other = replace(packed, rows=rows.astype(np.int32).copy(), devices=None)
    packing = packing_of(problem.demand, problem.catalogue, packed.parallelism)
    return other if uses(packing, other.kinds, other.rows).max() <= 1 + SLACK else packed


def placing_of(problem: PlanProblem, deployment: PlannedDeployment, devices: Ints) -> Problem:
    """Problem of placing the subtasks on these devices of the cluster, by the rules of the plan."""
    expansion, cluster = deployment.expansion, deployment.cluster
    on_these = frozenset(cluster.devices.name[d] for d in devices.tolist())
    rules = expansion.constraints(problem.constraints_on(cluster))
    allowed = dict.fromkeys(expansion.graph.operators.name, on_these)
    allowed |= {name: on_these & places for name, places in rules.allowed.items()}
    rules = Constraints(rules.pin, rules.colocate, rules.exlocate, allowed)
    return Problem(expansion.graph, cluster, rules, known=deployment.placement)


def fullest_link(deployment: PlannedDeployment) -> PlanLimit | None:
    """Return the link between two devices with the highest use; None if all are idle."""
    problem, place = deployment.problem, deployment.placement.index
    links = link_loads(problem, place, resource_loads(problem.instance, place).links)
    if not links or not links[0].load:
        return None
    fullest = links[0]
    ends = f"{fullest.source} → {fullest.target}"
    return PlanLimit("link", ends, fullest.streams[0].name, fullest.load)
