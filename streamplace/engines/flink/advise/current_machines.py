"""Machines of a running cluster, and their cost by the offers."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streamplace.engines.flink.measure.cluster import FRAMING, MeasuredCluster, MeasuredDevice
from streamplace.engines.flink.measure.sending_cost import SendingCost
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.model.messages import counted, quoted
from streamplace.model.units import format_bytes
from streamplace.model.units import mips as parsed_mips
from streamplace.planning.counts import Prices
from streamplace.planning.offers import Catalogue, Offer

ALIKE = 0.01
"""Speeds with a smaller relative difference are equal."""
BY_NAME, BY_SIZE = "name", "size"
_NUMBERED = re.compile(r"-\d+")


@dataclass(frozen=True, slots=True)
class CurrentMachine:
    """A TaskManager as a machine."""

    name: str
    size: str  # its cores, speed and memory, in words
    offer: str | None  # name of the matching offer; None if there is none
    by: str  # property by which the offer was recognised
    subtasks: int  # number of subtasks of the job that run there


@dataclass(frozen=True, slots=True)
class CurrentMachines:
    """The TaskManagers of a cluster."""

    machines: tuple[CurrentMachine, ...]
    # Price per hour of all machines with an offer; without offers, the number of machines.
    cost: float
    is_priced: bool = True  # whether there are offers

    @property
    def counts(self) -> dict[str, int]:
        """Number of machines of each offer."""
        names = [machine.offer for machine in self.machines if machine.offer is not None]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    @property
    def unmatched(self) -> list[CurrentMachine]:
        """TaskManagers without a matching offer."""
        return [machine for machine in self.machines if machine.offer is None]

    @property
    def idle(self) -> list[str]:
        """TaskManagers without subtasks of the job."""
        return [machine.name for machine in self.machines if not machine.subtasks]


def current_machines(
    cluster: MeasuredCluster, catalogue: Catalogue, subtasks: Mapping[str, int]
) -> CurrentMachines:
    """Find the offer of each TaskManager.

    It is the offer after which the TaskManager is named (``small``, ``small-0``), else the cheapest
    one with the same number of cores, the same speed, and at least the same memory.
    """
    machines = tuple(
        _machine(device, catalogue.offers, subtasks.get(device.name, 0))
        for device in cluster.devices
    )
    numbers = [
        sum(machine.offer == offer.name for machine in machines) for offer in catalogue.offers
    ]
    prices = Prices.of(catalogue)
    return CurrentMachines(machines, float(prices.cost(numbers) * prices.unit))


def _machine(device: MeasuredDevice, offers: Sequence[Offer], subtasks: int) -> CurrentMachine:
    named = [offer.name for offer in offers if _is_named_after(device.name, offer.name)]
    equal = sorted((o for o in offers if _is_alike(device, o)), key=lambda offer: offer.price)
    if named:
        return CurrentMachine(device.name, _size(device), max(named, key=len), BY_NAME, subtasks)
    offer = equal[0].name if equal else None
    return CurrentMachine(device.name, _size(device), offer, BY_SIZE if equal else "", subtasks)


def _is_named_after(device: str, offer: str) -> bool:
    rest = device.removeprefix(offer)
    return device == offer or (rest != device and _NUMBERED.fullmatch(rest) is not None)


def _is_alike(device: MeasuredDevice, offer: Offer) -> bool:
    return (
        offer.cores == device.cores
        and math.isclose(float(offer.mips), parsed_mips(device.mips), rel_tol=ALIKE)
        and float(offer.memory) >= (device.memory or 0)
    )


def _size(device: MeasuredDevice) -> str:
    size = f"{counted(device.cores, 'core')} of {parsed_mips(device.mips):g} MIPS"
    return size if device.memory is None else f"{size}, {format_bytes(device.memory)}"


def left_for_operators(catalogue: Catalogue, java: float, sending: SendingCost | None) -> Catalogue:
    """Return the offers without the CPU of Java itself and the bandwidth of packet headers.

    Java uses ``java`` MIPS of each machine. The cost of remote tuples is the measured one, if any,
    unless the offers contain it.
    """
    offers = tuple(_left(offer, java) for offer in catalogue.offers)
    if catalogue.handles or sending is None:
        return replace(catalogue, offers=offers)
    return replace(
        catalogue,
        offers=offers,
        overhead=sending.per_tuple,
        overhead_per_byte=sending.per_byte,
    )


def _left(offer: Offer, java: float) -> Offer:
    speed = float(offer.mips) - java / offer.cores
    if speed <= 0:
        raise FlinkError(
            f"Java itself takes {java:.4g} MIPS of each machine, which is more than all of offer "
            f"{quoted(offer.name)}; remove the offer"
        )
    egress, ingress = float(offer.egress) / (1 + FRAMING), float(offer.ingress) / (1 + FRAMING)
    return replace(offer, mips=speed, egress=egress, ingress=ingress)


def used_machines(cluster: MeasuredCluster, subtasks: Mapping[str, int]) -> CurrentMachines:
    """TaskManagers that run subtasks of a job, each as a machine of cost 1."""
    machines = tuple(
        CurrentMachine(device.name, _size(device), device.name, "", subtasks[device.name])
        for device in cluster.devices
        if subtasks.get(device.name)
    )
    return CurrentMachines(machines, float(len(machines)), is_priced=False)
