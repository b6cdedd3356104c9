"""The engine ends where the steady-state model says, on graphs of the benchmark."""

import numpy as np
import pytest
from engine_cases import SHAPES, branched, mixed_placements
from streamsim import throughput
from streamsim.engine import Settings, simulate

DT = 0.02
REMOTE = 1 - np.eye(5)


def differences(seed, rate, runs=10, delay=0.0, light=1.0, **more):
    """Relative throughput, engine minus steady state, over graphs of all shapes."""
    rng = np.random.default_rng(seed)
    settings = Settings(duration=60, dt=DT, warm_up=30, capacity=rate * (2 * DT + delay))
    found = []
    for shape in SHAPES:
        instance = branched(
            rng, shape, rate, seconds_per_byte=np.full((5, 5), light * 8e-9), **more
        )
        placements = mixed_placements(rng, instance, runs)
        relative = simulate(instance, placements, settings).relative
        found.append(relative - throughput(instance, placements))
    return np.abs(np.concatenate(found))


@pytest.mark.parametrize(
    "cluster",
    [
        {"latency": 0.03 * REMOTE, "delay": 0.04},
        {"overhead": 2e-5},
        {"overhead_per_byte": 1e-9},
        {"overhead": 2e-5, "free_cores": np.linspace(0.4, 1.0, 5)},
        {"gap": 1e-4},
        {"cores": np.full(5, 4.0)},
        {"egress": np.full(5, 6e-9)},
        {"egress": np.full(5, 6e-9), "ingress": np.linspace(2e-9, 8e-9, 5)},
    ],
    ids=lambda cluster: "+".join(cluster),
)
def test_every_part_of_the_cluster_model_reaches_the_steady_state(cluster):
    """Latency, overhead, gap, cores and NIC caps bind as the steady state says."""
    found = differences(2, 1e4, light=0.5, **cluster)
    assert found.mean() <= 0.001
    assert found.max() <= 0.02
