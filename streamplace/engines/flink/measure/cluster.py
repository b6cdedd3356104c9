"""A running Flink as a cluster: every TaskManager is a device, with its CPU and network card."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamplace.engines.flink.cpu.limits import CpuShare, cpu_shares
from streamplace.engines.flink.cpu.threads import address_of, processes_of
from streamplace.engines.flink.measure.measurement import Shares, placed
from streamplace.engines.flink.measure.streams import ASSUMED, SendingCost
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.settings import shown_settings
from streamplace.engines.names import resource
from streamplace.engines.text import quoted_yaml
from streamplace.errors import SettingError
from streamplace.io.clusters import cluster_from_tables
from streamplace.io.parsing import parse_tables
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import listed, quoted
from streamplace.model.units import bandwidth_bps
from streamplace.model.units import mips as parsed_mips

ALL = ""
"""Key that stands for every TaskManager in the given speeds."""
GIVEN, LINK_SPEED, ASSUMED_SPEED = "given", "link speed", "assumed"
BANDWIDTH = "1000 Mbps"
"""Assumed speed of links and network cards."""
FRAMING = 0.05
"""Headers of Ethernet, TCP and Flink's buffers per byte of payload."""
HEADROOM = 0.03
"""Part of every CPU and link that stays free, because bursts cannot use all of a full one."""
MOST_RESERVED = 0.9
"""Part of a device's CPU that is reserved at most; without any, nothing could be predicted."""
POD_CPU = ("kubernetes.taskmanager.cpu.amount", "kubernetes.taskmanager.cpu")
"""Setting of the cores of a TaskManager on Kubernetes, and its older name."""
POD_CPU_FACTOR = "kubernetes.taskmanager.cpu.limit-factor"
"""Setting of the cores that it may use at most, as a multiple of these."""
CONTRADICTED = 1.05
"""Load above which a network must be faster; a real one may be full, and counts err a little."""
ROOM = 2.0
"""Speed of an assumed network then, as a multiple of what a card sends or receives."""
ASSUMED_CPU = (
    "the CPU of TaskManagers on other machines is assumed: the cores that Java sees there, in "
    "equal parts for TaskManagers of one address; if containers limit it, or share a machine, "
    "describe the TaskManagers in a cluster file"
)
"""Note on TaskManagers whose CPU is neither measured nor among the settings of the JobManager."""


class Card(NamedTuple):
    """Speed of a network card in either direction, such as ``"1000 Mbps"``, and its origin."""

    speed: str
    source: str

    @property
    def is_assumed(self) -> bool:
        """Whether the speed is neither given nor measured."""
        return self.source == ASSUMED_SPEED


@dataclass(frozen=True, slots=True)
class MeasuredDevice:
    """A TaskManager as a device."""

    name: str
    mips: str  # speed of one of its cores
    cores: int
    card: Card
    memory: int | None = None  # bytes; None if Flink does not report it
    # CPU limit of its cgroup, in cores, or its part of it; None if there is none.
    limit: float | None = None
    reserved: float | None = None  # MIPS that are not available to the job; None if not measured
    is_cpu_assumed: bool = False  # whether its number of cores is assumed


