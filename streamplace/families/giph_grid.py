"""The wider grid of GiPH's notebook: every problem draws all its parameters anew.

Computing of 1 to 20 s a task meets transfers of 1 to 100 s, so that communication often dominates.
"""

from typing import TypeVar

import numpy as np

from streamplace.families.giph_networks import NetworkShape, draw_network
from streamplace.families.giph_programs import ProgramShape, Rows, draw_layers, draw_program
from streamplace.model.graph import Attribute
from streamplace.model.problem import Problem

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
