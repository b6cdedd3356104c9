"""Language models of ENAS cells in forty groups: the deep-learning graphs of GiPH, section 5.2.

Ten designs of recurrent cells, each unrolled for 20 to 30 words with batches of 80 to 150: some 200
to 300 operations, of which the cheapest with one predecessor join it until 40 groups are left. All
are placed on one network of eight unequal devices, with links of 1 Gbps on average: sending costs
about a third of computing, slightly less than in GiPH's other settings.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamplace.families.draws import THOUSANDTHS, around, short, thousandths
from streamplace.families.parameters import check, parameter
from streamplace.families.registry import family
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Devices
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import generator
from streamplace.papers.families.giph import symmetric
from streamplace.papers.families.neural import Cell, draw_cell, ends_of, microseconds
from streamplace.papers.families.tasks import ELEMENT_BYTES, grouped, task_graph, tasks_of

NODES = 8
STEPS, BATCHES = (20, 30), (80, 150)
HIDDEN, VOCABULARY = 1000, 10_000
BYTES_PER_S, DELAY_US, SPREAD = 125e6, 1000, 0.8
MAX_UNMERGED = STEPS[1] + 3
"""Groups of 30 words that cannot merge further: a cell per word, two inputs, and the loss."""
_NETWORK, _DESIGN, _GRAPH = range(3)


@dataclass(frozen=True, slots=True)
class EnasPtb:
    """Parameters of the enas-ptb family."""

    designs: int = parameter(10, "number of recurrent cells", least=1, most=10_000)
    copies: int = parameter(
        30,
        "number of graphs per cell; half of them belong to the split train",
        least=1,
        most=10_000,
    )
    groups: int = parameter(
        40,
        "number of groups of operations per graph; a graph of fewer operations keeps all of them",
        least=MAX_UNMERGED,
        most=10_000,
    )
    devices: int = parameter(8, "number of devices", least=1, most=1024)

    def __post_init__(self) -> None:
        check(self)

    @property
    def n_graphs(self) -> int:
        """Number of problems."""
        return self.designs * self.copies


@family("enas-ptb", EnasPtb)
def enas_ptb(parameters: EnasPtb, seed: int) -> Iterator[Problem]:
    """Language models of random ENAS cells, in 40 groups, on 8 unequal devices, after GiPH."""
    cluster = _network(parameters.devices, generator(seed, _NETWORK))
    for design in range(parameters.designs):
        cell = draw_cell(NODES, generator(seed, _DESIGN, design))
        for copy in range(parameters.copies):
            rng = generator(seed, _GRAPH, design, copy)
            steps, batch = (int(rng.integers(*r, endpoint=True)) for r in (STEPS, BATCHES))
            facts: dict[str, Attribute] = {
                "family": "enas-ptb",
                "design": design,
                "split": "train" if 2 * copy < parameters.copies else "test",
            }
            name = f"enas{design}-s{steps}-b{batch}-{copy:02d}"
            yield Problem(_graph(name, cell, (steps, batch), parameters.groups, facts), cluster)


def _network(devices: int, rng: np.random.Generator) -> Cluster:
    """Speeds, bandwidths and delays as unequal as in GiPH's networks."""
    shape = (devices, devices)
    delay_us = symmetric(rng.uniform(0, 2 * DELAY_US, shape))
    per_byte = symmetric(around(rng, 1 / BYTES_PER_S, SPREAD, shape)) + np.eye(devices)
    speed = short(around(rng, 1.0, SPREAD, devices))
    names = [f"d{d}" for d in range(devices)]
    latency = thousandths(delay_us) / (THOUSANDTHS * 1e6)
    return Cluster(Devices(names, mips=speed), np.rint(8 / per_byte), latency)


def _graph(
    name: str, cell: Cell, size: tuple[int, int], groups: int, facts: dict[str, Attribute]
) -> StreamGraph:
    names, flops, edges = _unrolled(cell, *size)
    made = grouped([microseconds(work) for work in flops], edges, groups)
    tasks = tasks_of([names[v] for v in made.first], made.cost)
    return task_graph(name, tasks, list(made.payload), list(made.payload.values()), facts)


def _unrolled(
    cell: Cell, steps: int, batch: int
) -> tuple[list[str], list[float], dict[tuple[int, int], float]]:
    """Names and FLOPs of the operations, and bytes between them; the last one is the loss."""
    state, width = batch * HIDDEN, len(cell) + 2
    parts = [*(f"n{i}" for i in range(len(cell))), "state", "loss"]
    work = [*[4.0 * state * HIDDEN] * len(cell), 1.0 * state, 2.0 * state * VOCABULARY]
    names, flops = ["words", "zero"], [1.0 * state, 0.0]
    edges: dict[tuple[int, int], float] = {}
    before = 1
    for t in range(steps):
        names += [f"step{t:02d}/{part}" for part in parts]
        flops += work
        first = 2 + t * width
        average, loss = first + width - 2, first + width - 1
        inner = [(0, first), (before, first), (average, loss)]
        inner += [(first + u, first + v) for v, (u, _) in enumerate(cell) if v]
        inner += [(first + u, average) for u in ends_of(cell)]
        edges |= dict.fromkeys(inner, ELEMENT_BYTES * state)
        before = average
    last = len(names) - 1
    edges |= {(loss, last): ELEMENT_BYTES * batch for loss in range(1 + width, last, width)}
    return names, flops, edges
