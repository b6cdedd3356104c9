"""A stock job whose truth is known, on a cluster that answers as lazily as Flink does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flink_documents import config
from lazy_flink import Clock, LazyFlink, Vertex, rates

from streamplace.engines.flink.advise.advice import Advice
from streamplace.engines.flink.advise.advise import AdviceSettings, advise
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure.steady import GARBAGE_TIME
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer

CPU = {"v0": 0.01, "v1": 0.2, "v2": 0.05}
OFFERS = Catalogue.of([Offer("small", 0.1), Offer("large", 0.25, cores=2)], overhead=1e-6)
SETTINGS = AdviceSettings(budget=Budget(None, 20_000))
OLD = 10 * 60_000


@dataclass
class ShopFlink(LazyFlink):
    """A stock job of three operators, whose rates may bend.

    Attributes
    ----------
    groups
        Ids of the slot sharing groups of the vertices; none where Flink does not tell.
    pinnable
        Whether the TaskManagers are configured for placements.
    garbage
        TaskManager → share of its time that garbage collection takes.
    bend
        Second from which sources emit twice as much.
    """

    groups: tuple[str, ...] = ()
    pinnable: bool = True
    garbage: dict[str, float] = field(default_factory=dict)
    bend: float = 1e9
    reads: int = 0

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

    def _of_process(self, device: str, wanted: str) -> list[dict[str, Any]]:
        if not wanted:
            return [{"id": "Status.JVM.CPU.Time"}, {"id": GARBAGE_TIME}]
        milliseconds = self.garbage.get(device, 0.0) * self.clock.now * 1000
        spent = round(self.process_cpu[device] * self.clock.now * 1e9)
        return [
            {"id": "Status.JVM.CPU.Time", "value": str(spent)},
            {"id": GARBAGE_TIME, "value": str(round(milliseconds))},
        ]

    def _metrics(self, v: str, wanted: str) -> list[dict[str, Any]]:
        at = self.fetched.get(v, 0.0)
        rows = super()._metrics(v, wanted)
        for row in rows:
            if row["id"].endswith(".numRecordsOut") and "sum" in row:
                row["sum"] += 100 * max(0.0, at - self.bend)
        return rows


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
    settings: AdviceSettings = SETTINGS,
    **facts: Any,
) -> Advice:
    """Advice on the job of a cluster, by an engine with these facts."""
    return advise(FlinkEngine(flink.rest, **facts), "job", rate, machines, settings)
