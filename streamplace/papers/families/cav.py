"""Connected and autonomous vehicles at crossings: GiPH's case study, sections 5.3 and B.4.

A car and the roadside units around it fuse the images of their cameras and the scans of its LIDAR.
There are 36 roadside units, one at every crossing, and 40 edge devices somewhere between; any of
them, or the car, may run the tasks. The farther apart two of them are, the slower is their link:
60 · exp(-d / 100 m) Mbps. Times and bytes are those of Tables 1 and 2 of the paper.

The paper's traffic came from SUMO and was not published. Here a car starts on a street of a grid,
keeps its speed, and at every crossing goes straight on three times of five, else left or right; at
the edge of the area it takes a street that stays inside. A snapshot is taken every ten seconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamplace.families.parameters import check, parameter
from streamplace.families.registry import family
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.devices import Devices
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.problem import Moving, Problem
from streamplace.model.random_numbers import generator
from streamplace.papers.families.tasks import TaskList

TYPES = ("a", "b", "c")
"""Jetson Nano, Jetson TX2, and a Core i7 7700K with a GTX1080."""


class Measured(NamedTuple):
    """A task as it was measured."""

    ms: tuple[float, float, float]  # mean running time on each type of device
    message: int  # bytes that are sent when it moves; its output is assumed to have as many
    static: int  # bytes that a device holds to run it
    startup_ms: tuple[float, float]  # on types a and c; b was not measured and counts as a


MEASURED = {
    "camera": Measured((53, 36, 9), 11_494, 72_173_525, (4273.73, 794.66)),
    "lidar": Measured((14, 7, 3), 560, 24_576, (60.98, 9.26)),
    "cav-fusion": Measured((35, 35, 11), 11_796, 38_110, (0.39, 0.11)),
    "rsu-fusion": Measured((250, 250, 28), 20_907, 38_950, (2.83, 1.00)),
}
"""Tasks by kind; the first two need a GPU."""
NOTHING = Measured((0, 0, 0), 0, 0, (0, 0))
"""A sensor, or another task that does not move."""
NEED_GPU = frozenset({"camera", "lidar"})


def moving(kinds: Sequence[str], types: Sequence[str]) -> Moving:
    """Table 2: bytes that tasks of these kinds send when they move, and their start-up times."""
    tasks = [MEASURED.get(kind, NOTHING) for kind in kinds]
    startup = [[task.startup_ms[kind == "c"] / 1e3 for kind in types] for task in tasks]
    return Moving([task.message for task in tasks], startup)


CROSSINGS = 6
BLOCK_M = 380.0
"""Streets of an area: six by six crossings, so far apart that three are near a car on average."""
SPEEDS = (8.0, 14.0)
STRAIGHT = 0.6
_DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))


class Car(NamedTuple):
    """A drive: the crossings on a car's way, and its speed."""

    route: Floats  # [K, 2] crossings in order, in blocks
    offset: float  # metres from the first of them at time 0
    speed: float  # metres per second

    def at(self, seconds: float) -> Floats:
        """Position in metres, [2]."""
        blocks = (self.offset + self.speed * seconds) / BLOCK_M
        leg = int(blocks)
        start, end = self.route[leg], self.route[leg + 1]
        return np.asarray((start + (blocks - leg) * (end - start)) * BLOCK_M)


def crossings() -> Floats:
    """Positions of all crossings in metres, [36, 2]."""
    rows = np.arange(CROSSINGS) * BLOCK_M
    return np.stack(np.meshgrid(rows, rows, indexing="ij"), axis=-1).reshape(-1, 2)


def drive(seconds: float, rng: np.random.Generator) -> Car:
    """Draw a drive of at least this time."""
    speed = float(rng.uniform(*SPEEDS))
    offset = float(rng.uniform(0, BLOCK_M))
    at = tuple(rng.integers(CROSSINGS, size=2).tolist())
    heading = int(rng.integers(4))
    route = [at]
    while (len(route) - 2) * BLOCK_M < offset + speed * seconds:
        heading = _turned(at, heading, rng)
        at = _next(at, heading)
        route.append(at)
    return Car(np.array(route, np.float64), offset, speed)


def _turned(at: tuple[int, int], heading: int, rng: np.random.Generator) -> int:
    """Heading after a crossing, without a U-turn and inside the area."""
    wish = 0 if rng.random() < STRAIGHT else int(rng.choice([1, 3]))
    for turn in (wish, 1, 3):
        x, y = _next(at, (heading + turn) % 4)
        if 0 <= x < CROSSINGS and 0 <= y < CROSSINGS:
            break
    return (heading + turn) % 4


def _next(at: tuple[int, int], heading: int) -> tuple[int, int]:
    dx, dy = _DIRECTIONS[heading]
    return at[0] + dx, at[1] + dy


EDGE = {"a": 10, "b": 10, "c": 20}
"""Edge devices of each type."""
CAMERAS = 4
"""Cameras of a roadside unit."""
INTERACTS_M = 400.0
"""Distance up to which a roadside unit takes part."""
EVERY_S = 10.0
MBPS, DECAY_M = 60.0, 100.0
CAR = "cav"
_PLACES, _DRIVE = range(2)


