"""A running Flink as a cluster of devices, and a measured job on it as the input of placers.

Every TaskManager is a device, with its CPU and network card. Pins fix how many subtasks of an
operator run on a TaskManager, not which. `possible_orders` returns some of the possible layouts;
their rates differ if subtasks read uneven shares.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Any

import numpy as np

from streamplace.engines.text import quoted_yaml
from streamplace.errors import SettingError
from streamplace.flink.constants import VARIANTS
from streamplace.flink.cpu.charging import UNKNOWN
from streamplace.flink.cpu.limits import CpuShare, cpu_shares, reserved_cores
from streamplace.flink.cpu.reporter import Reporters
from streamplace.flink.cpu.threads import address_of, processes_of
from streamplace.flink.layout import Layout
from streamplace.flink.measure.cost_fit import Observation
from streamplace.flink.measure.key_shares import Shares
from streamplace.flink.measure.profile import Remedy, profile
from streamplace.flink.measure.source_lag import SourceFlow
from streamplace.flink.measure.streams import ASSUMED, SendingCost
from streamplace.flink.measure.windows import JobWindows
from streamplace.flink.program.operator_names import operators_in
from streamplace.flink.rest.client import RUNNING, FlinkError, NoAnswer, Rest
from streamplace.flink.rest.settings import shown_settings
from streamplace.io.clusters import parse_cluster
from streamplace.model import Cluster, Devices, Problem, StreamGraph
from streamplace.model.arrays import Ints
from streamplace.model.defaults import BANDWIDTH, FLINK_HEADROOM
from streamplace.model.expansion import Expansion, expand
from streamplace.model.graph import CPU_OF
from streamplace.model.message_text import listed, quoted
from streamplace.model.prediction_intervals import RateInterval
from streamplace.model.units import bandwidth_bps
from streamplace.model.units import mips as parsed_mips

ALL = ""
"""Key of the speed of all TaskManagers without a speed of their own."""
FRAMING = 0.05
"""Headers of Ethernet, TCP and Flink's buffers per byte of payload."""
POD_CPU = ("kubernetes.taskmanager.cpu.amount", "kubernetes.taskmanager.cpu")
"""Setting of the CPU that a TaskManager on Kubernetes requests, and its older name."""
POD_CPU_FACTOR = "kubernetes.taskmanager.cpu.limit-factor"
"""Setting of the CPU limit of a TaskManager, as a multiple of the requested CPU."""
MAX_ASSUMED_LOAD = 1.05
"""Load of an assumed network above which its speed is raised; a full network may be measured as
slightly more than 1."""
RAISED_SPEED = 2.0
"""Raised speed of an assumed network, as a multiple of the measured traffic of its busiest card."""
ASSUMED_CPU = Remedy(
    "the CPU of TaskManagers on other machines is assumed: the cores that Java sees there, in "
    "equal parts for TaskManagers of one address; if containers limit it, or share a machine, "
    "describe the TaskManagers in a cluster file"
)
"""Note on TaskManagers without measured CPU and without a limit in the JobManager's settings."""
GIVE_SPEED = "give their speed (nic in --settings)"


@dataclass(frozen=True, slots=True)
class MeasuredDevice:
    """A TaskManager as a device."""

    name: str
    mips: str  # speed of a core
    cores: int
    card: str  # speed of its network card in either direction, such as "1000 Mbps"
    is_card_assumed: bool  # False if the speed is given
    memory: int | None = None  # bytes; None if Flink does not report it
    reserved: float | None = None  # MIPS that are not available to the job; None if not measured
    is_cpu_assumed: bool = False  # whether the number of cores is assumed


