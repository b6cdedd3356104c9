"""Task graphs for tests of schedules."""

import itertools
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from placer_cases import all_legal

from streamplace.io.problems import read_problems
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

FOLDER = Path(__file__).parent
MAKESPAN = OBJECTIVES["makespan"]
SECONDS = [
    [14, 16, 9],
    [13, 19, 18],
    [11, 13, 19],
    [13, 8, 17],
    [12, 13, 10],
    [13, 16, 9],
    [7, 15, 11],
    [5, 11, 14],
    [18, 12, 20],
    [21, 7, 16],
]
STREAMS = {
    (1, 2): 18, (1, 3): 12, (1, 4): 9, (1, 5): 11, (1, 6): 14, (2, 8): 19, (2, 9): 16, (3, 7): 23,
    (4, 8): 27, (4, 9): 23, (5, 9): 13, (6, 8): 15, (7, 10): 17, (8, 10): 11, (9, 10): 13,
}  # fmt: skip


def ten_tasks():
    """The example of the HEFT paper: one byte per second takes one second."""
    streams = [Stream(f"n{a}", f"n{b}", payload=size) for (a, b), size in STREAMS.items()]
    tasks = [Operator(f"n{i}") for i in range(1, 11)]
    graph = StreamGraph.of("ten", tasks, streams, fires="all")
    return Problem(graph, Cluster.uniform(3, bandwidth="8 bps"), seconds=SECONDS)


def value(placer, problem):
    """Makespan of a placer's answer."""
    budget = Budget(None, 200)
    return named_placer(placer).place(problem, MAKESPAN, seed=1, budget=budget).value


TOGETHER = Constraints(colocate=[["v0", "v1"]])


@st.composite
def problems(draw, most_cores=2, rules=TOGETHER):
    """Small task graphs on uneven devices of one or two cores, some of them with rules."""
    n, d = draw(st.integers(2, 7)), draw(st.integers(1, 3))
    pairs = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=9))
    streams = [
        Stream(f"v{a}", f"v{b}", payload=draw(st.integers(0, 40)))
        for a, b in sorted(pairs)
        if a < b
    ]
    millions = st.sampled_from([0, 0.7, 1, 1.4, 2.1, 3, 8, 20])  # some of no duration, some rounded
    tasks = [Operator(f"v{i}", ipt=draw(millions) * 1e6) for i in range(n)]
    graph = StreamGraph.of("g", tasks, streams, fires="all")
    devices = [
        Device(f"d{i}", mips=draw(st.integers(1, 4)), cores=draw(st.integers(1, most_cores)))
        for i in range(d)
    ]
    cluster = Cluster.of(devices, bandwidth=draw(st.sampled_from([8, 80])))
    return Problem(graph, cluster, rules if draw(st.booleans()) else None)


def least_of_all(problem):
    """Shortest pass of all legal placements under all orders of the tasks."""
    places, tasks = all_legal(problem), range(problem.n_operators)
    orders = [np.array(order, np.float64) for order in itertools.permutations(tasks)]
    return min(
        float(MAKESPAN.values(problem, places, np.tile(order, (len(places), 1))).min())
        for order in orders
    )


def giph(count, setting="multiple_networks"):
    """Some of 20 problems of a benchmark of GiPH, of its family with 120 of seed 0."""
    problems = list(read_problems(FOLDER / f"{setting}.jsonl.gz"))
    return problems[:: len(problems) // count][:count]
