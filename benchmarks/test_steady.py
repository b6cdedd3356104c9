"""Speed of the steady state in its two forms.

Each line also gives the ratio to a vectorised numpy form of the plain model, timed on the spot, so
that figures of different machines (and of one machine on different days) can be compared. Times
are CPU seconds of one thread, so that waiting for a busy machine does not count.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture
from streamsim import Instance, build_instance, throughput
from streamsim.incremental import Incremental

from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Problem

pytestmark = pytest.mark.benchmark(timer=time.process_time)

Ints = NDArray[np.int32]
Report = Callable[[str, float], None]

DEVICES = 5
BATCH = 10_000
MOVES = 100_000
COSTS = {
    "overhead": 1e-7,
    "gap": 1e-7,
    "egress": np.full(DEVICES, 4e-9),
    "ingress": np.full(DEVICES, 4e-9),
}


def branched(branches: int, stages: int, **costs: object) -> Instance:
    """One source, equal branches, one sink, on five devices."""
    rng = np.random.default_rng(0)
    n = branches * stages + 2
    chains = np.arange(1, n - 1).reshape(branches, stages)
    first, last = chains[:, 0], chains[:, -1]
    source = np.concatenate([np.zeros(branches), chains[:, :-1].ravel(), last])
    target = np.concatenate([first, chains[:, 1:].ravel(), np.full(branches, n - 1)])
    rate = np.zeros(n)
    rate[0] = 1e4
    return build_instance(
        rate=rate,
        seconds=rng.random((n, 1)) * 4e-5 * DEVICES / stages,
        source=source,
        target=target,
        selectivity=np.where(source == 0, 1 / branches, 1.0),
        payload=rng.random(len(source)) * 62_500,
        device_type=np.zeros(DEVICES),
        seconds_per_byte=np.full((DEVICES, DEVICES), 8e-9),
        **costs,  # type: ignore[arg-type]
    )


def large(devices: int) -> Instance:
    """A random graph of 100,000 operators."""
    parameters = RandomDag(operators=100_000, streams=200_000)
    return Problem(next(iter(random_dag(parameters, 0))), Cluster.uniform(devices)).instance


def random_placements(instance: Instance, count: int) -> Ints:
    shape = (count, instance.n_operators)
    return np.random.default_rng(1).integers(0, instance.n_devices, shape, dtype=np.int32)


def in_numpy(instance: Instance, batch: Ints) -> NDArray[np.float64]:
    """Relative throughput by vectorised numpy, for devices and links only."""
    (b, n), d = batch.shape, instance.n_devices
    rows = np.arange(b)[:, None]
    busy = instance.load[np.arange(n), instance.device_type[batch]]
    devices = np.bincount((rows * d + batch).ravel(), busy.ravel(), b * d).reshape(b, -1)
    pairs = (rows * d + batch[:, instance.source]) * d + batch[:, instance.target]
    sent = np.bincount(pairs.ravel(), np.tile(instance.traffic, b), b * d * d).reshape(b, -1)
    links = sent * instance.seconds_per_byte.ravel()
    return 1 / np.maximum(1, np.maximum(devices.max(1), links.max(1)))


@pytest.fixture
def report(benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]) -> Report:
    """Note and print how many evaluations (or moves) per second, beside those of numpy."""

    def of(unit: str, count: float) -> None:
        instance = branched(5, 5)
        batch = random_placements(instance, BATCH)
        numpy_rate = BATCH / median_seconds(lambda: in_numpy(instance, batch))
        rate = count / benchmark.stats.stats.median
        benchmark.extra_info.update({f"{unit}/s": rate, "ratio to numpy": rate / numpy_rate})
        with capsys.disabled():
            print(
                f"\n{benchmark.name}: {rate / 1e6:.3g} million {unit}/s (median;"
                f" {1e9 / rate:.3g} ns each; {rate / numpy_rate:.2f} × numpy, which makes"
                f" {numpy_rate / 1e6:.2f} million placements/s; {os.cpu_count()} cores)"
            )

    return of


def median_seconds(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(7):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def test_numpy_form_is_right() -> None:
    instance = branched(5, 5)
    batch = random_placements(instance, 100)
    np.testing.assert_allclose(in_numpy(instance, batch), throughput(instance, batch), rtol=1e-9)


@pytest.mark.parametrize(
    "instance",
    [
        pytest.param(branched(5, 5), id="plain"),
        pytest.param(branched(5, 5, **COSTS), id="nics-overhead-gap"),
    ],
)
def test_batch(benchmark: BenchmarkFixture, report: Report, instance: Instance) -> None:
    batch = random_placements(instance, BATCH)
    benchmark(throughput, instance, batch)
    report("placements", BATCH)


def moves(placed: Incremental, operators: list[int], devices: list[int]) -> float:
    """Random moves, nothing else."""
    for operator, device in zip(operators, devices, strict=True):
        placed.move(operator, device)
    return placed.throughput


def moves_and_peaks(placed: Incremental, operators: list[int], devices: list[int]) -> float:
    """Random moves, looking at the fullest resource after each."""
    total = 0.0
    for operator, device in zip(operators, devices, strict=True):
        placed.move(operator, device)
        total += placed.peak
    return total


@pytest.mark.parametrize(
    "instance",
    [
        pytest.param(branched(5, 5), id="27-operators"),
        pytest.param(branched(5, 5, **COSTS), id="27-operators-nics-overhead-gap"),
        pytest.param(large(8), id="100k-operators-8-devices"),
        pytest.param(large(100), id="100k-operators-100-devices"),
    ],
)
@pytest.mark.parametrize("walk", [moves, moves_and_peaks])
def test_incremental(
    benchmark: BenchmarkFixture, report: Report, walk: Callable[..., float], instance: Instance
) -> None:
    rng = np.random.default_rng(0)
    placed = Incremental(instance, random_placements(instance, 1)[0])
    operators = rng.integers(0, instance.n_operators, MOVES).tolist()
    devices = rng.integers(0, instance.n_devices, MOVES).tolist()
    benchmark(walk, placed, operators, devices)
    report("moves", MOVES)


FIRST_CALL = """
import time
begin = time.process_time()
import numpy
loaded = time.process_time()
from streamsim import build_instance, throughput
from streamsim.incremental import Incremental
instance = build_instance(rate=[1, 0], seconds=[[1], [1]], source=[0], target=[1],
                          device_type=[0], seconds_per_byte=[[0]])
throughput(instance, [[0, 0]])
placed = Incremental(instance, [0, 0])
placed.move(0, 0), placed.throughput
print(loaded - begin, time.process_time() - loaded)
"""


def test_first_call_of_a_process(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """The import of numpy, then streamsim up to its first answers."""

    def fresh() -> tuple[float, float]:
        run = [sys.executable, "-c", FIRST_CALL]
        done = subprocess.run(run, check=True, capture_output=True, text=True)
        numpys, ours = done.stdout.split()
        return float(numpys), float(ours)

    fresh()
    # The timer counts this process alone: how many rounds fit can't be told from it.
    numpys, ours = benchmark.pedantic(fresh, rounds=5)
    with capsys.disabled():
        print(
            f"\n{benchmark.name}: numpy imports in {1e3 * numpys:.0f} ms, first answers"
            f" {1e3 * ours:.1f} ms later"
        )
