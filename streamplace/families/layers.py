"""Random layered topologies: the streams between operators, in linear time for millions of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def layers_of(n_operators: int, n_sources: int, n_layers: int, reach: int) -> Layers:
    """Layers as even as possible after the sources, none wider than the next."""
    width = np.full(n_layers, n_sources, np.int64)
    if n_layers > 1:
        even, left = divmod(n_operators - n_sources, n_layers - 1)
        width[1:] = even
        width[n_layers - left :] += 1
    start = np.concatenate([[0], np.cumsum(width)[:-1]])
    layer = np.repeat(np.arange(n_layers), width)
    first = start[np.maximum(np.arange(n_layers) - reach, 0)]
    return Layers(start, width, layer, first[layer], (start - first)[layer])


def fewest_streams(n_operators: int, n_sources: int, n_layers: int) -> int:
    """Least number of streams with which every layer feeds the next and every operator is fed."""
    if n_layers == 1:
        return 0
    others = n_operators - n_sources
    return others + max(0, n_sources - others // (n_layers - 1))


def covering_streams(layers: Layers, rng: np.random.Generator) -> Rows:
    """Streams [2, M] that feed every operator, and from every operator but those of the last layer.

    The feeders of a layer are dealt in random order to the operators of the next.
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


def parallel_streams(layers: Layers, size: int, rng: np.random.Generator) -> Rows:
    """Further streams [2, size] between random pairs, which may repeat."""
    return _pairs(layers, rng.integers(layers.n_pairs, size=size)) if size else _none()


def distinct_streams(layers: Layers, taken: Rows, size: int, rng: np.random.Generator) -> Rows:
    """Further streams [2, size] between random pairs, none twice and none of those taken."""
    if not size:
        return _none()
    used = np.sort(_numbers(layers, taken))
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


def _none() -> Rows:
    return np.empty((2, 0), np.int64)
