"""Machines of a running cluster: their cost by the offers, and commands that change them.

The commands give a job the machines and the parallelism of a plan.
"""

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from urllib.parse import urlsplit

from streamplace.engines.flink.measure.cluster import FRAMING, MeasuredCluster, MeasuredDevice
from streamplace.engines.flink.measure.sending_cost import SendingCost
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.engines.flink.rest.settings import is_adaptive, is_reactive, shown_settings
from streamplace.model.cluster import Cluster
from streamplace.model.messages import counted, quoted
from streamplace.model.units import format_bytes
from streamplace.model.units import mips as parsed_mips
from streamplace.planning.offers import Catalogue, Offer, Prices
from streamplace.planning.result import PlanResult

ALIKE = 0.01
"""Speeds with a smaller relative difference are equal."""
BY_NAME, BY_SIZE = "name", "size"
_NUMBERED = re.compile(r"-\d+")
FOLDER = "plan"
"""Folder of a plan in commands if -o names none."""
REACTIVE = (
    "# the cluster runs in reactive mode: the job takes all slots, and Flink refuses to change the "
    "numbers of its subtasks"
)


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
    return CurrentMachines(machines, Prices.of(catalogue).per_hour(numbers))


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


def given_sending(machines: Catalogue | Cluster | None) -> SendingCost | None:
    """Cost of remote tuples that is given with machines; None if these state none."""
    if machines is None:
        return None
    if isinstance(machines, Catalogue):
        cost = SendingCost(machines.overhead, machines.overhead_per_byte)
    else:
        cost = SendingCost(machines.overhead_s, machines.overhead_s_per_byte)
    return cost if cost.per_tuple or cost.per_byte else None


def left_for_operators(
    catalogue: Catalogue, java: float, sending: SendingCost | None, speed: float
) -> Catalogue:
    """Return the offers without the CPU of Java itself and the bandwidth of packet headers.

    Java uses ``java`` MIPS of each machine. The cost of remote tuples is the measured one, if any,
    unless the offers contain it; it was measured on cores of ``speed`` MIPS, and holds for the mean
    of the offers.
    """
    offers = tuple(_left(offer, java) for offer in catalogue.offers)
    if catalogue.handles or sending is None:
        return replace(catalogue, offers=offers)
    cost = sending.slower(speed / mean(float(offer.mips) for offer in catalogue.offers)).rounded()
    return replace(
        catalogue, offers=offers, overhead=cost.per_tuple, overhead_per_byte=cost.per_byte
    )


def _left(offer: Offer, java: float) -> Offer:
    reserved = float(offer.reserved) + java
    if reserved >= float(offer.mips) * offer.cores:
        raise FlinkError(
            f"Java itself takes {java:.4g} MIPS of each machine, which leaves nothing of offer "
            f"{quoted(offer.name)} for operators; remove the offer"
        )
    egress, ingress = float(offer.egress) / (1 + FRAMING), float(offer.ingress) / (1 + FRAMING)
    return replace(offer, reserved=reserved, egress=egress, ingress=ingress)


def used_machines(cluster: MeasuredCluster, subtasks: Mapping[str, int]) -> CurrentMachines:
    """TaskManagers that run subtasks of a job, each as a machine of cost 1."""
    machines = tuple(
        CurrentMachine(device.name, _size(device), device.name, "", subtasks[device.name])
        for device in cluster.devices
        if subtasks.get(device.name)
    )
    return CurrentMachines(machines, float(len(machines)), is_priced=False)


def change_commands(
    rest: Rest,
    job: str,
    tasks: Sequence[FlinkTask],
    current: CurrentMachines,
    plan: PlanResult,
    folder: str = FOLDER,
    is_remembered: bool = False,
) -> tuple[str, ...]:
    """Commands, line by line; comments say which machines to start first and to stop at the end.

    ``is_remembered`` says whether ``flink move`` knows the program of the job.
    """
    changes = _machine_changes(current.counts, plan.machines) if current.is_priced else {}
    starts = [f"# first start {number} × {name}" for name, number in changes.items() if number > 0]
    stops = [f"# then stop {-number} × {name}" for name, number in changes.items() if number < 0]
    if is_adaptive(rest, rest.job(job)):
        reactive = is_reactive(shown_settings(rest) or {})
        rescaling = REACTIVE if reactive else _rescaling(rest, job, tasks, plan.parallelism)
        return (*starts, _slot_line(current, plan), rescaling, *stops)
    return (*starts, *_restart(rest, job, current, plan, folder, is_remembered), *stops)


def _restart(
    rest: Rest,
    job: str,
    current: CurrentMachines,
    plan: PlanResult,
    folder: str,
    is_remembered: bool,
) -> Iterator[str]:
    """Commands that stop a job with a savepoint and start it again from there."""
    address, written = shlex.quote(urlsplit(rest.url).netloc), folder.rstrip("/")
    numbers = set(plan.parallelism.values())
    if len(numbers) == 1:
        yield from (
            _slot_line(current, plan),
            f"flink stop -m {address} --savepointPath SAVEPOINTS {job}",
            f"flink run -d -m {address} -c ENTRY_CLASS -s SAVEPOINT -p {numbers.pop()} JAR "
            "ARGUMENTS",
            "# or, with every subtask where the plan has it:",
        )
    where = f"--rest {shlex.quote(rest.url)} --job {job}"
    cluster, placement = (
        shlex.quote(f"{written}/{name}") for name in ("cluster.toml", "placement.json")
    )
    yield f"streamplace flink config --cluster {cluster} --subtasks -o config/"
    to = f"--placement {placement} --savepoints SAVEPOINTS"
    if is_remembered:
        yield f"streamplace flink move {where} {to}"
    else:
        yield f"streamplace flink move JAR {where} --entry-class ENTRY_CLASS {to} -- ARGUMENTS"


def _slot_line(current: CurrentMachines, plan: PlanResult) -> str:
    """Comment with the number of slots that TaskManagers need if Flink places the subtasks."""
    slots = plan.slots.machines
    if not current.is_priced:
        return f"# taskmanager.numberOfTaskSlots: at least {max(slots.values())}"
    each = ", ".join(f"{number} on {name}" for name, number in slots.items())
    return f"# taskmanager.numberOfTaskSlots: at least {each}"


def _machine_changes(now: Mapping[str, int], planned: Mapping[str, int]) -> dict[str, int]:
    """Number of machines of each type to start, or to stop if negative."""
    return {
        name: planned.get(name, 0) - now.get(name, 0) for name in dict.fromkeys((*planned, *now))
    }


def _rescaling(
    rest: Rest, job: str, tasks: Sequence[FlinkTask], parallelism: Mapping[str, int]
) -> str:
    """Request that makes the adaptive scheduler change the parallelism of a running job."""
    wanted = {
        task.id: {"parallelism": {"lowerBound": 1, "upperBound": parallelism[task.name]}}
        for task in tasks
    }
    url = shlex.quote(f"{rest.url}/jobs/{job}/resource-requirements")
    document = shlex.quote(json.dumps(wanted))
    return f"curl -X PUT {url} -H 'Content-Type: application/json' -d {document}"
