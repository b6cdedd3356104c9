"""The engine ends where the steady-state model says, also as the paper validates its simulator."""

from typing import Any

import numpy as np
import pytest
from engine_cases import MIPS, SECONDS_PER_BYTE, SHAPES, branched, mixed_placements
from numpy.typing import NDArray
from streamsim import build_instance, throughput
from streamsim.engine import Settings, simulate
from streamsim.instance import Instance

DT = 0.02
REMOTE = 1 - np.eye(5)


def differences(
    seed: int, rate: float, runs: int = 10, delay: float = 0.0, light: float = 1.0, **more: Any
) -> NDArray[Any]:
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


@pytest.mark.parametrize("rate", [1e4, 2e4])
@pytest.mark.parametrize("light", [0.2, 1.0])
def test_benchmark_graphs_reach_the_steady_state(rate: float, light: float) -> None:
    """Mean |Δ| ≤ 0.001 and max ≤ 0.01 over graphs × random and chain-like placements."""
    found = differences(1, rate, light=light)
    assert len(found) == 160
    assert found.mean() <= 0.001
    assert found.max() <= 0.01


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
def test_every_part_of_the_cluster_model_reaches_the_steady_state(cluster: dict[Any, Any]) -> None:
    """Latency, overhead, gap, cores and NIC caps bind as the steady state says."""
    found = differences(2, 1e4, light=0.5, **cluster)
    assert found.mean() <= 0.001
    assert found.max() <= 0.02


HIGH, LOW = 250_000, 5_000  # instructions per tuple: a whole device at 10⁴ tuples/s, a fiftieth
BIG, SMALL = 30_000, 100  # bytes: 2.4 times what a link carries, and less than a hundredth


def relative(instance: Instance, placements: list[list[int]]) -> NDArray[Any]:
    """By the engine, having checked that the steady state agrees."""
    settings = Settings(duration=60, dt=0.02, warm_up=30, capacity=400)
    found = simulate(instance, placements, settings).relative
    assert found == pytest.approx(throughput(instance, placements), abs=0.005)
    return found


def graph(
    instructions: list[int],
    source: list[int],
    target: list[int],
    payload: list[int],
    selectivity: list[float] | None = None,
) -> Instance:
    """Operators of so many instructions per tuple, on five devices."""
    n = len(instructions)
    return build_instance(
        rate=[10_000] + [0] * (n - 1),
        seconds=np.reshape(instructions, (n, 1)) / MIPS,
        source=source,
        target=target,
        payload=payload,
        selectivity=selectivity,
        device_type=[0] * 5,
        seconds_per_byte=np.full((5, 5), SECONDS_PER_BYTE),
    )


@pytest.mark.parametrize(
    ("cpu", "payload", "order"),
    [(HIGH, BIG, "<"), (HIGH, SMALL, "<"), (LOW, BIG, ">"), (LOW, SMALL, "=")],
)
def test_pipeline_placements_rank_as_in_table_2(cpu: int, payload: int, order: str) -> None:
    """P1 puts all but the source on one device, P2 an operator on each.

    The source's own stream is small throughout, as both placements send it over a link.
    """
    pipeline = graph(
        [1_000, cpu, cpu, cpu, cpu, 1_000],
        source=[0, 1, 2, 3, 4],
        target=[1, 2, 3, 4, 5],
        payload=[SMALL, payload, payload, payload, 0],
    )
    p1, p2 = relative(pipeline, [[0, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 4]])
    assert {"<": p1 < 0.7 * p2, ">": p1 > 1.5 * p2, "=": p1 == pytest.approx(p2, abs=0.005)}[order]


@pytest.mark.parametrize("payload", [BIG, SMALL])
def test_branch_placements_rank_as_in_table_3(payload: int) -> None:
    """Branches OP1 → OP3 and OP2 → OP4; two work operators fill a device.

    P1 keeps each branch together. P2 and P3 cut both branches; the streams of P2 share one link,
    those of P3 go in opposite directions.
    """
    work = 250_000  # half a device each: a branch sees half of the rate
    mixed = graph(
        [1_000, work, work, work, work, 1_000],
        source=[0, 0, 1, 2, 3, 4],
        target=[1, 2, 3, 4, 5, 5],
        payload=[SMALL, SMALL, payload, payload, 0, 0],
        selectivity=[0.5, 0.5, 1, 1, 1, 1],
    )
    p1, p2, p3 = relative(mixed, [[0, 1, 2, 1, 2, 3], [0, 1, 1, 2, 2, 3], [0, 1, 2, 2, 1, 3]])
    if payload == BIG:
        assert p1 > 1.15 * p3 > 2.2 * p2
    else:
        assert [p1, p2, p3] == pytest.approx([1, 1, 1], abs=0.005)
