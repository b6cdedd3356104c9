"""Links: assign packed machines to the devices of a cluster whose links are limited.

The load of a machine depends on its contents only, but the load of a link depends on two machines.
If links are too slow, machines swap devices of their type, then subtasks move; if that is not
enough, the plan is refused and the search goes on. Ignoring links only lowers the cost, so the
bound holds.
"""

from dataclasses import replace

import numpy as np
from streamsim import bottleneck, resource_loads, throughput
from streamsim.instance import Instance

from streamplace.errors import GraphError
from streamplace.model.arrays import Ints
from streamplace.model.cluster import MOST_DEVICES, Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.level import finest_level
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.throughput.loads import link_loads
from streamplace.placers.anneal.rate.first_places import first_place, placement_of
from streamplace.placers.anneal.rate.throughput import least
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget
from streamplace.planning.contents import SLACK, packing_of
from streamplace.planning.deployment import ROUNDING, PlannedDeployment, deployment_of
from streamplace.planning.packed import Accept, PackedMachines, largest_use
from streamplace.planning.problem import PlanProblem
from streamplace.planning.result import PlanLimit

SWAPS = 40
"""Most swaps of devices for one plan."""
MOVES = 20_000
"""Moves of subtasks to try for one plan."""


class LinkedDevices:
    """Devices of a cluster on which packed machines may run."""

    def __init__(self, problem: PlanProblem, cluster: Cluster) -> None:
        self._demand, self._catalogue = problem.demand, problem.catalogue
        self._cluster, self._members = cluster, problem.members
        self._seed = problem.settings.seed

    def accept(self, packed: PackedMachines) -> PackedMachines | None:
        """Assign devices whose links carry the rate; None if none are found."""
        devices, carried = self._swapped(packed, self._first(packed))
        if not self._carries(carried):
            packed = self._moved(packed, devices)
            devices, carried = self._swapped(packed, devices)
        if not self._carries(carried):
            return None
        return PackedMachines(packed.kinds, packed.parallelism, packed.rows, devices)

    def _first(self, packed: PackedMachines) -> Ints:
        """First devices of each type, in the order of the cluster."""
        taken = [0] * len(self._members)
        devices = []
        for kind in packed.kinds.tolist():
            devices.append(self._members[kind][taken[kind]])
            taken[kind] += 1
        return np.array(devices, np.int32)

    def _swapped(self, packed: PackedMachines, devices: Ints) -> tuple[Ints, float]:
        """Swap devices of one type while the carried share of the rate grows; return both."""
        deployment = self._deployment(packed)
        present = placement_on(self._cluster, deployment, devices)
        problem = Problem(deployment.expansion.graph, self._cluster, known=present)
        instance = _as_one(problem.instance)
        machine = deployment.placement.index
        carried = float(throughput(instance, devices[machine][None])[0])
        for _ in range(SWAPS):
            others = self._swaps(packed, devices)
            if self._carries(carried) or not others:
                break
            reached = throughput(instance, np.array(others, np.int32)[:, machine])
            best = int(np.argmax(reached))
            if reached[best] <= carried:
                break
            devices, carried = others[best], float(reached[best])
        return devices, carried

    def _swaps(self, packed: PackedMachines, devices: Ints) -> list[Ints]:
        """Devices after each swap with another machine of the type, or with an unused device.

        Devices that are interchangeable are not swapped, because that would change nothing.
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

    def _moved(self, packed: PackedMachines, devices: Ints) -> PackedMachines:
        """Move subtasks until links carry the rate; keep the result if resources still suffice."""
        deployment = self._deployment(packed)
        names = deployment.expansion.graph.operators.name
        on_these = frozenset(self._cluster.devices.name[d] for d in devices.tolist())
        rules = Constraints(allowed=dict.fromkeys(names, on_these))
        present = placement_on(self._cluster, deployment, devices)
        problem = Problem(deployment.expansion.graph, self._cluster, rules, known=present)
        level = finest_level(problem)
        start = first_place(problem, level, [present])
        place = least(level, start, self._seed, Meter(Budget(None, MOVES), 1), 1.0)
        placement = placement_of(problem, place)
        rows = deployment.expansion.fold(placement)[:, devices].T
        moved = PackedMachines(packed.kinds, packed.parallelism, rows.astype(np.int32).copy())
        packing = packing_of(self._demand, self._catalogue, packed.parallelism)
        return moved if largest_use(packing, moved).max() <= 1 + SLACK else packed

    def _deployment(self, packed: PackedMachines) -> PlannedDeployment:
        kinds = packed.kinds.tolist()
        return deployment_of(self._demand, self._catalogue, packed.parallelism, kinds, packed.rows)

    def _carries(self, carried: float) -> bool:
        return carried >= 1 - ROUNDING


def acceptor(problem: PlanProblem) -> Accept:
    """Return a function that accepts packed machines if they carry the rate in the simulator.

    On the machines of a cluster, it also assigns devices whose links carry the rate. It refuses
    parallelisms at which there are too many streams between subtasks, or at which a subtask that
    fires once per set of tuples receives its inputs at unequal rates, and more machines than a
    cluster may have.
    """
    linked = None if problem.cluster is None else LinkedDevices(problem, problem.cluster)

    def accept(packed: PackedMachines) -> PackedMachines | None:
        if len(packed.kinds) > MOST_DEVICES:
            return None
        try:
            found = packed if linked is None else linked.accept(packed)
            if found is None:
                return None
            made = deployed(problem, found)
            if linked is None and not made.carries:
                return None
            return found if load_apart(made) <= 1 + ROUNDING else None
        except GraphError:
            if problem.demand.fixed:
                raise  # there are no other parallelisms to try
            return None

    return accept


def deployed(problem: PlanProblem, packed: PackedMachines) -> PlannedDeployment:
    """Return the deployment of packed machines; devices of a cluster keep names and links."""
    kinds, rows = packed.kinds.tolist(), packed.rows
    made = deployment_of(problem.demand, problem.catalogue, packed.parallelism, kinds, rows)
    if problem.cluster is None or packed.devices is None:
        return made
    placement = placement_on(problem.cluster, made, packed.devices)
    return replace(made, cluster=problem.cluster, placement=placement)


def load_apart(made: PlannedDeployment) -> float:
    """Load of the fullest resource if partners are apart; else 0.

    The use of contents counts partners that could be on one machine as if they were.
    """
    return bottleneck(made.loads).load if made.is_apart else 0.0


def placement_on(cluster: Cluster, deployment: PlannedDeployment, devices: Ints) -> Placement:
    """Return the placement of a deployment on these devices of a cluster."""
    operators = deployment.expansion.graph.operators.name
    return Placement(operators, cluster.devices.name, devices[deployment.placement.index])


def _as_one(instance: Instance) -> Instance:
    """Instance whose sources slow down together: faster, and equal where the rate is carried."""
    return instance._replace(group=np.zeros_like(instance.group), n_groups=1)


def fullest_link(problem: Problem, placement: Placement) -> PlanLimit | None:
    """Return the link between two devices with the highest use; None if all are idle."""
    loads = resource_loads(problem.instance, placement.index)
    links = link_loads(problem, placement.index, loads.links)
    if not links or not links[0].load:
        return None
    fullest = links[0]
    ends = f"{fullest.source} → {fullest.target}"
    return PlanLimit("link", ends, fullest.streams[0].name, fullest.load)
