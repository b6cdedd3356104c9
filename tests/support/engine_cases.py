"""Graphs and placements on which the engine is tested."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from streamsim.flow import flow_of
from streamsim.instance import WindowedOperator, build_instance

Ints = NDArray[np.int64]


def chain(*seconds, rate=100.0, devices=1, **changes):
    """A pipeline of operators with the given core seconds per tuple; links are infinitely fast."""
    n = len(seconds)
    usual: dict[str, Any] = {
        "rate": [rate] + [0.0] * (n - 1),
        "seconds": np.reshape(seconds, (n, 1)),
        "source": np.arange(n - 1),
        "target": np.arange(1, n),
        "device_type": np.zeros(devices, int),
        "seconds_per_byte": np.zeros((devices, devices)),
    }
    return build_instance(**(usual | changes))


def golden():
    """The published example: source → f1 → f2 → sink on one device of 1000 MIPS."""
    return chain(1e-6, 2.5e-6, 8e-6, 1e-6, rate=1e5, selectivity=[1, 0.5, 0.1])


def random_dag(rng, n, devices=3, **more):
    """A random graph with one source, in which every other operator has one to three inputs."""
    source, target = [], []
    for v in range(1, n):
        for u in rng.choice(v, size=min(v, int(rng.integers(1, 4))), replace=False):
            source.append(int(u))
            target.append(v)
    return build_instance(
        rate=[100.0] + [0.0] * (n - 1),
        source=source,
        target=target,
        selectivity=rng.uniform(0.2, 1.2, len(source)),
        **(
            {
                "seconds": rng.uniform(0, 5e-3, (n, 1)),
                "payload": rng.uniform(0, 2e4, len(source)),
                "device_type": np.zeros(devices, int),
                "seconds_per_byte": np.full((devices, devices), 1e-6),
            }
            | more
        ),
    )


def random_placements(rng, instance, runs):
    """Uniformly random devices."""
    return rng.integers(0, instance.n_devices, (runs, instance.n_operators))


def cut_placements(rng, instance, runs):
    """Operators in topological order, cut into runs of equal length, a device for each."""
    n, d = instance.n_operators, instance.n_devices
    placements = np.empty((runs, n), int)
    for b in range(runs):
        parts = int(rng.integers(1, d + 1))
        placements[b, instance.order] = rng.permutation(d)[np.arange(n) * parts // n]
    return placements


def mixed_placements(rng, instance, runs):
    """Random and chain-like placements, half and half."""
    makers: list[Callable[..., Ints]] = [random_placements, cut_placements]
    return np.concatenate([make(rng, instance, runs // 2) for make in makers])


def anything(rng, sources=1, windows=0):
    """Arguments of `build_instance` for a random problem of 10 to 10⁶ tuples/s, and a placement.

    Loads are around 1 on devices of one to four cores, links and cards, whatever the rates.
    """
    n, d = int(rng.integers(2, 13)), int(rng.integers(1, 6))
    rate = np.zeros(n)
    rate[: min(sources, n - 1)] = 10 ** rng.uniform(1, 6, min(sources, n - 1))
    source, target = [], []
    for v in range(1, n):
        if rate[v] == 0 or rng.random() < 0.2:
            for u in rng.choice(v, size=min(v, int(rng.integers(1, 3))), replace=False):
                source.append(int(u))
                target.append(v)
    m = len(source)
    round_numbers = rng.choice([0.1, 0.25, 0.5, 1.0, 1.0, 2.0], m)
    graph = {
        "rate": rate,
        "source": source,
        "target": target,
        "selectivity": np.where(rng.random(m) < 0.7, round_numbers, rng.uniform(0.05, 1.5, m)),
        "windows": tuple(
            _window(rng, int(v)) for v in rng.choice(n, size=min(windows, n), replace=False)
        ),
    }
    flow = flow_of(**graph)
    tuples = np.empty(m)
    tuples[flow.stream_index] = np.maximum(flow.tuples, 1e-9)
    work = rng.uniform(0, 0.6, (n, 2)) * rng.choice([0, 0.2, 1, 1], (n, 1))
    payload = rng.uniform(1, 1000, m) * rng.choice([0, 1], m, p=[0.2, 0.8])
    most, traffic = tuples.max(initial=1e-9), (tuples * payload).max(initial=1e-9)
    types, cores = rng.integers(0, 2, d), rng.choice([1, 1, 2, 4], 2)
    costs = {
        "egress": rng.uniform(0.1, 1.2, d) / traffic * rng.integers(0, 2, d),
        "ingress": rng.uniform(0.1, 1.2, d) / traffic * rng.integers(0, 2, d),
        "overhead": rng.uniform(0, 0.1) / most,
        "overhead_per_byte": rng.uniform(0, 0.1) / traffic,
        "gap": rng.uniform(0, 0.3) / most,
        "latency": rng.choice([0, 1e-4, 1e-3, 0.02, 0.1], (d, d)),
    }
    other = rng.spawn(1)[0]
    free = {"free_cores": cores[types] * other.uniform(0.4, 1.0, d)} if other.random() < 0.4 else {}
    arguments = graph | {
        "seconds": work / np.maximum(flow.input_rate, 1e-9)[:, None],
        "payload": payload,
        "parallelism": rng.integers(1, 5, n),
        "device_type": types,
        "cores": cores[types],
        "seconds_per_byte": rng.uniform(0, 1.2, (d, d)) / traffic,
        **{name: cost for name, cost in costs.items() if rng.random() < 0.4},
        **free,
    }
    return arguments, rng.integers(0, d, n).astype(np.int32)


def _window(rng, operator):
    """A window whose output is in proportion to its input."""
    advance = float(rng.choice([0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0]))
    size, factor = advance * int(rng.integers(1, 6)), rng.uniform(0.01, 1.0)
    return WindowedOperator(operator, size, advance, 0.0, factor, np.inf)
