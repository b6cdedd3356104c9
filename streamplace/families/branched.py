"""The branched benchmark: one source, k equal branches of d stages, one sink.

Forty topologies and 3,150 graphs, after section 4 of the DREAM paper. Every graph needs exactly V
devices at full rate. The branches of a graph have equal CPU stage by stage, but every operator
draws its own payload; with both, METIS reaches its throughput on the published graphs. Instructions
and payloads are whole numbers, which keeps the data set small and reproducible.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from streamplace.errors import SettingError
from streamplace.families.parameters import check, parameter
from streamplace.families.registry import family
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import Operators
from streamplace.model.random_numbers import generator
from streamplace.model.streams import Streams

TEST_EVERY = 5
"""Consecutive copies, one of which is for testing."""


class Topology(NamedTuple):
    """k branches of d stages, with CPU for V devices."""

    branches: int
    depth: int
    devices: int


_STANDARD = {
    2: "1x2 1x3 1x4 1x5 1x6 1x7 1x8 1x9 1x10 2x2 3x2 4x2 5x2 2x3 3x3 2x4 2x5",
    3: "2x6 6x2 3x4 4x3 5x3 3x5 2x7 7x2",
    4: "3x6 6x3 5x4 4x5 2x10 10x2 7x3 3x7",
    5: "4x6 6x4 5x5 3x8 8x3 2x12 12x2",
}
STANDARD = tuple(
    Topology(int(branches), int(depth), devices)
    for devices, shapes in _STANDARD.items()
    for branches, depth in (shape.split("x") for shape in shapes.split())
)
"""The forty topologies of the benchmark."""


@dataclass(frozen=True, slots=True)
class Branched:
    """Parameters of the branched family.

    Examples
    --------
    >>> Branched().n_graphs, Branched(branches=3, depth=4, devices=3).n_graphs
    (3150, 100)
    """

    branches: int | None = parameter(
        None,
        "number of branches, k; give depth and devices as well to generate only that topology",
        least=1,
        most=1000,
    )
    depth: int | None = parameter(None, "number of stages per branch, d", least=1, most=1000)
    devices: int | None = parameter(
        None, "number of devices whose CPU the graph fills, V", least=1, most=10_000
    )
    copies: int | None = parameter(
        None,
        "number of graphs per topology (default: 50 up to V = 2, else 100)",
        least=1,
        most=1_000_000,
    )
    payload: int = parameter(62_500, "maximum bytes per output tuple", least=1, most=10**12)
    rate: float = parameter(1e4, "tuples/s of the source", least=1e-3, most=1e9)
    mips: float = parameter(2500.0, "speed of a device in MIPS", least=1e-3, most=1e6)
    endpoint_ipt: int = parameter(
        10_000, "instructions per tuple of source and sink", least=0, most=10**12
    )

    def __post_init__(self) -> None:
        check(self)
        are_set = [value is not None for value in (self.branches, self.depth, self.devices)]
        if any(are_set) and not all(are_set):
            raise SettingError(
                "branches, depth and devices belong together; give all three, or none for the "
                "standard forty topologies"
            )
        for topology in self.topologies:
            self._check_room(topology)

    @property
    def topologies(self) -> tuple[Topology, ...]:
        """The topology of the parameters, or the standard forty."""
        if self.branches is None or self.depth is None or self.devices is None:
            return STANDARD
        return (Topology(self.branches, self.depth, self.devices),)

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return sum(self.copies_of(topology) for topology in self.topologies)

    @property
    def device_ipt(self) -> float:
        """Instructions per source tuple that fill one device."""
        return self.mips * 1e6 / self.rate

    def copies_of(self, topology: Topology) -> int:
        """Number of graphs of a topology."""
        return self.copies or (50 if is_small(topology) else 100)

    def stages_ipt(self, topology: Topology) -> int:
        """Instructions per source tuple that the stages share."""
        return round(topology.devices * self.device_ipt) - 2 * self.endpoint_ipt

    def _check_room(self, topology: Topology) -> None:
        branches, depth, devices = topology
        least, most = depth, math.floor(branches * self.device_ipt) * depth
        if self.endpoint_ipt > self.device_ipt or not least <= self.stages_ipt(topology) <= most:
            raise SettingError(
                f"{branches} × {depth} stages, a source and a sink cannot fill "
                f"{devices} devices of {self.device_ipt:g} instructions per tuple without an "
                "operator that exceeds one; change branches, depth, devices or endpoint_ipt"
            )


@family("branched", Branched)
def branched(parameters: Branched, seed: int, *, start: int = 0) -> Iterator[StreamGraph]:
    """Source, k equal branches of d stages, sink: the benchmark of the DREAM paper.

    A graph depends only on the seed, its topology and its number: a topology has the same graphs by
    itself as among all forty.
    """
    every = (
        (topology, copy)
        for topology in parameters.topologies
        for copy in range(parameters.copies_of(topology))
    )
    for topology, copy in islice(every, start, None):
        yield _graph(parameters, topology, copy, seed)


def is_small(topology: Topology) -> bool:
    """Whether a topology has at most two devices, for even stages and lighter payloads."""
    return topology.devices <= 2


def split_of(topology: Topology, copy: int, seed: int) -> str:
    """``"test"`` for one copy drawn of every five, ``"train"`` for the others."""
    block, place = divmod(copy, TEST_EVERY)
    chosen = generator(seed, *topology, 1, block).integers(TEST_EVERY)
    return "test" if place == chosen else "train"


def stage_ipt(uniforms: list[float], spread: float, total: int, most: int) -> list[int]:
    """Whole instructions of each stage: normalised uniforms, pulled towards equal shares.

    share_j = 1/d + s · (u_j/Σu - 1/d), where s is ``spread`` times the largest factor, up to 1,
    that keeps every stage at or below ``most``. Rounding by largest remainder makes the sum exact.

    >>> stage_ipt([0.5, 0.25, 0.25], 1.0, 1001, 1001)
    [501, 250, 250]
    >>> stage_ipt([0.9, 0.1], 1.0, 1000, 600)
    [600, 400]
    """
    equal, scale = 1 / len(uniforms), math.fsum(uniforms)
    excess = [u / scale - equal for u in uniforms]
    room, largest = most / total - equal, max(excess)
    factor = spread * (max(room, 0.0) / largest if largest > room else 1.0)
    quotas = [(equal + factor * e) * total for e in excess]
    whole = [min(math.floor(quota), most) for quota in quotas]
    by_remainder = sorted(range(len(quotas)), key=lambda j: (whole[j] - quotas[j], j))
    for j in by_remainder[: total - sum(whole)]:
        whole[j] += 1
    return whole


def _graph(parameters: Branched, topology: Topology, copy: int, seed: int) -> StreamGraph:
    k, d, devices = topology
    rng = generator(seed, *topology, 0, copy)
    uniforms = (1.0 - rng.random(d)).tolist()
    spread, ceiling = 1.0 - rng.random(), int(rng.integers(1, parameters.payload, endpoint=True))
    if not is_small(topology):
        spread, ceiling = 1.0, parameters.payload
    most = math.floor(k * parameters.device_ipt)
    stages = stage_ipt(uniforms, spread, parameters.stages_ipt(topology), most)
    payload = rng.integers(1, ceiling, size=k * d + 1, endpoint=True).tolist()
    ends = parameters.endpoint_ipt
    operators = Operators(
        ("source", *(f"b{b}s{s}" for b in range(1, k + 1) for s in range(1, d + 1)), "sink"),
        ipt=np.array([ends, *stages * k, ends], np.float64),
        payload=np.array([*payload, 0], np.float64),
        rate=np.array([parameters.rate] + [0.0] * (k * d + 1)),
        kind=("source", *("work",) * (k * d), "sink"),
    )
    return StreamGraph(
        f"b{k}x{d}-v{devices}-{copy:03d}",
        operators,
        _streams(operators, k, d),
        {
            "family": "branched",
            "branches": k,
            "depth": d,
            "devices": devices,
            "split": split_of(topology, copy, seed),
        },
    )


def _streams(operators: Operators, k: int, d: int) -> Streams:
    """Streams branch by branch; the source splits its tuples evenly over the branches."""
    stages = np.arange(1, k * d + 1).reshape(k, d)
    first, last = np.zeros((k, 1), int), np.full((k, 1), k * d + 1)
    selectivity = np.ones((k, d + 1))
    selectivity[:, 0] = 1 / k
    return Streams(
        operators,
        np.hstack([first, stages]).ravel(),
        np.hstack([stages, last]).ravel(),
        selectivity=selectivity.ravel(),
    )
