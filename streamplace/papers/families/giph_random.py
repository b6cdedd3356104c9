"""GiPH's random task graphs and device networks (appendix B.2 of its paper).

A task graph has layers of random width, randomly connected. Of a device network, speeds, links and
hardware are drawn.

The paper's numbers bear no units. Here a compute of 1 is a million instructions, a speed of 1 is
1 MIPS and a bandwidth of 1 is one byte per second, so that a time of 1 is one second.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamplace.families.draws import THOUSANDTHS, around, short, thousandths
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Devices
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.papers.families.tasks import INSTRUCTIONS, task_graph, tasks_of

TYPES = 5
SPEED, BANDWIDTH, DELAY = 5.0, 100.0, 10.0
"""Mean speed of a device, bytes/s and seconds of a link."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """Parameters of a random device network."""

    devices: int = 20
    support: float = 0.2  # probability that a device has a hardware type
    bandwidth_spread: float = 0.8  # the inverses are uniform on mean · (1 ± spread / 2)
    speed_spread: float = 0.8  # values are uniform on mean · (1 ± spread / 2)


@dataclass(frozen=True, slots=True)
class DeviceNetwork:
    """Devices and links, as the paper writes them."""

    names: tuple[str, ...]  # [D] of the devices
    speed: Floats  # [D] compute per second
    has: NDArray[np.bool_]  # [D, TYPES] whether a device has a hardware type
    delay: Floats  # [D, D] seconds, symmetric
    seconds_per_byte: Floats  # [D, D] of a link, symmetric

    def cluster(self) -> Cluster:
        """Cluster of these devices."""
        tags = [[hardware(kind) for kind in np.flatnonzero(row).tolist()] for row in self.has]
        remote = ~np.eye(len(self.names), dtype=bool)
        bandwidth = np.full(remote.shape, BANDWIDTH * 8)
        bandwidth[remote] = short(8 / self.seconds_per_byte[remote])
        devices = Devices(self.names, mips=short(self.speed), tags=tags)
        return Cluster(devices, bandwidth, short(self.delay))


def hardware(kind: int) -> str:
    """Tag of a hardware type."""
    return f"h{kind}"


def draw_network(shape: NetworkShape, rng: np.random.Generator) -> DeviceNetwork:
    """Draw a network in which every device has a hardware type and every type a device.

    In the paper's code a type may be on no device, and then a task may run nowhere; here it is
    given to a device drawn at random.
    """
    size = shape.devices
    delay = symmetric(rng.uniform(0, 2 * DELAY, (size, size)))
    inverse = symmetric(around(rng, 1 / BANDWIDTH, shape.bandwidth_spread, (size, size)))
    speed = around(rng, SPEED, shape.speed_spread, size)
    has = draw_hardware(shape.support, size, rng)
    missing = np.flatnonzero(~has.any(axis=0))
    has[rng.integers(size, size=len(missing)), missing] = True
    return DeviceNetwork(tuple(f"d{d}" for d in range(size)), speed, has, delay, inverse)


def draw_hardware(support: float, size: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hardware of some devices [size, TYPES]; each has at least one type."""
    has = rng.random((size, TYPES)) < support
    only = rng.integers(TYPES, size=size)
    bare = ~has.any(axis=1)
    has[bare, only[bare]] = True
    return has


def symmetric(drawn: Floats) -> Floats:
    """Matrix with the upper half of the drawn one in both its halves, and 0 between."""
    upper = np.triu(drawn, 1)
    return np.asarray(upper + upper.T)


@dataclass(frozen=True, slots=True)
class ProgramShape:
    """Parameters of a random task graph."""

    v: int = 10  # size parameter, which is not the number of tasks
    alpha: float = 0.1  # shape: there are √v/α layers of α√v tasks on average
    connect: float = 0.1  # probability of an edge from a task to one of a later layer
    compute: float = 100.0  # mean over tasks
    bytes: float = 100.0  # mean over edges
    compute_spread: float = 0.4  # values are uniform on mean · (1 ± spread / 2)
    bytes_spread: float = 0.4


def draw_layers(shape: ProgramShape, rng: np.random.Generator) -> Rows:
    """Layer of every task; the first layer holds the entry alone, and the last one the exit.

    >>> draw_layers(ProgramShape(10, 1.0), np.random.default_rng(0)).tolist()
    [0, 1, 1, 2, 3, 4, 4, 4, 4, 4, 4, 5]
    """
    root = math.sqrt(shape.v)
    inner = math.ceil(rng.uniform(0.8, 1.2) * root / shape.alpha)
    widths = np.ceil(rng.uniform(0, 2 * shape.alpha * root, inner)).clip(1).astype(np.int64)
    return np.repeat(np.arange(inner + 2), [1, *widths.tolist(), 1])


def draw_program(
    name: str,
    shape: ProgramShape,
    layer: Rows,
    rng: np.random.Generator,
    attributes: Mapping[str, Attribute],
) -> StreamGraph:
    """Draw edges and costs of the tasks in these layers."""
    size = len(layer)
    edges = _edges(layer, shape.connect, rng)
    compute = around(rng, shape.compute, shape.compute_spread, size)
    needs = rng.integers(TYPES, size=size).tolist()
    payload = around(rng, shape.bytes, shape.bytes_spread, len(edges))
    tasks = tasks_of(
        [f"t{i}" for i in range(size)],
        ipt=thousandths(compute) * (INSTRUCTIONS / THOUSANDTHS),
        requires=[frozenset({hardware(kind)}) for kind in needs],
    )
    return task_graph(name, tasks, edges, thousandths(payload) / THOUSANDTHS, attributes)


def _edges(layer: Rows, connect: float, rng: np.random.Generator) -> Rows:
    """Sorted edges [M, 2]: random ones, a path through all layers, and one for each missing end.

    A task without successor or predecessor gets an edge to a random task of a later layer, or from
    one of an earlier layer. Other random edges never lead to the exit.
    """
    size = len(layer)
    joined = (rng.random((size, size)) < connect) & (layer[:, None] < layer)
    joined[:, -1] = False
    path = [int(rng.choice(np.flatnonzero(layer == i))) for i in range(int(layer[-1]) + 1)]
    joined[path[:-1], path[1:]] = True
    for task in range(1, size - 1):
        if not joined[task].any():
            joined[task, rng.choice(np.flatnonzero(layer > layer[task]))] = True
        if not joined[:, task].any():
            joined[rng.choice(np.flatnonzero(layer < layer[task])), task] = True
    return np.argwhere(joined)
