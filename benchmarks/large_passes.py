"""One pass of large task graphs on 16 uneven devices: HEFT against auto in thirty seconds.

python benchmarks/large_passes.py [--tasks 100000] [--seconds 30]
"""

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from streamplace import Problem, place
from streamplace.model import Cluster, Device, Operators, StreamGraph, Streams
from streamplace.placers.registry import Budget

Pairs = NDArray[np.int64]
WIDTH = 1000
DEVICES = 16


def layered(n: int, rng: np.random.Generator, width: int = WIDTH) -> Pairs:
    """Layers of tasks, each fed by two of the layer before."""
    target = np.repeat(np.arange(width, n), 2)
    source = (target // width - 1) * width + rng.integers(0, width, len(target))
    return np.unique(np.stack([source, target], axis=1), axis=0)


def fork_join(n: int, rng: np.random.Generator) -> Pairs:
    """Forks into a hundred tasks that are joined, one after the other."""
    block = 102
    begin = np.arange(n // block) * block
    middle = (begin[:, None] + 1 + np.arange(block - 2)).ravel()
    fork = np.repeat(begin, block - 2)
    pairs = [np.stack([fork, middle], 1), np.stack([middle, fork + block - 1], 1)]
    pairs.append(np.stack([begin[:-1] + block - 1, begin[1:]], 1))
    return np.concatenate(pairs)


def chains(n: int, rng: np.random.Generator) -> Pairs:
    """A hundred chains, tied together here and there."""
    length = n // 100
    along = np.arange(n - 1)
    along = along[(along + 1) % length != 0]
    pairs = np.stack([along, along + 1], 1)
    at = rng.integers(0, length - 1, n // 50)
    one, other = rng.integers(0, 100, (2, n // 50))
    ties = np.stack([one * length + at, other * length + at + 1], 1)
    return np.unique(np.concatenate([pairs, ties]), axis=0)


SHAPES: dict[str, Callable[[int, np.random.Generator], Pairs]] = {
    "layered": layered,
    "fork-join": fork_join,
    "chains": chains,
}


def problem_of(name: str, pairs: Pairs, devices: int, rng: np.random.Generator) -> Problem:
    """A graph whose tasks work and send about equally long, on uneven devices."""
    n = int(pairs.max()) + 1
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    operators = Operators(
        [f"t{i}" for i in range(n)],
        ipt=rng.uniform(50e6, 150e6, n),
        rate=np.where(np.isin(np.arange(n), pairs[:, 1]), 0.0, 1.0),
        fires_all=np.ones(n, bool),
    )
    streams = Streams(operators, *pairs[order].T, payload=rng.uniform(50, 150, len(pairs)))
    machines = [Device(f"d{i}", mips=mips) for i, mips in enumerate(rng.uniform(3, 7, devices))]
    bandwidth = 8 / rng.uniform(0.006, 0.014, (devices, devices))
    graph = StreamGraph(name, operators, streams)
    return Problem(graph, Cluster.of(machines, bandwidth=bandwidth))


def layered_problem(n: int, width: int, devices: int) -> Problem:
    """Layers of tasks on uneven devices."""
    rng = np.random.default_rng(0)
    return problem_of("layered", layered(n, rng, width), devices, rng)


def main(tasks: int, seconds: float) -> None:
    """Print the table."""
    place(layered_problem(5000, WIDTH, DEVICES), placer="auto", budget=Budget(1.0))  # compiles
    print("| graph | tasks | HEFT | in s | auto | of HEFT | of the bound |")
    print("|---|---|---|---|---|---|---|")
    for shape, pairs_of in SHAPES.items():
        rng = np.random.default_rng(0)
        problem = problem_of(shape, pairs_of(tasks, rng), DEVICES, rng)
        problem.one_pass  # noqa: B018 - compiled before
        begin = time.perf_counter()
        heft = place(problem, placer="heft")
        took = time.perf_counter() - begin
        auto = place(problem, placer="auto", budget=Budget(seconds))
        assert auto.bound is not None
        print(
            f"| {shape} | {problem.n_operators} | {heft.value:.6g} s | {took:.2f} "
            f"| {auto.value:.6g} s | {auto.value / heft.value:.4f} "
            f"| {auto.value / auto.bound:.3f} |"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\nmemory at its peak: {peak:.2f} GiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    main(given.tasks, given.seconds)
