"""GiPH's benchmark: random task graphs on random device networks, a problem each.

After section 5.1 and appendix B.2 of the GiPH paper, with the parameters and the seeds of its
published settings: which task graphs and which networks are for training and which for testing.
Times are the paper's, in seconds. The setting `grid` is the wider grid of GiPH's notebook, where
every problem draws all its parameters anew: computing of 1 to 20 s a task meets transfers of 1 to
100 s, so that communication often dominates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np

from streamplace.errors import SettingError
from streamplace.families.draws import generator
from streamplace.families.parameters import check, parameter
from streamplace.families.registry import family
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem
from streamplace.papers.families.giph_random import (
    DeviceNetwork,
    NetworkShape,
    ProgramShape,
    Rows,
    draw_layers,
    draw_network,
    draw_program,
)

GRID = "grid"
MOST_TASKS = 70
_SPREADS = (0.2, 0.5, 0.8)
T = TypeVar("T")


def grid_problem(name: str, split: str, rng: np.random.Generator) -> Problem:
    """Draw a problem of 3 to 70 tasks on 5, 10 or 20 devices."""
    shape, layers = _program_shape(rng)
    network = NetworkShape(
        devices=_one_of(rng, (5, 10, 20)),
        support=_one_of(rng, (0.2, 0.4, 0.6)),
        bandwidth_spread=_one_of(rng, _SPREADS),
        speed_spread=_one_of(rng, _SPREADS),
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
            v=_one_of(rng, (10, 20, 30)),
            alpha=_one_of(rng, (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)),
            connect=_one_of(rng, (0.1, 0.2, 0.4, 0.8)),
            compute=_one_of(rng, (5.0, 50.0, 100.0)),
            bytes=_one_of(rng, (100.0, 1000.0, 10_000.0)),
            compute_spread=_one_of(rng, _SPREADS),
            bytes_spread=_one_of(rng, _SPREADS),
        )
        layers = draw_layers(shape, rng)
        if len(layers) <= MOST_TASKS:
            return shape, layers


def _one_of(rng: np.random.Generator, values: tuple[T, ...]) -> T:
    return values[int(rng.integers(len(values)))]


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

    def most(self, split: str) -> int:
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
        "multiple_networks",
        f"the paper's setting, or wider ranges: {', '.join([*SETTINGS, GRID])}",
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
                f"there is no setting {quoted(self.setting)}. Known: {', '.join([*SETTINGS, GRID])}"
            )
        for split in SPLITS:
            most = SETTINGS[self.setting].most(split)
            if self.problems_of(split) > most:
                raise SettingError(
                    f"problems is {self.problems}; setting {self.setting} has {most} for the "
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
    """Every task graph once, then every one again on another network, as many as asked for."""
    setting = SETTINGS[name]
    pairs = list(product(setting.programs[split], range(len(SHAPES))))
    clusters = {n: network_of(setting, n, seed).cluster() for n in setting.networks[split]}
    for k in range(count):
        program, shape = pairs[k % len(pairs)]
        order = generator(seed, _PAIRING, program, shape).permutation(setting.networks[split])
        network = int(order[k // len(pairs)])
        graph = program_of(name, split, (program, shape, network), seed)
        yield Problem(graph, clusters[network])


def network_of(setting: Setting, number: int, seed: int) -> DeviceNetwork:
    """Network of a number."""
    rng = generator(seed, _NETWORK, *setting.devices, number)
    devices = int(rng.integers(*setting.devices, endpoint=True))
    return draw_network(NetworkShape(devices), rng)


def program_of(setting: str, split: str, numbers: tuple[int, int, int], seed: int) -> StreamGraph:
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