@dataclass(frozen=True, slots=True)
class Cav:
    """Parameters of the cav family."""

    vehicles: int = parameter(
        90, "number of cars; every second one belongs to the split test", least=1, most=100_000
    )
    snapshots: int = parameter(
        10, "number of snapshots per car, one every 10 s", least=1, most=1000
    )
    reach: float = parameter(
        600.0,
        "distance from the car in metres beyond which devices are ignored",
        least=400,
        most=10_000,
    )
    frame: int = parameter(100_000, "bytes per image of a camera", least=0, most=10**9)
    scan: int = parameter(50_000, "bytes per scan of a LIDAR", least=0, most=10**9)

    def __post_init__(self) -> None:
        check(self)

    @property
    def n_graphs(self) -> int:
        """Number of problems."""
        return self.vehicles * self.snapshots


class Sites(NamedTuple):
    """Devices that do not move: names, types, and positions in metres, [N, 2]."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    position: Floats


@family("cav", Cav)
def cav(parameters: Cav, seed: int) -> Iterator[Problem]:
    """Sensor fusion of a passing car and the roadside units around it, after GiPH's case study.

    All snapshots of a car come one after the other.
    """
    sites = draw_sites(generator(seed, _PLACES))
    for vehicle in range(parameters.vehicles):
        car = drive(parameters.snapshots * EVERY_S, generator(seed, _DRIVE, vehicle))
        for snapshot in range(parameters.snapshots):
            yield _problem(parameters, sites, car, vehicle, snapshot)


def draw_sites(rng: np.random.Generator) -> Sites:
    """A roadside unit of type c at every crossing, and edge devices anywhere."""
    at = crossings()
    types = [kind for kind, count in EDGE.items() for _ in range(count)]
    edge = rng.uniform(0, (CROSSINGS - 1) * BLOCK_M, (len(types), 2))
    names = [f"rsu{i:02d}" for i in range(len(at))] + [f"edge{i:02d}" for i in range(len(types))]
    return Sites(tuple(names), ("c",) * len(at) + tuple(types), np.concatenate([at, edge]))


def _problem(parameters: Cav, sites: Sites, car: Car, vehicle: int, snapshot: int) -> Problem:
    here = car.at(snapshot * EVERY_S)
    distance = np.hypot(*(sites.position - here).T)
    near = np.flatnonzero(distance <= parameters.reach).tolist()
    units = [
        sites.names[i]
        for i in near
        if sites.names[i].startswith("rsu") and distance[i] <= INTERACTS_M
    ]
    facts: dict[str, Attribute] = {
        "family": "cav",
        "vehicle": vehicle,
        "snapshot": snapshot,
        "split": "test" if vehicle % 2 else "train",
    }
    graph, pin = _pipeline(f"cav{vehicle:02d}-{snapshot:02d}", units, parameters, facts)
    types = ["a", *(sites.types[i] for i in near)]
    names = [CAR, *(sites.names[i] for i in near)]
    cluster = _cluster(names, types, np.concatenate([here[None], sites.position[near]]))
    kinds = graph.operators.kind
    seconds, overhead = _seconds(kinds, types), moving(kinds, types)
    return Problem(graph, cluster, Constraints(pin=pin), seconds, overhead)


def _pipeline(
    name: str, units: list[str], parameters: Cav, facts: dict[str, Attribute]
) -> tuple[StreamGraph, dict[str, str]]:
    """Task graph of a car and the roadside units around it, and where sensors are."""
    tasks, pin = TaskList(), {}

    def sense(name: str, device: str, size: int) -> int:
        pin[name] = device
        return tasks.add(name, "sensor", [], 0, size)

    def work(name: str, kind: str, inputs: list[int]) -> int:
        task = MEASURED[kind]
        return tasks.add(name, kind, inputs, task.ms[-1] * 1e3, task.message, task.static)

    image = sense(f"{CAR}/camera", CAR, parameters.frame)
    scan = sense(f"{CAR}/lidar", CAR, parameters.scan)
    detections = [work(f"{CAR}/image", "camera", [image]), work(f"{CAR}/scan", "lidar", [scan])]
    fused, plans = work(f"{CAR}/fusion", "cav-fusion", detections), []
    for unit in units:
        images = [sense(f"{unit}/camera{i}", unit, parameters.frame) for i in range(CAMERAS)]
        detections = [work(f"{unit}/image{i}", "camera", [row]) for i, row in enumerate(images)]
        plans.append(work(f"{unit}/fusion", "rsu-fusion", [fused, *detections]))
    pin[f"{CAR}/plan"] = CAR
    tasks.add(f"{CAR}/plan", "plan", plans or [fused], 0, 0)
    return tasks.graph(name, facts, {kind: frozenset({"gpu"}) for kind in NEED_GPU}), pin


def _cluster(names: list[str], types: list[str], position: Floats) -> Cluster:
    apart = np.hypot(*np.moveaxis(position[:, None] - position, -1, 0))
    bandwidth = np.rint(MBPS * 1e6 * np.exp(-apart / DECAY_M)).clip(1)
    totals = {kind: sum(task.ms[i] for task in MEASURED.values()) for i, kind in enumerate(TYPES)}
    devices = Devices(
        names,
        mips=[round(totals["c"] / totals[kind], 3) for kind in types],
        tags=[{"gpu", f"type-{kind}"} for kind in types],
    )
    return Cluster(devices, bandwidth, np.zeros_like(apart))


def _seconds(kinds: Sequence[str], types: list[str]) -> Floats:
    """Table 1: seconds of every task on every device; sensors take none."""
    columns = [TYPES.index(kind) for kind in types]
    rows = [MEASURED.get(kind, NOTHING).ms for kind in kinds]
    return np.array(rows, np.float64)[:, columns] / 1e3