@dataclass(frozen=True, slots=True)
class MeasuredCluster:
    """TaskManagers as the devices of a cluster, with their measurements."""

    url: str  # address of the REST interface
    bandwidth: str  # bandwidth of every link, given or assumed
    devices: tuple[MeasuredDevice, ...]
    sending: SendingCost = ASSUMED  # cost of remote tuples, measured or assumed
    # Core seconds per second that Java uses in each besides its tasks; None if not measured.
    java: float | None = None
    reserved_for: str = ""  # purpose of the reserved CPU, in words
    # Whether the bandwidth is assumed. Then it is not below the speed of any card, so that two
    # TaskManagers whose cards are known are limited by these alone.
    is_bandwidth_assumed: bool = False
    # Sentences on devices whose CPU is assumed, or on which more is used than they count with.
    notes: tuple[str, ...] = ()

    def cluster(self) -> Cluster:
        """Cluster with the resources that are available to operators and payloads."""
        rows = []
        for device in self.devices:
            speed = device.card.speed
            facts = {key: getattr(device, key) for key in ("name", "mips", "cores", "memory")}
            facts |= {"reserved": device.reserved, "egress": speed, "ingress": speed}
            rows.append({key: fact for key, fact in facts.items() if fact is not None})
        tables: dict[str, Any] = {
            "bandwidth": self.bandwidth,
            "framing": FRAMING,
            "headroom": HEADROOM,
            "overhead": self.sending.per_tuple,
            "overhead_per_byte": self.sending.per_byte,
            "devices": rows,
        }
        where = f"the Flink at {self.url}"
        return cluster_from_tables(parse_tables("cluster", tables, where))

    @property
    def unmeasured_sending(self) -> str:
        """Sentence on the assumed cost of tuples between TaskManagers; empty if it is measured."""
        if not self.sending.is_assumed:
            return ""
        return (
            "what a tuple between TaskManagers costs is assumed to be "
            f"{1e9 * self.sending.per_tuple:.3g} ns per tuple and "
            f"{1e9 * self.sending.per_byte:.3g} ns per byte at each end, because no job "
            "sends enough tuples between TaskManagers whose threads can all be read here, or other "
            "jobs send some as well"
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences on everything that is assumed because it was not measured."""
        sentences = [self.unmeasured_sending] if self.unmeasured_sending else []
        if assumed := [device for device in self.devices if device.card.is_assumed]:
            speed = assumed[0].card.speed
            links = ", as every link between two TaskManagers" if speed == self.bandwidth else ""
            sentences.append(
                f"the network cards of {listed([device.name for device in assumed])} are assumed "
                f"to have {speed}{links}; give their speed (nic in --settings)"
            )
        return tuple(sentences)

    def as_toml(self) -> str:
        """Text of a cluster file, with comments on the origin of its figures."""
        links = ASSUMED_SPEED if self.is_bandwidth_assumed else GIVEN
        source = "assumed" if self.sending.is_assumed else "measured"
        text = (
            f"# TaskManagers of the Flink at {self.url}; the speed of cores is as given.\n"
            f"bandwidth = {quoted_yaml(self.bandwidth)}  # between each two, {links}\n"
            f"framing = {FRAMING}  # headers, per byte of payload, assumed\n"
            f"headroom = {HEADROOM}  # part of every CPU and link that stays free, assumed\n"
            f"overhead = {self.sending.per_tuple:.3g}"
            f"  # s of a core per remote tuple and end, {source}\n"
            f"overhead_per_byte = {self.sending.per_byte:.3g}"
            f"  # s of a core per remote byte and end, in addition, {source}\n"
        )
        return text + "".join(map(self._table, self.devices))

    def _table(self, device: MeasuredDevice) -> str:
        limited = "" if device.limit is None else f"  # limited to {device.limit:g} cores"
        assumed = "  # assumed" if device.is_cpu_assumed else ""
        text = (
            f"\n[[devices]]\nname = {quoted_yaml(device.name)}\n"
            f"mips = {quoted_yaml(device.mips)}{limited}\ncores = {device.cores}{assumed}\n"
        )
        if device.memory is not None:
            text += f"memory = {device.memory}\n"
        for end in ("egress", "ingress"):
            speed, source = device.card
            text += f"{end} = {quoted_yaml(speed)}  # network card, {source}\n"
        if device.reserved is not None:
            text += f"reserved = {device.reserved:.3g}  # MIPS that {self.reserved_for}, measured\n"
        return text


def measured_cluster(
    rest: Rest,
    mips: str,
    bandwidth: str | None,
    java: float | None = None,
    sending: SendingCost | None = None,
    beside: Mapping[str, float] | None = None,
    cards: Mapping[str, str] | None = None,
    used: Mapping[str, float] | None = None,
) -> MeasuredCluster:
    """Cluster of the TaskManagers, with given values for what REST does not report.

    TaskManagers on this machine have their parts by `cpu_shares`. Others have the limit that the
    JobManager's settings give to TaskManagers on Kubernetes; without one, those of one address are
    assumed to share the cores that Java sees evenly.

    ``bandwidth``: bandwidth of every link; None to assume it.
    ``java``: core seconds per second that Java uses in each besides its tasks; None if not
    measured.
    ``sending``: cost of remote tuples; None if not measured, and it is then assumed.
    ``beside``: device → core seconds per second of jobs that stay where they are.
    ``cards``: device → speed of its network card, "" for all; others are measured or assumed.
    ``used``: device → cores that it uses now; None if that is not measured.
    """
    managers = rest.task_managers()
    if not managers:
        raise FlinkError(f"the Flink at {rest.url} has no TaskManager; start one")
    crowd = Counter(address_of(manager)[0] for manager in managers)
    processes = processes_of(rest)
    shares = cpu_shares(processes, used)
    shares |= _limits(rest, [manager for manager in managers if manager["id"] not in shares])
    cost = (sending or ASSUMED).slower(slowness(shares.values())).rounded()
    usual, names = bandwidth or BANDWIDTH, [manager["id"] for manager in managers]
    own = cards_of(names, cards or {}, processes, usual)
    links = bandwidth or _fastest([usual, *(card.speed for card in own.values())])
    devices = []
    for manager in managers:
        name, seen = str(manager["id"]), manager["hardware"]["cpuCores"]
        memory, share = manager["memoryConfiguration"].get("totalProcessMemory"), shares.get(name)
        if share is None:
            cores = max(1, seen // crowd[address_of(manager)[0]])
            device = MeasuredDevice(name, mips, cores, own[name], memory, is_cpu_assumed=True)
        else:
            cores, part = share.whole_cores
            speed = mips if part == 1 else f"{part * parsed_mips(mips):g} MIPS"
            limit = share.limit if share.is_limited else None
            device = MeasuredDevice(name, speed, cores, own[name], memory, limit)
        devices.append(device)
    notes = [ASSUMED_CPU] if any(device.is_cpu_assumed for device in devices) else []
    if java is not None or beside:
        own_parts = 0.0 if java is None else java + cost.fixed
        taken = {name: own_parts + (beside or {}).get(name, 0.0) for name in names}
        devices, over = _reserved(devices, taken, parsed_mips(mips))
        if over:
            notes.append(
                f"what is reserved on {listed(over)} is nearly all CPU that the model gives it, or "
                f"more, so only {MOST_RESERVED:.0%} of that is"
            )
    what = ["Java and the network take besides the tasks"] if java is not None else []
    what += ["jobs that stay take"] if beside else []
    return MeasuredCluster(
        rest.url,
        links,
        tuple(devices),
        cost,
        java,
        " and ".join(what),
        is_bandwidth_assumed=bandwidth is None,
        notes=tuple(notes),
    )


def _reserved(
    devices: Sequence[MeasuredDevice], taken: Mapping[str, float], mips: float
) -> tuple[list[MeasuredDevice], list[str]]:
    """Devices with cores that are reserved as far as possible, and the names of the others."""
    reserved, over = [], []
    for device in devices:
        wanted = taken[device.name] * mips
        most = MOST_RESERVED * device.cores * parsed_mips(device.mips)
        reserved.append(replace(device, reserved=float(f"{min(wanted, most):.3g}")))
        over += [device.name] if wanted > most else []
    return reserved, over


def _limits(rest: Rest, remote: Sequence[Mapping[str, Any]]) -> dict[str, CpuShare]:
    """CPU limits of TaskManagers on other machines by the settings of the JobManager, if any."""
    settings = (shown_settings(rest) if remote else None) or {}
    given = next((settings[name] for name in POD_CPU if name in settings), "")
    try:
        limit = float(given) * float(settings.get(POD_CPU_FACTOR, "1"))
    except ValueError:
        return {}
    if not 0 < limit < inf:  # Flink's default is one core per slot, written as -1
        return {}
    return {
        row["id"]: CpuShare(min(limit, max(1.0, row["hardware"]["cpuCores"]))) for row in remote
    }


def slowness(shares: Iterable[CpuShare]) -> float:
    """Mean seconds that cores of limited devices need for the work of one second of a full core.

    >>> slowness([CpuShare(0.25), CpuShare(0.25)]), slowness([])
    (4.0, 1.0)
    """
    speeds = [share.whole_cores[1] for share in shares]
    return len(speeds) / sum(speeds) if speeds else 1.0


def _fastest(speeds: Sequence[str]) -> str:
    """Return the fastest of some bandwidths, the first of equal ones."""
    return max(speeds, key=bandwidth_bps)


def unpinnable(rest: Rest) -> list[str]:
    """TaskManagers that do not offer the resource of their own name."""
    return [manager["id"] for manager in rest.task_managers() if not is_pinnable(manager)]


def is_pinnable(manager: Mapping[str, Any]) -> bool:
    """Whether a TaskManager offers the resource of its own name."""
    return resource(manager["id"]) in manager["totalResource"].get("extendedResources", {})


def fast_enough(
    measured: MeasuredCluster,
    graph: StreamGraph,
    layout: Mapping[str, Sequence[str]],
    shares: Shares,
) -> tuple[MeasuredCluster, str]:
    """Return the cluster with a network that carries what a job sends, and a note if it was raised.

    Cards are compared, because no pair of TaskManagers exchanges more than the card of either, and
    no assumed link is slower than an assumed card.

    ``graph``: the job with its measured rates.
    ``layout``: operator → TaskManagers of its subtasks.
    """
    from streamsim import resource_loads

    cluster = measured.cluster()
    if not {device for devices in layout.values() for device in devices} <= {*cluster.devices.name}:
        return measured, ""  # a TaskManager was lost meanwhile
    job = placed(graph, cluster, layout, shares)
    loads = resource_loads(job.problem.instance, job.placement)
    assumed = [device.card.is_assumed for device in measured.devices]
    load = float(np.maximum(loads.egress, loads.ingress)[assumed].max(initial=0.0))
    if load <= CONTRADICTED:
        return measured, ""
    before = measured.devices[assumed.index(True)].card.speed
    speed = f"{ceil(ROOM * load * bandwidth_bps(before) / 1e6)} Mbps"
    devices = tuple(
        replace(device, card=device.card._replace(speed=speed)) if is_assumed else device
        for device, is_assumed in zip(measured.devices, assumed, strict=True)
    )
    links = measured.bandwidth
    links = _fastest([links, speed]) if measured.is_bandwidth_assumed else links
    return replace(measured, devices=devices, bandwidth=links), (
        f"the job sends more between TaskManagers than the {before} that network cards are "
        f"assumed to have, so {speed} are assumed; give their speed (nic in --settings)"
    )


def parse_cards(texts: tuple[str, ...]) -> dict[str, str]:
    """TaskManager → speed of its card, from texts such as ``1 Gbps`` and ``dev-0=100 Mbps``.

    >>> parse_cards(("1 Gbps", "dev-0=100 Mbps"))
    {'': '1 Gbps', 'dev-0': '100 Mbps'}
    """
    given: dict[str, str] = {}
    for text in texts:
        name, _, speed = text.rpartition("=")
        if name in given:
            what = f"the card of {quoted(name)}" if name else "the card of all TaskManagers"
            raise SettingError(f"{what} is given twice; give it once")
        if not bandwidth_bps(speed) > 0:
            raise SettingError(f"the card is {quoted(text)}; the speed must be above 0")
        given[name] = speed.strip()
    return given


def cards_of(
    managers: list[str], given: Mapping[str, str], processes: Mapping[str, int], usual: str
) -> dict[str, Card]:
    """TaskManager → its card.

    ``given``: speeds of some TaskManagers, or of all by the name "".
    ``processes``: TaskManager → process, for those on this machine.
    ``usual``: speed that is assumed if nothing is known.
    """
    if unknown := [name for name in given if name != ALL and name not in managers]:
        raise SettingError(
            f"nic names {quoted(unknown[0])}, but the TaskManagers are {listed(managers)}"
        )
    cards = {}
    for name in managers:
        speed = given.get(name, given.get(ALL))
        megabits = link_speed(processes[name]) if name in processes else None
        if speed is not None:
            cards[name] = Card(speed, GIVEN)
        elif megabits is not None:
            cards[name] = Card(f"{megabits} Mbps", LINK_SPEED)
        else:
            cards[name] = Card(usual, ASSUMED_SPEED)
    return cards


def link_speed(process: int, root: Path = Path("/")) -> int | None:
    """Mbps of the card through which a process reaches other machines; None if unknown.

    Only of one in the network of this machine: containers see virtual cards, whose speed says
    nothing.
    """
    own, other = root / "proc" / "self", root / "proc" / str(process)
    with suppress(OSError, ValueError):  # the process has ended, or belongs to another user
        if (own / "ns" / "net").readlink() != (other / "ns" / "net").readlink():
            return None
        route = _default_route((own / "net" / "route").read_text())
        folder = root / "sys" / "class" / "net" / route
        if route and ((folder / "device").exists() or (folder / "bonding").exists()):
            speed = int((folder / "speed").read_text())
            return speed if speed > 0 else None
    return None


def _default_route(table: str) -> str:
    """Interface of the default route in ``/proc/PID/net/route``; empty if there is none."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return next((row[0] for row in rows if row[1] == row[7] == "00000000"), "")
