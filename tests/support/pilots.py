"""Untrained pilots with opinions of their own, and what tests do with them."""

import numpy as np
import torch

from streamplace.io.weights import write_weights
from streamplace.learn.algorithms.kernels import DecisionRecord
from streamplace.learn.models.pilot.learner import PilotModule
from streamplace.learn.models.pilot.model import PilotConfig
from streamplace.learn.models.pilot.placing import FEATURES, TrainedPilot
from streamplace.learn.models.pilot.rollouts import (
    heads_of,
    network_of,
    places_after,
    recorded_rollouts,
)
from streamplace.learn.parameters import arrays_of
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph

SHARPNESS = 20.0
"""Untrained, a pilot hardly prefers any device; its last layer is multiplied by this."""


def pilot_module(seed=0, width=8, rounds=2):
    """Pilot with random weights that prefers some devices to others."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        module = PilotModule(width, rounds)
        module.out.weight.mul_(SHARPNESS)
    return module


def pilot_network(seed=0, width=8, rounds=2):
    """Return the same in numpy."""
    return network_of(arrays_of(pilot_module(seed, width, rounds)))


def weights_file(path, seed=0, **changes):
    """Write the weights of such a pilot, some parts of the document changed."""
    document = {
        "model": "pilot",
        "config": PilotConfig(width=8, rounds=2).model_dump(mode="json"),
        "features": {"names": FEATURES},
        "training": {},
    }
    write_weights(path, {**document, **changes}, arrays_of(pilot_module(seed)))
    return path


def explore(view, network, given, seed=None):
    """Devices [S, T] drawn where none is given (or the likeliest), and what is seen on the way."""
    asked = np.array(given, np.int32, order="C")
    uniform = np.full(asked.shape, -1, np.float32)
    if seed is not None:
        uniform = np.random.default_rng(seed).random(asked.shape, dtype=np.float32)
    return recorded_rollouts(view, heads_of(network, view), asked, uniform)


def follow(view, network, chosen):
    """Log-probabilities of devices [S, T]."""
    followed, likelihood, _ = explore(view, network, chosen)
    assert np.array_equal(followed, chosen)
    return likelihood


def draw(view, network, samples, *, seed=0, sweeps=1):
    """Devices [S, T] as the policy draws them, and what it sees on the way."""
    given = np.full((samples, sweeps * len(view.order)), -1)
    chosen, _, record = explore(view, network, given, seed)
    return chosen, record


def draw_whole(view, network, samples):
    """The same, of rollouts that the rules did not stop."""
    chosen, record = draw(view, network, samples)
    whole = chosen[:, 0] >= 0
    return chosen[whole], DecisionRecord(*(part[whole] for part in record))


def places(view, chosen):
    """Devices of the operators [S, N] at the end of rollouts [S, T]."""
    return places_after(view, chosen, chosen.shape[1] // len(view.order))


def answer(problem, seed=0, *, rollouts=1, sweeps=2):
    """Devices of the operators [N] that an untrained pilot thinks likeliest in the end."""
    return TrainedPilot(pilot_network(seed)).greedy(problem, rollouts, sweeps)[-1]


def answers(problem, samples, seed):
    """Devices of the operators [S, N] that an untrained pilot draws."""
    return TrainedPilot(pilot_network()).sampled(problem, samples, seed)


def along(view, placements, sweeps=1):
    """Decisions [S, T] that lead to placements of the operators [S, N] and stay there."""
    units = np.empty((len(placements), len(view.order)), np.int32)
    units[:, view.unit_of] = placements
    return np.tile(units[:, view.order], sweeps)


def some_placements(problem, count, seed=0):
    """Legal placements of the operators [S, N], at random."""
    size = (count, problem.n_operators)
    return problem.repaired(np.random.default_rng(seed).integers(problem.n_devices, size=size))


def tangle(n=9, seed=0):
    """One source, every other operator fed by up to three before it; no two streams are alike."""
    rng = np.random.default_rng(seed)
    operators = [
        Operator(f"v{i}", ipt=float(rng.uniform(2e4, 2e5)), rate=1e4 if i == 0 else 0.0)
        for i in range(n)
    ]
    streams = [
        Stream(f"v{u}", f"v{v}", float(rng.uniform(0.2, 0.6)), float(rng.uniform(1e3, 3e4)))
        for v in range(1, n)
        for u in sorted(rng.choice(v, min(v, 3), replace=False).tolist())
    ]
    return StreamGraph.of("tangle", operators, streams)


def uneven(order=(0, 1, 2, 3)):
    """Four devices, no two alike, behind links that are not either; in this order."""
    devices = [
        Device("fast", mips=4000),
        Device("capped", mips=2500, egress=8e8),
        Device("slow", mips=1000, ingress=6e8),
        Device("wide", mips=900, cores=3),
    ]
    bandwidth = 1e9 / (1 + 0.1 * np.arange(16.0).reshape(4, 4))
    rows = list(order)
    return Cluster.of([devices[d] for d in rows], bandwidth=bandwidth[np.ix_(rows, rows)])


def torn():
    """Three operators that must not meet, two devices for each: a first choice may be a trap.

    All together on the last device, which the rules forbid, would be best.
    """
    from problems import chain

    from streamplace.model import Constraints

    rules = Constraints(
        exlocate=({"v0", "v1", "v2"},),
        allowed={"v0": {"d0", "d1"}, "v1": {"d1", "d2"}, "v2": {"d0", "d2"}},
    )
    speeds = {"d0": 500, "d1": 500, "d2": 10_000}
    cluster = Cluster.of([Device(name, mips=mips) for name, mips in speeds.items()])
    return Problem(chain(4, payload=10), cluster, rules)
