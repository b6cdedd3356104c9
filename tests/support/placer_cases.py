"""Every placer on every tiny problem."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import reject
from hypothesis import strategies as st
from problems import PROBLEMS
from streamsim import throughput

from streamplace.errors import PlacementError, ProblemError
from streamplace.learn.registry import MODELS
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget
from streamplace.placers.result import Result

QUESTIONS = ("throughput", "makespan")
SEED, EVALUATIONS = 7, 300


VARIED = (
    "constrained",
    "tagged",
    "little memory and rules",
    "heterogeneous",
    "many sources",
    "joined",
)
"""Problems with names in sets, devices that differ, several sources and joins."""
SLOW = pytest.mark.slow
OF_PAPERS = [
    name for name in MODELS if MODELS[name].config.__module__.startswith("streamplace.papers")
]
"""Systems of papers. They rarely change, and their kernels take minutes to compile."""
OURS = [name for name in PLACERS if name not in OF_PAPERS]


def case(*values, slow=False):
    """A case of a placer, slow for systems of papers."""
    marks = SLOW if slow or values[0] in OF_PAPERS else ()
    return pytest.param(*values, id="-".join(map(str, values)), marks=marks)


def question(placer):
    """The first of the two questions that a placer can answer."""
    return next(OBJECTIVES[name] for name in QUESTIONS if PLACERS[placer].judges(OBJECTIVES[name]))


def answer(placer, problem, objective, evaluations=EVALUATIONS):
    """Result of a placer within a number of evaluations, or why it has none."""
    budget = Budget(seconds=None, evaluations=evaluations)
    try:
        return PLACERS[placer].place(
            PROBLEMS[problem], OBJECTIVES[objective], seed=SEED, budget=budget
        )
    except PlacementError as error:
        return error


first_answer = cache(answer)
"""What `answer` said first in this process."""


def devices(result):
    """Device of every operator, or why there is no placement; to be compared across processes."""
    return result.placement.index.tolist() if isinstance(result, Result) else str(result)


def placed(
    placer, problem, evaluations=3000, seed=0, objective=OBJECTIVES["throughput"], **options
):
    """Place within a number of evaluations."""
    budget = Budget(None, evaluations)
    return (
        PLACERS[placer].with_options(**options).place(problem, objective, seed=seed, budget=budget)
    )


def all_legal(problem):
    """All placements that the rules allow."""
    every = np.array(list(np.ndindex((problem.n_devices,) * problem.n_operators)), np.int32)
    return every[problem.legal(every)]


def best_of_all(problem):
    """Highest throughput of all legal placements."""
    return float(throughput(problem.instance, all_legal(problem)).max())


def make_busy(patch):
    """Let more than any budget pass between two looks at the clock."""
    looks = itertools.count()
    patch.setattr(stopwatch, "clock", lambda: 1e7 * next(looks))


def interrupt(patch, after):
    """Let the first search that spends so many evaluations be interrupted, once."""
    spend, spent = Meter.spend, list[int]()

    def interrupted(meter, evaluations):
        spend(meter, evaluations)
        if meter.spent > after and not spent:
            spent.append(meter.spent)
            raise KeyboardInterrupt

    patch.setattr(Meter, "spend", interrupted)


def counted(rows):
    """Throughput that notes how many placements it is asked about."""
    throughput = OBJECTIVES["throughput"]

    def evaluate(problem, placements):
        rows.append(len(placements))
        return throughput.evaluate(problem, placements)

    return replace(throughput, evaluate=evaluate)


WEIGHTS = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.3, 2.0])


@st.composite
def _graphs(draw, sources, most, is_limited):
    """Small graphs in which some weights are equal and some are zero."""
    n = draw(st.integers(sources + 1, most))
    constants = st.sampled_from([0.0, 0.0, 0.1, 0.4] if is_limited else [0.0])
    max_rates = st.sampled_from([0.0, 0.0, 1.5] if is_limited else [0.0])
    rates = st.sampled_from([1e-6, 0.5, 1.0, 2.0] if is_limited else [0.5, 1.0, 2.0])
    subtasks = st.sampled_from([1, 1, 2] if is_limited else [1])
    operators = [
        Operator(
            f"o{i}",
            ipt=draw(WEIGHTS) * 1e6,
            payload=draw(WEIGHTS) * 1e3,
            rate=draw(rates) if i < sources else 0.0,
            parallelism=draw(subtasks),
            constant=draw(constants),
            max_rate=draw(max_rates),
        )
        for i in range(n)
    ]
    parallelism = [operator.parallelism for operator in operators]
    kinds, pairs = (
        ["", "", "", "chained"],
        [(draw(st.integers(0, v - 1)), v) for v in range(sources, n)],
    )
    extra = draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(sources, n - 1)), max_size=3)
    )
    pairs += [(u, v) for u, v in extra if u < v]
    streams = [
        Stream(
            f"o{u}",
            f"o{v}",
            selectivity=draw(WEIGHTS) + 0.1,
            partitioning=draw(st.sampled_from(kinds if parallelism[u] == parallelism[v] else [""])),
            ipt=draw(st.sampled_from([0, 0, 2e5])),
        )
        for u, v in pairs
    ]
    return StreamGraph.of("small", operators, streams)


@st.composite
def _clusters(draw, n):
    """Clusters of every kind: equal devices, mixed ones, capped NICs, several cores, overheads."""
    if draw(st.booleans()):
        return Cluster.uniform(n, mips=1, bandwidth="8 kbps")
    several = st.sampled_from([1.0, 1.0, 2.0])
    devices = [
        Device(
            f"d{i}",
            mips=draw(several),
            cores=int(draw(several)),
            egress=draw(st.sampled_from([np.inf, 12e3])),
            ingress=draw(st.sampled_from([np.inf, 9e3])),
            reserved=draw(st.sampled_from([0.0, 0.0, 0.25])),
        )
        for i in range(n)
    ]
    links = [[8e3 * draw(several) for _ in range(n)] for _ in range(n)]
    overhead, gap = (draw(st.sampled_from([0.0, 0.05])) for _ in range(2))
    per_byte = draw(st.sampled_from([0.0, 5e-5]))
    return Cluster.of(
        devices, bandwidth=np.array(links), overhead=overhead, gap=gap, overhead_per_byte=per_byte
    )


@st.composite
def small_problems(draw, sources=1, most=6, is_limited=False):
    """Problems of few operators, with constraints that can be met.

    In limited ones, operators use CPU at any rate, have subtasks, and these have largest rates.
    """
    n_devices = draw(st.integers(1, 3))
    graph = draw(_graphs(sources, most, is_limited))
    names, devices = graph.operators.name, [f"d{i}" for i in range(n_devices)]
    pick = st.sampled_from(names)
    rules = Constraints()
    if draw(st.booleans()):
        a, b, c, d = (draw(pick) for _ in range(4))
        allowed = draw(st.sets(st.sampled_from(devices), min_size=1))
        apart = n_devices > 1 and len({a, b, c, d}) == 4
        rules = (
            Constraints(
                colocate=[{a, b}],
                allowed={a: frozenset(allowed)} if not apart else {},
                exlocate=[{b, c}] if apart else [],
                pin={d: draw(st.sampled_from(devices))},
            )
            if d not in (a, b)
            else Constraints(colocate=[{a, b}])
        )
    cost = None
    if draw(st.integers(0, 4)) == 0:
        cells = st.lists(WEIGHTS, min_size=n_devices, max_size=n_devices)
        cost = np.array([draw(cells) for _ in names])
    cluster = draw(_clusters(n_devices))
    try:
        return Problem(graph, cluster, rules, cost)
    except ProblemError:  # the ends of a chained stream must not share a device
        reject()
