"""Random graphs, clusters and problems for tests of laws that hold for all of them."""

from dataclasses import replace

from hypothesis import reject
from hypothesis import strategies as st

from streamplace.errors import ProblemError
from streamplace.model import (
    Cluster,
    Constraints,
    Device,
    Operator,
    Problem,
    Stream,
    StreamGraph,
    Window,
)

numbers = st.one_of(st.just(0.0), st.floats(1e-3, 1e6), st.integers(1, 10**6))
selectivities = st.floats(0, 2).map(lambda selectivity: selectivity if selectivity > 1e-9 else 0.0)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
windows = st.builds(
    lambda advance, slots, base, factor, limit: Window(
        advance * slots, advance, base, factor, limit
    ),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(1, 5),
    st.floats(0, 10),
    st.floats(0, 2),
    st.one_of(st.just(float("inf")), st.floats(1, 100)),
)


@st.composite
def graphs(draw, most=7, most_subtasks=1, windowed=False, any_names=False):
    """DAGs with one source or several, parallel streams and operators of every kind."""
    n = draw(st.integers(1, most))
    n_sources = draw(st.integers(1, min(n, 3)))
    called = [f"v{i}" for i in range(n)]
    if any_names:
        called = draw(st.lists(names, min_size=n, max_size=n, unique=True))
    operators = [
        Operator(
            called[i],
            ipt=draw(numbers),
            payload=draw(numbers),
            rate=draw(st.floats(1, 1e4)) if i < n_sources else 0.0,
            parallelism=draw(st.integers(1, most_subtasks)),
            kind=draw(st.sampled_from(["", "map", "join"])),
            memory=draw(numbers),
            window=draw(st.none() | windows) if windowed and i >= n_sources else None,
            about=draw(st.sampled_from(["", "does this -> and that"])),
        )
        for i in range(n)
    ]
    ends = [
        (draw(st.integers(0, v - 1)), v)
        for v in range(n_sources, n)
        for _ in range(draw(st.integers(1, 3)))
    ]
    streams = [
        Stream(
            called[u],
            called[v],
            draw(selectivities),
            draw(st.none() | st.floats(0, 1e5)),
            draw(st.sampled_from(["", "rebalance", "hash"])),
        )
        for u, v in ends
    ]
    return StreamGraph.of(
        draw(st.sampled_from(["g", "two words", "größer"])),
        operators,
        [*dict.fromkeys(streams)],  # files with copies are refused
        draw(st.dictionaries(st.sampled_from("abc"), st.integers(-9, 9), max_size=2)),
    )


@st.composite
def clusters(draw, most=5):
    """Clusters of few kinds of devices and links, so that some devices are interchangeable."""
    n = draw(st.integers(1, most))
    kinds = [
        Device("d", mips=2500),
        Device("d", mips=1000, cores=4, reserved=600),
        Device("d", egress=5e8),
    ]
    devices = [
        replace(kind, name=f"d{i}")
        for i, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=n, max_size=n)))
    ]
    link = st.sampled_from([1e9, 1e9, 1e9, 1e8]) if draw(st.booleans()) else st.just(1e9)
    bandwidth = [[draw(link) for _ in range(n)] for _ in range(n)]
    return Cluster.of(devices, bandwidth=bandwidth, overhead=draw(st.sampled_from([0.0, 1e-6])))


@st.composite
def problems(draw, **kinds):
    """Problems, about half of them constrained."""
    graph, cluster = draw(graphs(**kinds)), draw(clusters())
    if draw(st.booleans()):
        return Problem(graph, cluster)
    called, devices = graph.operators.name, cluster.devices.name
    rules = Constraints(
        pin=draw(st.dictionaries(st.sampled_from(called), st.sampled_from(devices), max_size=1)),
        colocate=[draw(st.sets(st.sampled_from(called[::2]), max_size=3))],
        exlocate=[draw(st.sets(st.sampled_from(called[1::2] or called), max_size=2))],
    )
    try:
        return Problem(graph, cluster, rules)
    except ProblemError:  # the rules contradict each other
        reject()


def placements(problem):
    """Any placement of a problem, as device rows."""
    devices = st.integers(0, problem.n_devices - 1)
    return st.lists(devices, min_size=problem.n_operators, max_size=problem.n_operators)
