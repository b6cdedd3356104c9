"""GiPH's changing networks: devices drop out and weaker ones come in, step by step.

After section 5.1 and Figure 6 of the GiPH paper. A network of 20 devices changes again and again:
two devices leave, four more leave, two new ones join, then four. New devices have new names, lower
speeds and lower bandwidths. The same task graphs have to be placed after every change, so that a
study can follow how placements adapt from step to step, and which tasks move.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamplace.families.draws import around
from streamplace.families.parameters import check, parameter
from streamplace.families.registry import family
from streamplace.model.graph import Attribute
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import generator
from streamplace.papers.families.giph import (
    BANDWIDTH,
    DELAY,
    SPEED,
    DeviceNetwork,
    NetworkShape,
    ProgramShape,
    draw_hardware,
    draw_layers,
    draw_network,
    draw_program,
    symmetric,
)

CHANGES = (-2, -4, 2, 4)
"""Devices that leave or join, change after change."""
PROGRAM = ProgramShape(10, 0.3, 0.1, compute_spread=0.2, bytes_spread=0.2)
NETWORK = NetworkShape()
_NETWORK, _PROGRAM = range(2)


@dataclass(frozen=True, slots=True)
class GiphAdaptive:
    """Parameters of the giph-adaptive family."""

    programs: int = parameter(20, "number of task graphs", least=1, most=10_000)
    changes: int = parameter(20, "number of changes of the network", least=0, most=10_000)
    capacity: float = parameter(
        0.5,
        "speed and bandwidth of new devices, relative to the mean of the others",
        least=1e-3,
        most=1,
    )

    def __post_init__(self) -> None:
        check(self)

    @property
    def n_graphs(self) -> int:
        """Number of problems: every task graph before and after each change."""
        return self.programs * (1 + self.changes)


@family("giph-adaptive", GiphAdaptive)
def giph_adaptive(parameters: GiphAdaptive, seed: int) -> Iterator[Problem]:
    """Task graphs of the family giph on a network that changes in steps, after GiPH.

    All steps of a task graph come one after the other; its number and the step stand in the name
    and in the attributes. Neither depends on how many there are.
    """
    networks = changing_networks(parameters.capacity, generator(seed, _NETWORK))
    clusters = [next(networks).cluster() for _ in range(1 + parameters.changes)]
    for program in range(parameters.programs):
        for step, cluster in enumerate(clusters):
            rng = generator(seed, _PROGRAM, program)
            facts: dict[str, Attribute] = {
                "family": "giph-adaptive",
                "program": program,
                "step": step,
            }
            name, layers = f"p{program:02d}-step{step:02d}", draw_layers(PROGRAM, rng)
            yield Problem(draw_program(name, PROGRAM, layers, rng, facts), cluster)


def changing_networks(capacity: float, rng: np.random.Generator) -> Iterator[DeviceNetwork]:
    """Endless sequence of networks: the first, and the network after each change."""
    network, named = draw_network(NETWORK, rng), NETWORK.devices
    while True:
        for change in CHANGES:
            yield network
            if change < 0:
                network = _without(network, -change, rng)
            else:
                names = tuple(f"d{d}" for d in range(named, named + change))
                network = _with(network, names, capacity, rng)
                named += change


def _without(network: DeviceNetwork, leaving: int, rng: np.random.Generator) -> DeviceNetwork:
    """Let devices leave, drawn until the remaining ones have all hardware among them."""
    size = len(network.names)
    while True:
        stay = np.sort(rng.choice(size, size - leaving, replace=False))
        if network.has[stay].any(axis=0).all():
            break
    names = tuple(network.names[d] for d in stay.tolist())
    pairs = np.ix_(stay, stay)
    return DeviceNetwork(
        names,
        network.speed[stay],
        network.has[stay],
        network.delay[pairs],
        network.seconds_per_byte[pairs],
    )


def _with(
    network: DeviceNetwork, names: tuple[str, ...], capacity: float, rng: np.random.Generator
) -> DeviceNetwork:
    """Let weaker devices join, over slower links."""
    old, new = len(network.names), len(names)
    shape = (old + new, old + new)
    delay = symmetric(rng.uniform(0, 2 * DELAY, shape))
    per_byte = symmetric(around(rng, 1 / (capacity * BANDWIDTH), NETWORK.bandwidth_spread, shape))
    delay[:old, :old], per_byte[:old, :old] = network.delay, network.seconds_per_byte
    speed = around(rng, capacity * SPEED, NETWORK.speed_spread, new)
    return DeviceNetwork(
        (*network.names, *names),
        np.concatenate([network.speed, speed]),
        np.concatenate([network.has, draw_hardware(NETWORK.support, new, rng)]),
        delay,
        per_byte,
    )
