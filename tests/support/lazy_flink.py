"""A Flink that answers as lazily as the real one, with jobs whose truth is known."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import pytest
from fake_flink import FakeFlink, config, failed_by, jobs, task_manager

from streamplace.engines.flink.advise.advise import Advice
from streamplace.engines.flink.cpu import threads as cpu
from streamplace.engines.flink.cpu.threads import JavaThread
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure import cluster as clusters
from streamplace.engines.flink.measure import profile as profiling
from streamplace.engines.flink.measure import sampling
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.engines.flink.program.program import Program
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.problem import PlanSettings

START, MIPS = 100.0, 1000.0


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


def with_threads(
    patch: pytest.MonkeyPatch,
    threads: Callable[[int], list[JavaThread]],
    processes: Mapping[str, int],
) -> None:
    """Let TaskManagers be processes of this machine with these threads."""
    for module in (sampling, clusters):
        patch.setattr(module, "processes_of", lambda rest: processes)
    patch.setattr(profiling, "runs_python", lambda: False)
    patch.setattr(cpu, "java_threads", threads)
    patch.setattr(cpu, "threads_again", lambda process, names: [])


@dataclass
class Vertex:
    """A task, what it does per second, and where its input comes from."""

    name: str
    # Metric → change per second, or what is counted by a time; a text stays as it is.
    rates: Mapping[str, float | str | Callable[[float], float]]
    inputs: Sequence[tuple[str, str]] = ()  # sender and how it sends, such as ("v0", "HASH")
    parallelism: int = 2
    tree: str = ""  # what the plan shows of it
    # Parts of its tuples that its subtasks read, or send if it is a source; empty if Flink does not
    # say.
    shares: Sequence[float] = ()
    waits: float = 0.0  # part of the time in which each subtask waits for input
    # Metric → change per second of the subtask with the largest value.
    most: Mapping[str, float] = field(default_factory=dict)
    ends: float = math.inf  # when it has finished, from which on Flink reports no metrics of it
    # Number of its subtasks whose metrics Flink has fetched by a time; None if it does not say.
    told: Callable[[float], int] | None = None
    lags: Sequence[Callable[[float], float]] = ()  # what waits for each subtask of a source by then
    offsets: Mapping[str, float] = field(default_factory=dict)  # metric → offset of a partition


@dataclass
class LazyFlink(FakeFlink):
    """Answers with the counters of the fetch that the look before asked for."""

    clock: Clock
    vertices: dict[str, Vertex]
    # States of the job, one for each time that it is looked at; the last one stays.
    states: list[str] = field(default_factory=lambda: ["RUNNING"])
    fetched: dict[str, float] = field(default_factory=dict)
    devices: Sequence[str] = ("dev-0",)  # subtask i runs on number i modulo their number
    process_cpu: Mapping[str, float] = field(default_factory=dict)  # cores of those that say so
    # Vertex → metric → what was counted before the clock began.
    counted: dict[str, dict[str, float]] = field(default_factory=dict)
    duration: int = 0  # milliseconds since the job's start
    settings: dict[str, str] = field(default_factory=dict)  # of the JobManager
    facts: dict[str, Any] = field(default_factory=dict)  # what else the job's document says
    # What it says otherwise of a subtask, by its task and number.
    otherwise_of: Callable[[Vertex, int], dict[str, Any]] = lambda vertex, i: {}

    def __post_init__(self) -> None:
        super().__init__(
            {
                "GET /jobs": jobs({"job": "RUNNING"}),
                "GET /jobs/job/exceptions": failed_by(
                    "java.lang.RuntimeException: the reason\n\tat somewhere"
                ),
                "GET /jobs/job/job/config": {"execution-config": {}},
            }
        )

    def answer(self, request: str, document: Any = None) -> Any:
        """Answer to a request; what no test has set follows from the job."""
        found = super().answer(request, document)
        return self._answer(request.partition(" ")[2]) if found is self.otherwise else found

    def _answer(self, path: str) -> Any:
        if path.endswith("/plan"):
            return {"plan": {"nodes": [self._node(v) for v in self.vertices]}}
        if path == "/jobmanager/config":
            return [{"key": key, "value": value} for key, value in self.settings.items()]
        if path == "/taskmanagers":
            return {"taskmanagers": [task_manager(device, []) for device in self.devices]}
        if path.startswith("/taskmanagers/"):
            return self._of_process(path.split("/")[2], unquote(path.partition("get=")[2]))
        if path.endswith("/subtasktimes"):
            return self.otherwise
        if "/metrics" in path and "/subtasks/" not in path:
            return self._by_subtask(path.split("/")[4], unquote(path.partition("get=")[2]))
        if "/metrics" in path:
            return self._metrics(path.split("/")[4], unquote(path.partition("get=")[2]))
        if "/vertices/" in path:
            return {"subtasks": self._subtasks(self.vertices[path.rpartition("/")[2]])}
        if path != "/jobs/job":
            return self.otherwise
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        facts = {"name": "shop", "state": state, "duration": self.duration}
        vertices, nodes = map(self._vertex, self.vertices), map(self._node, self.vertices)
        return facts | {"vertices": [*vertices], "plan": {"nodes": [*nodes]}} | self.facts

    def _subtasks(self, vertex: Vertex) -> list[dict[str, Any]]:
        """Subtasks, dealt out in turn; each is as busy as its vertex in the mean."""
        busy = vertex.rates.get("accumulateBusyTimeMs", 0.0)
        if not isinstance(busy, str):
            busy = _counted(busy, self.clock.now) / vertex.parallelism
        return [
            {
                "subtask": i,
                "attempt": 0,
                "taskmanager-id": self.devices[i % len(self.devices)],
                "metrics": {"accumulated-busy-time": busy} | self._read(vertex, i),
            }
            | self.otherwise_of(vertex, i)
            for i in range(vertex.parallelism)
        ]

    def _read(self, vertex: Vertex, subtask: int) -> dict[str, float]:
        rate = vertex.rates.get("numRecordsIn" if vertex.inputs else "numRecordsOut", 0.0)
        if not vertex.shares or not isinstance(rate, int | float):
            return {}
        number = vertex.shares[subtask] * rate * self.clock.now
        counts = {"read-records": number} if vertex.inputs else {"write-records": number}
        times = {"idle": vertex.waits, "backpressured": 0.0}
        spent = {f"accumulated-{kind}-time": 1e3 * t * self.clock.now for kind, t in times.items()}
        return counts | spent

    def _of_process(self, device: str, wanted: str) -> list[dict[str, Any]]:
        if device not in self.process_cpu:
            return []
        name = "Status.JVM.CPU.Time"
        if not wanted:
            return [{"id": name}]
        value = self.process_cpu[device] * self.clock.now * 1e9
        return [{"id": name, "value": str(round(value))}]

    def _by_subtask(self, v: str, wanted: str) -> list[dict[str, Any]]:
        vertex, names = self.vertices[v], wanted.split(",")
        if not wanted:
            return [{"id": name} for name in vertex.offsets]
        lags = dict(zip(names, vertex.lags, strict=False))
        known = {name: lag(self.clock.now) for name, lag in lags.items()} | vertex.offsets
        return [{"id": name, "value": str(known[name])} for name in names if name in known]

    def _node(self, v: str) -> dict[str, Any]:
        inputs = [{"id": u, "ship_strategy": ship} for u, ship in self.vertices[v].inputs]
        return {"id": v, "description": self.vertices[v].tree, "inputs": inputs}

    def _vertex(self, v: str) -> dict[str, Any]:
        vertex = self.vertices[v]
        status = "FINISHED" if self.clock.now >= vertex.ends else "RUNNING"
        facts = {"name": vertex.name, "parallelism": vertex.parallelism}
        return {"id": v, "status": status, **facts}

    def _metrics(self, v: str, wanted: str) -> list[dict[str, Any]]:
        rates = self.vertices[v].rates
        if self.clock.now >= self.vertices[v].ends:
            return []
        if not wanted:
            return [{"id": name} for name in rates]
        if not set(wanted.split(",")) <= rates.keys():
            return []  # as Flink does
        at, self.fetched[v] = self.fetched.get(v, 0.0), self.clock.now
        before, told = self.counted.get(v, {}), self.vertices[v].told
        number = self.vertices[v].parallelism if told is None else told(at)
        part = number / self.vertices[v].parallelism
        sums = {
            name: rate
            if isinstance(rate, str)
            else part * (_counted(rate, at) + before.get(name, 0.0))
            for name, rate in rates.items()
        }
        means = {name: one / number for name, one in sums.items() if not isinstance(one, str)}
        largest = self.vertices[v].most
        return [
            {"id": name, "sum": sums[name]}
            | ({"max": _counted(largest[name], at)} if name in largest else {})
            | ({"avg": means[name]} if told and name in means else {})
            for name in wanted.split(",")
        ]


def _counted(rate: float | Callable[[float], float], at: float) -> float:
    return rate(at) if callable(rate) else rate * at


def rates(
    read: float = 0, wrote: float = 0, read_bytes: float = 0, wrote_bytes: float = 0, **more: float
) -> dict[str, float | str]:
    """Metrics of a task; ``busy`` and ``blocked`` are seconds per second."""
    return {
        "numRecordsIn": read,
        "numRecordsOut": wrote,
        "numBytesIn": read_bytes,
        "numBytesOut": wrote_bytes,
        "accumulateBusyTimeMs": 1000 * more.get("busy", 0.0),
        "accumulateBackPressuredTimeMs": 1000 * more.get("blocked", 0.0),
    }


def made_threads(
    vertices: Mapping[str, Vertex],
    cpu: Mapping[str, float],
    now: float,
    delay: Mapping[str, float] = MappingProxyType({}),
) -> list[JavaThread]:
    """Threads of all tasks, in order; each has its part of the CPU and run delay of its task."""
    threads = []
    for v, vertex in vertices.items():
        part = now / vertex.parallelism
        for i in range(vertex.parallelism):
            name = f"{vertex.name} ({i + 1}/{vertex.parallelism})#0"
            times = cpu[v] * part, now, delay.get(v, math.nan) * part
            threads.append(JavaThread(len(threads) + 1, name, *times))
    return threads


def doubts(seen: JobProfile) -> list[str]:
    """What a profile tells, but for where CPU times come from."""
    measured_graph(seen, MIPS)
    return [doubt for doubt in seen.doubts if not doubt.startswith("ipt of ")]


CPU = {"v0": 0.01, "v1": 0.2, "v2": 0.05}
OFFERS = Catalogue.of([Offer("small", 0.1), Offer("large", 0.25, cores=2)], overhead=1e-6)
SETTINGS = PlanSettings(clusters.HEADROOM, budget=Budget(None, 20_000))
OLD = 10 * 60_000


@dataclass
class ShopFlink(LazyFlink):
    """A stock job of three operators."""

    groups: tuple[str, ...] = ()  # ids of the slot sharing groups of the vertices; () if not told
    pinnable: bool = True  # whether the TaskManagers are configured for placements

    def __post_init__(self) -> None:
        super().__post_init__()
        latest = {"completed": {"end_to_end_duration": 2000}}
        self.answers |= {
            "GET /jobs/job/checkpoints": {"counts": {"completed": 1}, "latest": latest},
            "GET /jars": {"files": []},
            "GET /jobmanager/config": config({"jobmanager.scheduler": "adaptive"}),
        }

    def _answer(self, path: str) -> Any:
        answer = super()._answer(path)
        if path == "/taskmanagers" and not self.pinnable:
            for manager in answer["taskmanagers"]:
                manager["totalResource"] = {"managedMemory": 100}
        return answer

    def _vertex(self, v: str) -> dict[str, Any]:
        group = dict(zip(self.vertices, self.groups, strict=False)).get(v)
        told = {} if group is None else {"slotSharingGroupId": group}
        return super()._vertex(v) | {"maxParallelism": 128} | told


def shop_vertices(blocked: float = 0.0, **more: float) -> dict[str, Vertex]:
    """A source, which may tell more, a splitter and a sink."""
    source = rates(0, 100, 0, 100 * 400, busy=CPU["v0"], blocked=blocked)
    split = rates(100, 250, 100 * 400, 250 * 40, busy=CPU["v1"])
    out = {f"Source__src.{name}": rate for name, rate in {"numRecordsOut": 100.0, **more}.items()}
    return {
        "v0": Vertex("Source: src", {**source, **out}),
        "v1": Vertex("split", split, [("v0", "HASH")]),
        "v2": Vertex("out", rates(250, 0, 250 * 40, 0, busy=CPU["v2"]), [("v1", "REBALANCE")]),
    }


def writing_shop(clock: Clock, blocked: float = 0.0) -> LazyFlink:
    """A pipeline of a source, a splitter and a sink that is called as sinks are."""
    vertices = shop_vertices(blocked)
    vertices["v2"].name, vertices["v2"].inputs = "out: Writer", [("v1", "FORWARD")]
    return LazyFlink(clock, vertices)


Shop = Callable[..., ShopFlink]
"""Makes a Flink with such a job, from what differs."""


def shop_maker(clock: Clock) -> Shop:
    """A job of a source, a splitter and a sink on three TaskManagers of two cores each."""

    def make(blocked: float = 0.0, pending: float | None = None, **facts: Any) -> ShopFlink:
        waiting = {} if pending is None else {"pendingRecords": pending}
        vertices = shop_vertices(blocked, **waiting)
        devices = ("dev-0", "dev-1", "dev-2")
        usual: dict[str, Any] = {
            "devices": devices,
            "duration": OLD,
            "process_cpu": dict.fromkeys(devices, sum(CPU.values())),
            "facts": {"schedulerType": "Default"},
        }
        return ShopFlink(clock, vertices, **(usual | facts))

    return make


def advised(
    flink: ShopFlink,
    rate: str = "2x",
    machines: Any = OFFERS,
    program: Program | None = None,
    **facts: Any,
) -> Advice:
    """Advice on the job of a cluster, by an engine with these facts."""
    engine = FlinkEngine(flink.rest, **facts)
    return engine.advise("job", rate, machines, SETTINGS, program=program)
