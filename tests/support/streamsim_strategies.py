"""Random problems for hypothesis, as plain descriptions that every form of the model can read."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from streamsim import WindowedOperator, build_instance
from streamsim._core import topological_order


@dataclass(frozen=True)
class Description:
    """Arguments of `build_instance`, in the caller's order."""

    rate: list[float]
    seconds: list[list[float]]
    source: list[int]
    target: list[int]
    selectivity: list[float]
    payload: list[float]
    parallelism: list[int]
    device_type: list[int]
    cores: list[int]
    seconds_per_byte: list[list[float]]
    egress: list[float]
    ingress: list[float]
    overhead: float
    gap: float
    windows: tuple[WindowedOperator, ...] = ()
    joins: tuple[bool, ...] | None = None
    overhead_per_byte: float = 0.0
    constant: list[list[float]] | None = None
    max_rate: list[float] | None = None
    free_cores: list[float] | None = None

    @property
    def instance(self):
        """The compiled problem."""
        return build_instance(**vars(self))

    @property
    def n_operators(self):
        """Number of operators."""
        return len(self.rate)

    @property
    def n_devices(self):
        """Number of devices."""
        return len(self.device_type)

    def but(self, **changes):
        """Return this problem with some arguments changed."""
        return replace(self, **changes)


def _some(*values):
    """One of a few round values, so that exact ties happen, or anything in their range."""
    least = min(value for value in values if value > 0)
    return st.one_of(st.sampled_from(values), st.floats(least, max(values)))


def _taken():
    """Cores that are taken at any rate: none, or parts that add up exactly to one or more."""
    return st.sampled_from([0.0, 0.0, 0.0, 0.125, 0.25, 0.5, 1.5])


@st.composite
def descriptions(
    draw,
    *,
    max_operators=9,
    max_devices=4,
    max_sources=3,
    plain=False,
    constants=False,
    limits=False,
):
    """A DAG with parallel streams on a cluster.

    ``plain``: only devices and links limit; ``constants``: operators may use cores at any rate;
    ``limits``: subtasks may have a limit.
    """
    n = draw(st.integers(1, max_operators))
    d = draw(st.integers(1, max_devices))
    label = draw(st.permutations(range(n)))
    forward = [(u, v) for v in range(n) for u in range(v)]
    edges = draw(st.lists(st.sampled_from(forward), max_size=2 * n)) if forward else []
    m = len(edges)
    sources = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=max_sources))
    kinds = draw(st.integers(1, 2))
    free = [0.0] * d
    costs = not plain and draw(st.booleans())

    def each(values, size):
        return draw(st.lists(values, min_size=size, max_size=size))

    type_cores = [1] * kinds if plain else each(st.sampled_from([1, 1, 2, 4]), kinds)
    device_type = each(st.integers(0, kinds - 1), d)
    cores = [type_cores[kind] for kind in device_type]
    left = each(st.sampled_from([1.0, 1.0, 0.75, 0.5]), d) if costs else [1.0] * d
    wire = _some(1e-4, 5e-4, 1e-3)
    nic = _some(0.0, 2e-4, 1e-3)
    return Description(
        rate=[draw(_some(1, 10, 40)) if v in sources else 0.0 for v in range(n)],
        seconds=each(st.lists(_some(0.0, 0.01, 0.05), min_size=kinds, max_size=kinds), n),
        source=[label[u] for u, _ in edges],
        target=[label[v] for _, v in edges],
        selectivity=each(_some(0.0, 0.25, 0.5, 1.0, 2.0), m),
        payload=each(_some(0.0, 10, 50), m),
        parallelism=each(st.integers(1, 4), n),
        device_type=device_type,
        cores=cores,
        free_cores=[share * whole for share, whole in zip(left, cores, strict=True)],
        seconds_per_byte=[each(wire, d) for _ in range(d)],
        egress=each(nic, d) if costs else free,
        ingress=each(nic, d) if costs else free,
        overhead=draw(_some(0.0, 1e-3, 5e-3)) if costs else 0.0,
        gap=draw(_some(0.0, 1e-3, 5e-3)) if costs else 0.0,
        overhead_per_byte=draw(_some(0.0, 1e-4, 1e-3)) if costs else 0.0,
        constant=each(st.lists(_taken(), min_size=kinds, max_size=kinds), n) if constants else None,
        max_rate=each(_some(2.0, 5.0, 20.0, 100.0) | st.just(np.inf), n) if limits else None,
    )


@st.composite
def joining(draw, **options):
    """A DAG in which some operators join, fed at equal rates by all of their streams."""
    plain = draw(descriptions(**options))
    n = plain.n_operators
    fed = set(plain.target)
    rate = [0.0 if v in fed else draw(_some(1, 10, 40)) for v in range(n)]
    joins = tuple(v in fed and draw(st.booleans()) for v in range(n))
    selectivity = [max(s, 0.25) for s in plain.selectivity]
    for v in topological_order(n, *(np.array(e, np.int32) for e in (plain.source, plain.target))):
        into = [e for e, target in enumerate(plain.target) if target == v]
        if joins[v]:
            common = draw(_some(5, 10, 20))
            for e in into:
                selectivity[e] = common / rate[plain.source[e]]
            rate[v] = common
        elif into:
            rate[v] = sum(selectivity[e] * rate[plain.source[e]] for e in into)
    own = [0.0 if v in fed else r for v, r in enumerate(rate)]
    return plain.but(rate=own, selectivity=selectivity, joins=joins)


def placements(description, count=1):
    """Batches [count, N] of placements of a problem."""
    n, d = description.n_operators, description.n_devices
    row = st.lists(st.integers(0, d - 1), min_size=n, max_size=n)
    rows = st.lists(row, min_size=count, max_size=count)
    return rows.map(lambda batch: np.array(batch, np.int32).reshape(count, n))


@st.composite
def placed(draw, count=1, **options):
    """A problem and a batch [count, N] of placements for it."""
    description = draw(descriptions(**options))
    return description, draw(placements(description, count))


@st.composite
def placed_joins(draw, count=1, **options):
    """A problem with joins and a batch [count, N] of placements for it."""
    description = draw(joining(**options))
    return description, draw(placements(description, count))


def flowing(problem):
    """The same without constant loads of operators that nothing reaches."""
    if problem.constant is None:
        return problem
    reached = problem.instance.input_rate > 0
    rows = [
        row if flows else [0.0] * len(row)
        for row, flows in zip(problem.constant, reached, strict=True)
    ]
    return problem.but(constant=rows)