@dataclass(frozen=True, slots=True)
class MeasuredCluster:
    """TaskManagers as the devices of a cluster, with their measurements."""

    url: str  # address of the REST interface
    bandwidth: str  # bandwidth of every link, given or assumed
    devices: tuple[MeasuredDevice, ...]
    sending: SendingCost = ASSUMED  # cost of remote tuples, measured or assumed
    # Cores that Java uses in each device besides its tasks; None if not measured.
    java: float | None = None
    # Whether the bandwidth is assumed. An assumed bandwidth is not below the speed of any card, so
    # only their cards limit two TaskManagers.
    is_bandwidth_assumed: bool = False
    notes: tuple[str, ...] = ()  # sentences on devices whose CPU is assumed

    def cluster(self) -> Cluster:
        """Cluster with the resources that are available to operators and payloads."""
        return parse_cluster(self.as_toml().encode(), f"the Flink at {self.url}")

    @property
    def unmeasured_sending(self) -> str:
        """Sentence on the assumed cost of tuples between TaskManagers; empty if it is measured."""
        if not self.sending.is_assumed:
            return ""
        return (
            "the cost of tuples between TaskManagers is assumed to be "
            f"{1e9 * self.sending.per_tuple:.3g} ns per tuple and "
            f"{1e9 * self.sending.per_byte:.3g} ns per byte at each end, because no job "
            "sends enough tuples between TaskManagers whose threads can all be read here, or other "
            "jobs send some as well"
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences on assumptions in place of measurements."""
        sentences = [self.unmeasured_sending] if self.unmeasured_sending else []
        if assumed := [device for device in self.devices if device.is_card_assumed]:
            speed = assumed[0].card
            links = ", as every link between two TaskManagers" if speed == self.bandwidth else ""
            sentences.append(
                f"the network cards of {listed([device.name for device in assumed])} are assumed "
                f"to have {speed}{links}; {GIVE_SPEED}"
            )
        return tuple(sentences)

    def as_toml(self) -> str:
        """Text of a cluster file, with comments on the origin of its figures."""
        links = "assumed" if self.is_bandwidth_assumed else "given"
        source = "assumed" if self.sending.is_assumed else "measured"
        text = (
            f"# TaskManagers of the Flink at {self.url}; the speed of cores is as given.\n"
            f"bandwidth = {quoted_yaml(self.bandwidth)}  # between each two, {links}\n"
            f"framing = {FRAMING}  # headers, per byte of payload, assumed\n"
            f"headroom = {FLINK_HEADROOM}  # part of every CPU and link that stays free, assumed\n"
            f"overhead = {self.sending.per_tuple:.3g}"
            f"  # s of a core per remote tuple and end, {source}\n"
            f"overhead_per_byte = {self.sending.per_byte:.3g}"
            f"  # s of a core per remote byte and end, in addition, {source}\n"
        )
        return text + "".join(map(self._table, self.devices))

    def _table(self, device: MeasuredDevice) -> str:
        assumed = "  # assumed" if device.is_cpu_assumed else ""
        text = (
            f"\n[[devices]]\nname = {quoted_yaml(device.name)}\n"
            f"mips = {quoted_yaml(device.mips)}\ncores = {device.cores}{assumed}\n"
        )
        if device.memory is not None:
            text += f"memory = {device.memory}\n"
        for end in ("egress", "ingress"):
            source = "assumed" if device.is_card_assumed else "given"
            text += f"{end} = {quoted_yaml(device.card)}  # network card, {source}\n"
        if device.reserved is not None:
            text += f"reserved = {device.reserved:.3g}  # MIPS of Java, the network, other jobs\n"
        return text


def measured_cluster(
    rest: Rest,
    mips: str,
    bandwidth: str | None,
    cards: Mapping[str, str] | None = None,
    *,
    java: float | None = None,
    sending: SendingCost | None = None,
    beside: Mapping[str, float] | None = None,
    used: Mapping[str, float] | None = None,
) -> MeasuredCluster:
    """Cluster of the TaskManagers, with parameters for properties that REST does not report.

    `cpu_shares` gives the CPU of TaskManagers on this machine, and of those with a reporter. Other
    TaskManagers have the limit in the JobManager's settings for Kubernetes. Without such a limit,
    TaskManagers of one address are assumed to share evenly the cores that Java detects.

    ``bandwidth``: bandwidth of every link; None to assume it.
    ``cards``: device → speed of its network card, "" for all; other speeds are assumed.
    ``java``: cores that Java uses in each device besides its tasks; None if not measured.
    ``sending``: cost of remote tuples; None to assume it.
    ``beside``: device → cores used by jobs that stay.
    ``used``: device → cores in use; None if not measured.
    """
    managers = rest.task_managers()
    if not managers:
        raise FlinkError(f"the Flink at {rest.url} has no TaskManager; start one")
    crowd = Counter(address_of(manager)[0] for manager in managers)
    processes, reporters = processes_of(rest), Reporters(rest)
    remote = [str(manager["id"]) for manager in managers if manager["id"] not in processes]
    shares = cpu_shares(processes, used, reporters.pools(remote))
    shares |= _limits(rest, [manager for manager in managers if manager["id"] not in shares])
    cost = (sending or ASSUMED).slower(slowness(shares.values())).rounded()
    card_speed = bandwidth or BANDWIDTH
    speeds = _cards([manager["id"] for manager in managers], cards or {})
    devices = []
    for manager in managers:
        name, visible = str(manager["id"]), manager["hardware"]["cpuCores"]
        memory, share = manager["memoryConfiguration"].get("totalProcessMemory"), shares.get(name)
        cores, speed = max(1, visible // crowd[address_of(manager)[0]]), mips
        reserved: float | None = None
        if share is not None:
            cores, part = share.whole_cores
            speed = mips if part == 1 else f"{part * parsed_mips(mips):g} MIPS"
        if java is not None or beside:
            in_use = (beside or {}).get(name, 0.0) + (0.0 if java is None else java + cost.fixed)
            limit = cores if share is None else share.limit
            reserved = float(f"{reserved_cores(in_use, limit) * parsed_mips(mips):.3g}")
        card, is_assumed = speeds[name] or card_speed, speeds[name] is None
        devices.append(
            MeasuredDevice(
                name, speed, cores, card, is_assumed, memory, reserved, is_cpu_assumed=share is None
            )
        )
    return MeasuredCluster(
        rest.url,
        bandwidth or max([card_speed, *(device.card for device in devices)], key=bandwidth_bps),
        tuple(devices),
        cost,
        java,
        is_bandwidth_assumed=bandwidth is None,
        notes=(ASSUMED_CPU,) if any(device.is_cpu_assumed for device in devices) else (),
    )


def _limits(rest: Rest, remote: Sequence[Mapping[str, Any]]) -> dict[str, CpuShare]:
    """CPU limits of TaskManagers on other machines, from the JobManager's settings for pods."""
    settings = (shown_settings(rest) if remote else None) or {}
    cores = next((settings[name] for name in POD_CPU if name in settings), "")
    try:
        limit = float(cores) * float(settings.get(POD_CPU_FACTOR, "1"))
    except ValueError:
        return {}
    if not 0 < limit < inf:  # Flink's default is one core per slot, written as -1
        return {}
    return {
        row["id"]: CpuShare(min(limit, max(1.0, row["hardware"]["cpuCores"]))) for row in remote
    }


def slowness(shares: Iterable[CpuShare]) -> float:
    """Mean time that cores of limited devices need for one second of work of a full core.

    >>> slowness([CpuShare(0.25), CpuShare(0.25)]), slowness([])
    (4.0, 1.0)
    """
    speeds = [share.whole_cores[1] for share in shares]
    return len(speeds) / sum(speeds) if speeds else 1.0


def background(
    rest: Rest, job: str | None, seconds: float
) -> tuple[float | None, SendingCost | None]:
    """Cores that Java itself uses in each TaskManager, and the cost of remote tuples of a job.

    Both are None if no job runs, or if no threads can be read, here or by a reporter. The cost is
    also None if the job sends no tuples between TaskManagers, or if other jobs may send some.

    ``job``: a job that must be running; None for any running job.
    """
    names = [str(manager["id"]) for manager in rest.task_managers()]
    if not processes_of(rest) and not Reporters(rest).pools(names):
        return None, None
    running = (name for name, state in rest.jobs().items() if state == RUNNING)
    if (measured_job := job or next(running, None)) is None:
        return None, None
    try:
        measured = profile(rest, measured_job, seconds)
    except FlinkError as error:
        if job is not None or isinstance(error, NoAnswer):
            raise
        return None, None
    return measured.java, measured.sending


def cores_used(rest: Rest, jobs: Iterable[str], seconds: float) -> dict[str, float]:
    """Device → cores that the tasks of running jobs use.

    The measurement takes about ``seconds`` per job.
    """
    used: dict[str, float] = defaultdict(float)
    for job in dict.fromkeys(jobs):
        windows = JobWindows(rest, job)
        windows.add(seconds)
        for subtasks in windows.last().subtasks.values():
            for subtask, cpu in subtasks:
                used[subtask.device] += cpu.cores
    return dict(used)


def parse_cards(texts: tuple[str, ...]) -> dict[str, str]:
    """TaskManager → speed of its card, from texts such as ``1 Gbps`` and ``dev-0=100 Mbps``.

    >>> parse_cards(("1 Gbps", "dev-0=100 Mbps"))
    {'': '1 Gbps', 'dev-0': '100 Mbps'}
    """
    speeds: dict[str, str] = {}
    for text in texts:
        name, _, speed = text.rpartition("=")
        if name in speeds:
            what = f"the card of {quoted(name)}" if name else "the card of all TaskManagers"
            raise SettingError(f"{what} is given twice; give it once")
        if not bandwidth_bps(speed) > 0:
            raise SettingError(f"the card is {quoted(text)}; the speed must be above 0")
        speeds[name] = speed.strip()
    return speeds


def _cards(managers: list[str], speeds: Mapping[str, str]) -> dict[str, str | None]:
    """TaskManager → speed of its card; None if it is not given.

    ``speeds``: speeds of some TaskManagers, and at `ALL` of the others.
    """
    if unknown := [name for name in speeds if name != ALL and name not in managers]:
        raise SettingError(
            f"nic names {quoted(unknown[0])}, but the TaskManagers are {listed(managers)}"
        )
    return {name: speeds.get(name, speeds.get(ALL)) for name in managers}


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured job and its cluster, as input of placers."""

    graph: StreamGraph  # with measured rates, CPU and payloads
    cluster: Cluster  # the devices, with the resources that are available to this job
    flow: SourceFlow  # of its sources; if one was held back, another placement may carry more
    notes: tuple[str, ...] = ()  # sentences on missing measurements
    shares: Shares = field(default_factory=dict)
    # Operator → rates and CPU of its subtasks, in this and in earlier layouts.
    observed: Mapping[str, Sequence[Observation]] = field(default_factory=dict)

    @property
    def unknown_cpu(self) -> list[str]:
        """Operators without a known CPU, which counts as 0."""
        facts = self.graph.attributes.items()
        names = [name for name, fact in facts if name.startswith(CPU_OF) and fact == UNKNOWN]
        return [name.removeprefix(CPU_OF) for name in names]


def cores_of(devices: Devices, graph: StreamGraph) -> dict[str, float]:
    """Device → its CPU, in cores of the speed that a graph was measured at."""
    cores = devices.mips * devices.cores / float(graph.attributes["mips"])
    return dict(zip(devices.name, cores.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class PlacedSubtasks:
    """Subtasks of a job on devices."""

    expansion: Expansion
    problem: Problem  # the problem of placing its subtasks
    placement: Ints  # [S] device of each subtask


def placed(
    graph: StreamGraph,
    cluster: Cluster,
    devices: Mapping[str, Sequence[str]],
    shares: Shares | None = None,
) -> PlacedSubtasks:
    """Put the subtasks of a job on devices.

    Chained operators run on the device of the first of them.

    ``devices``: operator → device of each of its subtasks.
    """
    expansion = expand(graph, shares)
    problem = Problem(expansion.graph, cluster)
    number = {name: i for i, name in enumerate(cluster.devices.name)}
    placement = np.empty(problem.n_operators, np.int32)
    for row, name in enumerate(graph.operators.name):
        subtasks = np.flatnonzero(expansion.operator == row)
        try:
            first = next(key for key in (name, *operators_in(name)) if key in devices)
            for subtask, device in zip(subtasks, devices[first], strict=True):
                placement[subtask] = number[device]
        except (StopIteration, KeyError, ValueError):
            raise FlinkError(
                f"{quoted(name)} runs on TaskManagers that are not devices of the cluster; "
                "describe each of them by its id in the cluster file, or measure again without one"
            ) from None
    return PlacedSubtasks(expansion, problem, placement)


def capacity(
    graph: StreamGraph,
    cluster: Cluster,
    devices: Mapping[str, Sequence[str]],
    shares: Shares | None = None,
) -> float:
    """Multiple of the source rates that a `placed` job carries; infinite without loads."""
    from streamsim import bottleneck, resource_loads

    job = placed(graph, cluster, devices, shares)
    load = bottleneck(resource_loads(job.problem.instance, job.placement)).load
    return 1 / load if load else np.inf


def fast_enough(
    measured: MeasuredCluster,
    graph: StreamGraph,
    layout: Mapping[str, Sequence[str]],
    shares: Shares,
) -> tuple[MeasuredCluster, Remedy | None]:
    """Return the cluster with a network that carries the job, and a note if its speed was raised.

    Only loads of cards are checked: two TaskManagers exchange no more than the card of either
    carries, and no assumed link is slower than an assumed card.
    """
    from streamsim import resource_loads

    cluster = measured.cluster()
    if not {device for devices in layout.values() for device in devices} <= {*cluster.devices.name}:
        return measured, None  # a TaskManager was lost in the meantime
    job = placed(graph, cluster, layout, shares)
    loads = resource_loads(job.problem.instance, job.placement)
    assumed = [device.is_card_assumed for device in measured.devices]
    load = float(np.maximum(loads.egress, loads.ingress)[assumed].max(initial=0.0))
    if load <= MAX_ASSUMED_LOAD:
        return measured, None
    before = measured.devices[assumed.index(True)].card
    speed = f"{ceil(RAISED_SPEED * load * bandwidth_bps(before) / 1e6)} Mbps"
    devices = tuple(
        replace(device, card=speed) if is_assumed else device
        for device, is_assumed in zip(measured.devices, assumed, strict=True)
    )
    links = measured.bandwidth
    if measured.is_bandwidth_assumed:
        links = max(links, speed, key=bandwidth_bps)
    return replace(measured, devices=devices, bandwidth=links), Remedy(
        f"the job sends more between TaskManagers than the {before} that network cards are "
        f"assumed to have, so {speed} are assumed; {GIVE_SPEED}"
    )


def possible_orders(layout: Layout, shares: Shares) -> list[Layout]:
    """Layouts that may result from pinning a layout; only itself if its shares are even.

    Subtasks of one number share a slot if their operators have the same devices. Slots go to
    devices in any order.

    >>> orders = possible_orders(Layout({"sum": "ab", "out": "ab"}), {"sum": [0.9, 0.1]})
    >>> sorted(tuple(order["sum"]) for order in orders)
    [('a', 'b'), ('b', 'a')]
    >>> all(order["sum"] == order["out"] for order in orders)
    True
    """
    if not any(len(set(layout.get(name, ()))) > 1 for name in shares):
        return [layout]
    orders = [layout]
    for seed in range(VARIANTS):
        random = np.random.default_rng(seed)
        mixed = {row: random.permutation(row).tolist() for row in dict.fromkeys(layout.values())}
        order = Layout({name: mixed[row] for name, row in layout.items()})
        if order not in orders:
            orders.append(order)
    return orders


def finite(rate: float | None) -> float | None:
    """Rate for a JSON document: None if it is unknown or unlimited."""
    return rate if rate is not None and np.isfinite(rate) else None


def finite_ends(rates: RateInterval) -> dict[str, float | None]:
    """Rates of an interval for a JSON document."""
    return {end: finite(rate) for end, rate in rates._asdict().items()}
