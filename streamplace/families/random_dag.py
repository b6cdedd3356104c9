"""Random layered graphs of any size, with a given total CPU and traffic.

The streams between operators are drawn in linear time for millions of them.

Rates neither grow nor fade with the depth. Every operator v has a flow f(v), which its outgoing
streams divide among themselves, and a level g(v) in [1, r]. Stream u→v with share s of the flow of
u gets the selectivity s · g(v)/g(u), so λ(v) = f(v) · g(v), and what an operator emits per tuple
lies between 1/r and r.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import SettingError
from streamplace.families.parameters import check, parameter
from streamplace.families.registry import family
from streamplace.model.arrays import Floats
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.operators import Operators
from streamplace.model.random_numbers import generator
from streamplace.model.streams import Streams
from streamplace.model.units import bandwidth_bps

STREAMS_PER_OPERATOR = 1.5
Rows = NDArray[np.int64]


class Layers(NamedTuple):
    """Operators 0…N-1, layer by layer; the first layer holds the sources."""

    # First operator and number of operators of every layer.
    start: Rows
    width: Rows
    layer: Rows  # layer of every operator
    # Operators that may feed each operator: those of the ``reach`` layers before its own.
    pool_start: Rows
    pool_size: Rows

    @property
    def n_pairs(self) -> int:
        """Number of pairs of operators that a stream may join."""
        return int(self.pool_size.sum())


def covering_streams(layers: Layers, rng: np.random.Generator) -> Rows:
    """Streams [2, M] to every operator, and from every operator except those of the last layer.

    The operators of a layer are dealt in random order to the operators of the next.
    """
    if len(layers.width) == 1:
        return np.empty((2, 0), np.int64)
    n_operators, n_sources = len(layers.layer), int(layers.width[0])
    shuffled = np.lexsort((rng.random(n_operators), layers.layer))
    target = np.arange(n_sources, n_operators)
    before = layers.layer[target] - 1
    place = (target - layers.start[before + 1]) % layers.width[before]
    source = shuffled[layers.start[before] + place]
    idle = np.arange(layers.width[1], n_sources)
    receivers = layers.start[1] + idle % layers.width[1]
    return np.array(
        [np.concatenate([source, shuffled[idle]]), np.concatenate([target, receivers])], np.int64
    )


def distinct_streams(layers: Layers, streams: Rows, size: int, rng: np.random.Generator) -> Rows:
    """Further streams [2, size] between random pairs, all distinct."""
    used = np.sort(_numbers(layers, streams))
    if 2 * (size + len(used)) > layers.n_pairs:
        free = np.delete(np.arange(layers.n_pairs), used)
        return _pairs(layers, rng.permutation(free)[:size])
    chosen = np.empty(0, np.int64)
    while len(chosen) < size:
        more = rng.integers(layers.n_pairs, size=2 * (size - len(chosen)) + 16)
        at = np.minimum(np.searchsorted(used, more), len(used) - 1)
        chosen = np.concatenate([chosen, more[used[at] != more]])
        chosen = chosen[np.sort(np.unique(chosen, return_index=True)[1])]
    return _pairs(layers, chosen[:size])


def _pairs(layers: Layers, numbers: Rows) -> Rows:
    """Streams of numbered pairs: the pairs are counted receiver by receiver."""
    ends = np.cumsum(layers.pool_size)
    target = np.searchsorted(ends, numbers, side="right")
    place = numbers - (ends[target] - layers.pool_size[target])
    return np.array([layers.pool_start[target] + place, target])


def _numbers(layers: Layers, streams: Rows) -> Rows:
    """Inverse of `_pairs`."""
    source, target = streams
    first = (np.cumsum(layers.pool_size) - layers.pool_size)[target]
    return np.asarray(first + source - layers.pool_start[target])


@dataclass(frozen=True, slots=True)
class RandomDag:
    """Parameters of the random-dag family.

    Examples
    --------
    >>> RandomDag(operators=1000, layers=20).n_streams
    1500
    """

    operators: int = parameter(100, "number of operators of a graph", least=1, most=10_000_000)
    streams: int | None = parameter(
        None, "number of streams of a graph (default: 1.5 per operator)", least=0, most=50_000_000
    )
    layers: int | None = parameter(
        None,
        "number of layers, including that of the sources (default: √operators)",
        least=1,
        most=10_000_000,
    )
    sources: int = parameter(1, "number of sources", least=1, most=10_000_000)
    reach: int = parameter(
        2, "maximum number of layers that a stream spans", least=1, most=10_000_000
    )
    parallel: bool = parameter(False, "allow several streams between the same two operators")
    selectivity: float = parameter(
        2.0,
        "most tuples that an operator emits per input tuple; the least is the inverse",
        least=1,
        most=1000,
    )
    rate: float = parameter(1e4, "tuples/s of all sources together", least=1e-3, most=1e9)
    devices: float = parameter(
        4.0, "number of devices whose CPU the graph fills", least=1e-6, most=1e6
    )
    mips: float = parameter(2500.0, "speed of a device in MIPS", least=1e-3, most=1e6)
    network: float = parameter(
        4.0,
        "total bytes/s of all streams, as a multiple of one link's bandwidth",
        least=0,
        most=1e6,
    )
    bandwidth: str = parameter("1000 Mbps", "bandwidth of a link")
    skew: float = parameter(
        0.0,
        "sigma of the lognormal distribution of CPU and payloads; 0: uniform distribution",
        least=0,
        most=5,
    )
    count: int = parameter(1, "number of graphs", least=1, most=1_000_000)

    def __post_init__(self) -> None:
        check(self)
        bandwidth_bps(self.bandwidth)
        if self.sources > self.operators:
            raise SettingError(
                f"sources is {self.sources}; it must be at most the {self.operators} operators"
            )
        others = self.operators - self.sources
        least, most = min(others, 1) + 1, others + 1
        if not least <= self.n_layers <= most:
            raise SettingError(
                f"layers is {self.n_layers}; with {others} operators after the sources it must be "
                f"between {least} and {most}"
            )
        least, most = self.stream_range
        if not least <= self.n_streams <= most:
            raise SettingError(
                f"streams is {self.n_streams}; these layers and sources allow {least} to {most}"
            )

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return self.count

    @property
    def n_layers(self) -> int:
        """Number of layers, that of the sources included."""
        if self.layers is not None:
            return self.layers
        others = self.operators - self.sources
        return 1 + min(others, max(1, math.isqrt(self.operators) - 1))

    @property
    def n_streams(self) -> int:
        """Number of streams."""
        if self.streams is not None:
            return self.streams
        least, most = self.stream_range
        return min(max(least, int(STREAMS_PER_OPERATOR * self.operators)), most)

    def make_layers(self) -> Layers:
        """Layers as even as possible after the sources, none wider than the next."""
        n = self.n_layers
        width = np.full(n, self.sources, np.int64)
        if n > 1:
            even, rest = divmod(self.operators - self.sources, n - 1)
            width[1:] = even
            width[n - rest :] += 1
        start = np.concatenate([[0], np.cumsum(width)[:-1]])
        layer = np.repeat(np.arange(n), width)
        first = start[np.maximum(np.arange(n) - self.reach, 0)]
        return Layers(start, width, layer, first[layer], (start - first)[layer])

    @property
    def stream_range(self) -> tuple[int, int]:
        """Minimum and maximum number of streams.

        With the minimum, every layer feeds the next and every operator is fed.
        """
        others, least = self.operators - self.sources, 0
        if self.n_layers > 1:
            least = others + max(0, self.sources - others // (self.n_layers - 1))
        if self.parallel and least:
            return least, 50_000_000
        return least, self.make_layers().n_pairs


@family("random-dag", RandomDag)
def random_dag(parameters: RandomDag, seed: int, *, start: int = 0) -> Iterator[StreamGraph]:
    """Layered DAG with fan-in, fan-out and selectivities, up to millions of operators."""
    for i in range(start, parameters.count):
        rng = generator(seed, i)
        yield _graph(parameters, f"random-dag-{i:03d}", rng)


def _graph(parameters: RandomDag, name: str, rng: np.random.Generator) -> StreamGraph:
    layers = parameters.make_layers()
    source, target = _drawn_streams(parameters, layers, rng)
    rate = np.zeros(parameters.operators)
    parts = 0.5 + rng.random(parameters.sources)  # the smallest is over a third of the largest
    rate[: parameters.sources] = parts * (parameters.rate / parts.sum())
    selectivity = _selectivities(parameters, source, target, rng)
    tuples, input_rate = _rates(rate, source, target, selectivity)
    cpu = parameters.devices * parameters.mips * 1e6
    traffic = parameters.network * bandwidth_bps(parameters.bandwidth) / 8
    emitted = np.bincount(source, tuples, parameters.operators).astype(np.float64)
    feeds = np.bincount(source, minlength=parameters.operators) > 0
    operators = Operators(
        _names(parameters),
        ipt=_scaled(_weights(parameters, rng), input_rate, cpu),
        payload=_scaled(np.where(feeds, _weights(parameters, rng), 0.0), emitted, traffic),
        rate=rate,
        kind=_kinds(parameters, feeds),
    )
    streams = Streams(operators, source, target, selectivity=selectivity)
    facts: dict[str, Attribute] = {
        "family": "random-dag",
        "devices": parameters.devices,
        "layers": parameters.n_layers,
    }
    return StreamGraph(name, operators, streams, facts)


def _drawn_streams(parameters: RandomDag, layers: Layers, rng: np.random.Generator) -> Rows:
    """Streams [2, M], sorted by source and target."""
    cover = covering_streams(layers, rng)
    size = parameters.n_streams - cover.shape[1]
    streams = cover
    if size and parameters.parallel:
        pairs = _pairs(layers, rng.integers(layers.n_pairs, size=size))
        streams = np.concatenate([cover, pairs], axis=1)
    elif size:
        streams = np.concatenate([cover, distinct_streams(layers, cover, size, rng)], axis=1)
    return np.array(
        np.divmod(np.sort(streams[0] * len(layers.layer) + streams[1]), len(layers.layer))
    )


def _selectivities(
    parameters: RandomDag, source: Rows, target: Rows, rng: np.random.Generator
) -> Floats:
    weight = 0.5 + rng.random(len(source))
    share = weight / np.bincount(source, weight, parameters.operators)[source]
    level = 1 + (parameters.selectivity - 1) * rng.random(parameters.operators)
    return np.asarray(share * level[target] / level[source])


def _rates(rate: Floats, source: Rows, target: Rows, selectivity: Floats) -> tuple[Floats, Floats]:
    """Tuples/s on every stream and into every operator; streams come sorted by source."""
    from streamsim import _core

    return _core.rates_in_order(rate, source.astype(np.int32), target.astype(np.int32), selectivity)


def _weights(parameters: RandomDag, rng: np.random.Generator) -> Floats:
    """Relative sizes: uniform on (0, 1], or lognormal by Box and Muller's transform."""
    uniform, angle = 1 - rng.random(parameters.operators), rng.random(parameters.operators)
    if parameters.skew == 0:
        return np.asarray(uniform)
    normal = np.sqrt(-2 * np.log(uniform)) * np.cos(2 * np.pi * angle)
    return np.asarray(np.exp(parameters.skew * normal))


def _scaled(weights: Floats, rates: Floats, total: float) -> Floats:
    """Weights, scaled to Σ weight · rate = total."""
    unscaled = float((weights * rates).sum())
    return weights * (total / unscaled) if unscaled else weights


def _names(parameters: RandomDag) -> tuple[str, ...]:
    sources = (f"source{i}" for i in range(parameters.sources))
    others = (f"op{i}" for i in range(parameters.sources, parameters.operators))
    return (*sources, *others)


def _kinds(parameters: RandomDag, feeds: NDArray[np.bool_]) -> tuple[str, ...]:
    kinds = np.where(feeds, "work", "sink").astype(object)
    kinds[: parameters.sources] = "source"
    return tuple(kinds.tolist())
