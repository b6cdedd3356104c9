"""GiPH's benchmark: random task graphs on random device networks, a problem each.

After section 5.1 and appendix B.2 of the GiPH paper, with the parameters and the seeds of its
published settings: which task graphs and which networks are for training and which for testing.
A task graph has layers of random width, randomly connected. Of a device network, speeds, links and
hardware are drawn. The setting `grid` is the wider grid of GiPH's notebook, where every problem
draws all its parameters anew: computing of 1 to 20 s a task meets transfers of 1 to 100 s, so that
communication often dominates.

The paper's numbers bear no units. Here a compute of 1 is a million instructions, a speed of 1 is
1 MIPS and a bandwidth of 1 is one byte per second, so that a time of 1 is one second.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import SettingError
from streamplace.families.draws import THOUSANDTHS, around, one_of, short, thousandths
from streamplace.families.parameters import check, parameter
from streamplace.families.registry import family
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Devices
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import generator
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


GRID = "grid"
MAX_TASKS = 70
_SPREADS = (0.2, 0.5, 0.8)


def grid_problem(name: str, split: str, rng: np.random.Generator) -> Problem:
    """Draw a problem of 3 to 70 tasks on 5, 10 or 20 devices."""
    shape, layers = _program_shape(rng)
    network = NetworkShape(
        devices=one_of(rng, (5, 10, 20)),
        support=one_of(rng, (0.2, 0.4, 0.6)),
        bandwidth_spread=one_of(rng, _SPREADS),
        speed_spread=one_of(rng, _SPREADS),
    )
    attributes: dict[str, Attribute] = {
        "family": "giph",
        "setting": GRID,
        "compute": shape.compute,
        "bytes": shape.bytes,
        "split": split,
    }
    graph = draw_program(name, shape, layers, rng, attributes)
    return Problem(graph, draw_network(network, rng).cluster())


def _program_shape(rng: np.random.Generator) -> tuple[ProgramShape, Rows]:
    """A shape and its layers, drawn again while they hold too many tasks."""
    while True:
        shape = ProgramShape(
            v=one_of(rng, (10, 20, 30)),
            alpha=one_of(rng, (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)),
            connect=one_of(rng, (0.1, 0.2, 0.4, 0.8)),
            compute=one_of(rng, (5.0, 50.0, 100.0)),
            bytes=one_of(rng, (100.0, 1000.0, 10_000.0)),
            compute_spread=one_of(rng, _SPREADS),
            bytes_spread=one_of(rng, _SPREADS),
        )
        layers = draw_layers(shape, rng)
        if len(layers) <= MAX_TASKS:
            return shape, layers


SHAPES = tuple(
    ProgramShape(v, alpha, connect)
    for v, connect, alpha in product((10, 15), (0.1, 0.2), (0.1, 0.2, 0.3))
)
"""The twelve shapes of task graphs that every program seed makes one of."""
SPLITS = ("train", "test")
GRID_PROBLEMS = 100
_NETWORK, _PROGRAM, _PAIRING, _GRID = range(4)


class Setting(NamedTuple):
    """Seeds of a setting."""

    devices: tuple[int, int]  # fewest and most devices of a network
    networks: dict[str, range]  # seeds of each split
    programs: dict[str, range]  # seeds of each split

    def max_problems(self, split: str) -> int:
        """Different problems of a split: every task graph on every network."""
        return self.graphs(split) * len(self.networks[split])

    def graphs(self, split: str) -> int:
        """Task graphs of a split."""
        return len(SHAPES) * len(self.programs[split])


SETTINGS = {
    "single_network": Setting(
        (20, 20),
        {"train": range(1, 2), "test": range(1, 2)},
        {"train": range(25), "test": range(25, 50)},
    ),
    "multiple_networks": Setting(
        (20, 20),
        {"train": range(10), "test": range(10)},
        {"train": range(10), "test": range(25, 35)},
    ),
    "multiple_networks_diff": Setting(
        (15, 24),
        {"train": range(15), "test": range(20, 30)},
        {"train": range(15), "test": range(25, 35)},
    ),
}


@dataclass(frozen=True, slots=True)
class Giph:
    """Parameters of the giph family.

    Examples
    --------
    >>> Giph().n_graphs, Giph("grid").n_graphs, Giph(problems=500).n_graphs
    (240, 200, 1000)
    """

    setting: str = parameter(
        "multiple_networks", f"the paper's setting, or wider ranges: {', '.join([*SETTINGS, GRID])}"
    )
    problems: int | None = parameter(
        None,
        "number of problems per split (default: every task graph once; for the grid, 100)",
        least=1,
        most=100_000,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.setting == GRID:
            return
        if self.setting not in SETTINGS:
            raise SettingError(
                f"there is no setting {quoted(self.setting)}; name one of "
                f"{', '.join([*SETTINGS, GRID])}"
            )
        for split in SPLITS:
            limit = SETTINGS[self.setting].max_problems(split)
            if self.problems_of(split) > limit:
                raise SettingError(
                    f"problems is {self.problems}; setting {self.setting} has {limit} for the "
                    f"split {split} (every task graph on every network)"
                )

    @property
    def n_graphs(self) -> int:
        """Number of problems."""
        return sum(map(self.problems_of, SPLITS))

    def problems_of(self, split: str) -> int:
        """Number of problems of a split."""
        if self.setting == GRID:
            return self.problems or GRID_PROBLEMS
        return self.problems or SETTINGS[self.setting].graphs(split)


@family("giph", Giph)
def giph(parameters: Giph, seed: int) -> Iterator[Problem]:
    """Random task graphs on random networks of devices, after GiPH: whole problems.

    Task graph and network depend on the seed and their own numbers only: the same task graph, or
    the same network, is in any data set that has its number.
    """
    for split in SPLITS:
        count = parameters.problems_of(split)
        make = _grid if parameters.setting == GRID else _problems
        yield from make(parameters.setting, split, count, seed)


def _grid(name: str, split: str, count: int, seed: int) -> Iterator[Problem]:
    for k in range(count):
        rng = generator(seed, _GRID, SPLITS.index(split), k)
        yield grid_problem(f"{name}-{split}-{k:03d}", split, rng)


def _problems(name: str, split: str, count: int, seed: int) -> Iterator[Problem]:
    """So many problems: every task graph once, then every one again on another network."""
    setting = SETTINGS[name]
    pairs = list(product(setting.programs[split], range(len(SHAPES))))
    clusters = {n: _cluster(setting, n, seed) for n in setting.networks[split]}
    for k in range(count):
        program, shape = pairs[k % len(pairs)]
        order = generator(seed, _PAIRING, program, shape).permutation(setting.networks[split])
        network = int(order[k // len(pairs)])
        graph = _program(name, split, (program, shape, network), seed)
        yield Problem(graph, clusters[network])


def _cluster(setting: Setting, number: int, seed: int) -> Cluster:
    rng = generator(seed, _NETWORK, *setting.devices, number)
    devices = int(rng.integers(*setting.devices, endpoint=True))
    return draw_network(NetworkShape(devices), rng).cluster()


def _program(setting: str, split: str, numbers: tuple[int, int, int], seed: int) -> StreamGraph:
    """Task graph of a program seed and a shape, named after these and its network."""
    program, number, network = numbers
    shape = SHAPES[number]
    rng = generator(seed, _PROGRAM, number, program)
    name = f"v{shape.v}-a{shape.alpha:g}-c{shape.connect:g}-p{program:02d}-n{network:02d}"
    attributes: dict[str, Attribute] = {
        "family": "giph",
        "setting": setting,
        "v": shape.v,
        "alpha": shape.alpha,
        "connect": shape.connect,
        "split": split,
    }
    return draw_program(name, shape, draw_layers(shape, rng), rng, attributes)
