"""Graphs that weights were trained on or chosen by, which their files describe by sketches.

The *sketch* of a graph is a hash of its topology and eight numbers of its costs. It identifies near
copies, of equal topology with all costs within 1 %, at any rate and on any cluster. Other graphs
match by chance alone: none of 25,600 graphs of the standard benchmark's topologies matches one of
its 630 test graphs.
"""

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.evaluate.records import hash_arrays
from streamplace.evaluate.runner import weights_of
from streamplace.io.weights import read_weights
from streamplace.learn.model_weights import loaded
from streamplace.model.arrays import Floats
from streamplace.model.graph import StreamGraph
from streamplace.placers.named import aliased_placers, named_placer

TRAINED_ON, CHOSEN_BY = "trained_on", "chosen_by"
"""Entries in the description of a training: sketches of training and of validation graphs."""
MAX_GRAPHS = 20_000
"""Described graphs, of about 8 bytes each; of more graphs, the smallest hashes are kept."""
NUMBER, TOPOLOGY, COST = np.dtype(">u8"), np.dtype(">u4"), np.dtype(">i2")
COSTS = 8
STEP = log(1.01) / 4
"""Step of the numbers in a sketch, which are logarithms."""
MAX_STEPS = 4
"""Largest difference of such numbers between graphs whose costs are within 1 %."""
_WEIGHTS = re.compile(r":weights=[^:]*")
DIGITS = 6
"""Significant digits of a source's share of the rate, which scaling rounds."""


def graph_number(graph: StreamGraph) -> int:
    """Hash of CPU, streams and shares of the rate: equal at every rate and on every cluster."""
    operators, streams = graph.operators, graph.streams
    columns = (
        operators.ipt, operators.fires_all, streams.source, streams.target, streams.selectivity,
        streams.bytes_per_tuple(),
    )  # fmt: skip
    digest = blake2b(digest_size=NUMBER.itemsize)
    hash_arrays(digest.update, columns)
    digest.update(" ".join(f"{share:.{DIGITS}g}" for share in _shares(graph)).encode())
    return int.from_bytes(digest.digest(), "big")


def _shares(graph: StreamGraph) -> Floats:
    """Share of every operator in the rate of all sources."""
    shares: Floats = graph.operators.rate / (float(graph.operators.rate.sum()) or 1.0)
    return shares


class Sketch(NamedTuple):
    """Facts of a graph that are equal or close for its near copies."""

    topology: int  # hash
    costs: NDArray[np.int16]  # [8]

    @classmethod
    def of(cls, graph: StreamGraph) -> "Sketch":
        """Sketch of a graph.

        A number is the logarithm of a sum of costs, whose weights are halved from one operator or
        stream to the next. Costs within 1 % have sums within 1 %.
        """
        operators, streams = graph.operators, graph.streams
        digest = blake2b(digest_size=TOPOLOGY.itemsize)
        hash_arrays(digest.update, (operators.fires_all, streams.source, streams.target))
        sums = [
            *_fading_sums(operators.ipt, 3), *_fading_sums(streams.bytes_per_tuple(), 3),
            *_fading_sums(streams.selectivity, 1), *_fading_sums(_shares(graph), 1),
        ]  # fmt: skip
        with np.errstate(divide="ignore"):
            steps = np.round(np.log(sums) / STEP)
        costs = np.clip(steps, np.iinfo(COST).min, np.iinfo(COST).max).astype(np.int16)
        return cls(int.from_bytes(digest.digest(), "big"), costs)


def _fading_sums(costs: Floats, count: int) -> list[float]:
    """Sums Σⱼ 2⁻ʲ costs[start + j], around the end, from evenly spaced starts."""
    weights = 0.5 ** np.arange(len(costs))
    starts = [i * len(costs) // count for i in range(count)]
    return [float(weights @ np.roll(costs, -start)) for start in starts]


@dataclass(frozen=True, slots=True, eq=False)
class SketchedGraphs:
    """Graphs by their sketches, among which near copies of others are found.

    Examples
    --------
    >>> from streamplace import Operator
    >>> first, near, other = (
    ...     StreamGraph.of("g", [Operator("a", ipt=ipt, rate=1e4)]) for ipt in (100, 101, 103))
    >>> graphs = SketchedGraphs.of([first])
    >>> first in graphs, near in graphs, other in graphs
    (True, True, False)
    """

    topology: NDArray[np.uint32]  # [G], ascending
    costs: NDArray[np.int16]  # [G, 8]

    @classmethod
    def of(cls, graphs: Iterable[StreamGraph]) -> "SketchedGraphs":
        """Sketches of graphs, each once."""
        distinct = {graph_number(graph): graph for graph in graphs}
        sketches = [Sketch.of(distinct[number]) for number in sorted(distinct)[:MAX_GRAPHS]]
        rows = sorted((sketch.topology, *sketch.costs.tolist()) for sketch in sketches)
        table = np.array(rows, np.int64).reshape(-1, 1 + COSTS)
        return cls(table[:, 0].astype(np.uint32), table[:, 1:].astype(np.int16))

    def __contains__(self, graph: StreamGraph) -> bool:
        sketch = Sketch.of(graph)
        first, end = np.searchsorted(self.topology, [sketch.topology, sketch.topology + 1])
        apart = np.abs(self.costs[first:end].astype(np.int32) - sketch.costs)
        return bool((apart <= MAX_STEPS).all(axis=1).any())

    def __len__(self) -> int:
        return len(self.topology)

    def __or__(self, other: "SketchedGraphs") -> "SketchedGraphs":
        topology = np.concatenate([self.topology, other.topology])
        costs, order = np.concatenate([self.costs, other.costs]), np.argsort(topology)
        return SketchedGraphs(topology[order], costs[order])

    def text(self) -> str:
        """Sketches as a text, with the upper and lower bytes of each column one after the other."""
        columns = np.ascontiguousarray(self.costs.T, COST)
        pairs = columns.view(np.uint8).reshape(COSTS, -1, COST.itemsize)
        content = self.topology.astype(TOPOLOGY).tobytes() + pairs.swapaxes(1, 2).tobytes()
        return b64encode(zlib.compress(content, 9)).decode()

    @classmethod
    def from_text(cls, text: Any) -> "SketchedGraphs":
        """Sketches of a text; none if it is damaged."""
        size = TOPOLOGY.itemsize + COSTS * COST.itemsize
        with suppress(TypeError, ValueError, zlib.error):
            packed = b64decode(text, validate=True)
            unpacker = zlib.decompressobj()
            content = unpacker.decompress(packed, MAX_GRAPHS * size + 1)
            n, rest = divmod(len(content), size)
            if unpacker.eof and not rest:
                topology = np.frombuffer(content, TOPOLOGY, n)
                pairs = np.frombuffer(content, np.uint8, offset=n * TOPOLOGY.itemsize)
                columns = pairs.reshape(COSTS, COST.itemsize, n).swapaxes(1, 2)
                costs = np.ascontiguousarray(columns).view(COST)[..., 0].T
                order = np.argsort(topology, kind="stable")
                return cls(topology[order].astype(np.uint32), costs[order].astype(np.int16))
        return NO_GRAPHS


NO_GRAPHS = SketchedGraphs.of(())


class WeightGraphs(NamedTuple):
    """Graphs of the trainings of weights."""

    trained_on: SketchedGraphs
    chosen_by: SketchedGraphs  # validation graphs, by whose results the weights were chosen


def described(key: str, graphs: Iterable[StreamGraph]) -> dict[str, str]:
    """Entry of graphs in the description of a training; none without graphs."""
    sketches = SketchedGraphs.of(graphs)
    return {key: sketches.text()} if len(sketches) else {}


def weight_graphs(placers: Iterable[str]) -> dict[str, WeightGraphs]:
    """Graphs of the trainings of each placer, by its label.

    Placers without weights, or whose weights do not describe their training, are omitted.
    """
    graphs_by_label: dict[str, WeightGraphs] = {}
    for placer in aliased_placers(placers):
        for path in weights_of(named_placer(placer.spec)):
            with suppress(FormatError):  # the placer itself reports it, for every graph
                others = graphs_by_label.get(placer.label, NO_WEIGHT_GRAPHS)
                graphs_by_label[placer.label] = _union(others, _of_file(path))
    return {label: graphs for label, graphs in graphs_by_label.items() if any(map(len, graphs))}


def trainings_of(placers: Iterable[str]) -> dict[str, str]:
    """Label of a placer → the placer without its weights, if several differ in their seed alone.

    Their trainings have different seeds, but equal options, objective, rates, start and number of
    problems.
    """
    labels: dict[str, dict[str, Any]] = {}  # seed by label, by the other facts of the training
    names: dict[str, str] = {}
    for placer in aliased_placers(placers):
        if "weights" not in named_placer(placer.spec).options:
            continue
        (path,) = weights_of(named_placer(placer.spec))
        with suppress(FormatError):  # as above
            document = read_weights(path).document
            training = document["training"]
            facts = {key: training.get(key) for key in ("objective", "rates", "problems", "start")}
            name = _WEIGHTS.sub("", placer.spec)
            rest = json.dumps([name, document["config"], facts], sort_keys=True)
            names[rest] = name
            labels.setdefault(rest, {})[placer.label] = training.get("seed")
    return {
        label: names[rest]
        for rest, seeds in labels.items()
        if len(set(map(str, seeds.values()))) == len(seeds) > 1
        for label in seeds
    }


NO_WEIGHT_GRAPHS = WeightGraphs(NO_GRAPHS, NO_GRAPHS)


@loaded
def _of_file(path: Path) -> WeightGraphs:
    return _of_training(read_weights(path).document["training"])


def _of_training(training: Any) -> WeightGraphs:
    """Graphs in the description of a training, and of the training that it started from.

    There are none in a damaged description, or for weights before the first epoch.
    """
    if not isinstance(training, dict):
        return NO_WEIGHT_GRAPHS
    before = _of_training(training.get("start"))
    if not training.get("epochs"):
        return before
    trained_on, chosen_by = (
        SketchedGraphs.from_text(training.get(key, "")) for key in (TRAINED_ON, CHOSEN_BY)
    )
    return _union(before, WeightGraphs(trained_on, chosen_by))


def _union(one: WeightGraphs, other: WeightGraphs) -> WeightGraphs:
    return WeightGraphs(one.trained_on | other.trained_on, one.chosen_by | other.chosen_by)
