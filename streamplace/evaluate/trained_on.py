"""Graphs that learned placers were trained on, as short hashes in the files of their weights."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from streamplace.errors import FormatError
from streamplace.evaluate.records import hash_arrays
from streamplace.evaluate.runner import weights_of
from streamplace.io.weights import read_tensors
from streamplace.learn.model_weights import loaded
from streamplace.model.graph import StreamGraph
from streamplace.placers.named import aliased_placers, named_placer

KEY = "graphs"
"""Entry of the hashes in the description of a training."""
MAX_GRAPHS = 20_000
"""Graphs whose hashes are kept, of 8 bytes each; of more, the smallest hashes are."""
NUMBER = np.dtype(">u8")
_WEIGHTS = re.compile(r":weights=[^:]*")
DIGITS = 6
"""Significant digits of a source's share of the rate, which scaling rounds."""


def graph_number(graph: StreamGraph) -> int:
    """Hash of CPU, streams and shares of the rate: equal at every rate and on every cluster."""
    operators, streams = graph.operators, graph.streams
    total = float(operators.rate.sum()) or 1.0
    columns = (
        operators.ipt, operators.fires_all, streams.source, streams.target, streams.selectivity,
        streams.bytes_per_tuple(),
    )  # fmt: skip
    digest = blake2b(digest_size=NUMBER.itemsize)
    hash_arrays(digest.update, columns)
    digest.update(" ".join(f"{rate / total:.{DIGITS}g}" for rate in operators.rate).encode())
    return int.from_bytes(digest.digest(), "big")


def described(graphs: Iterable[StreamGraph]) -> dict[str, str]:
    """Entry of the graphs in the description of a training."""
    kept = np.array(sorted({graph_number(graph) for graph in graphs})[:MAX_GRAPHS], NUMBER)
    return {KEY: b64encode(kept.tobytes()).decode()}


def trained_on(placers: Iterable[str]) -> dict[str, frozenset[int]]:
    """Hashes of the graphs that each placer of a list was trained on, by its label.

    Placers without weights are omitted, and those whose weights do not say it.
    """
    hashes: dict[str, frozenset[int]] = {}
    for placer in aliased_placers(placers):
        for path in weights_of(named_placer(placer.spec)):
            with suppress(FormatError):  # which the placer itself reports, for every graph
                hashes[placer.label] = hashes.get(placer.label, frozenset()) | _of_file(path)
    return {label: numbers for label, numbers in hashes.items() if numbers}


def trainings_of(placers: Iterable[str]) -> dict[str, str]:
    """Label of a placer → the placer without its weights, where several differ by seed alone.

    These have weights of trainings with other seeds, but equal options, objective and rates, of as
    many problems.
    """
    labels: dict[str, dict[str, Any]] = {}  # seed by label, by what else was trained
    names: dict[str, str] = {}
    for placer in aliased_placers(placers):
        if "weights" not in named_placer(placer.spec).options:
            continue
        (path,) = weights_of(named_placer(placer.spec))
        with suppress(FormatError):  # as above
            document = read_tensors(path)[0]
            training = document.get("training", {})
            facts = {key: training.get(key) for key in ("objective", "rates", "problems", "start")}
            name = _WEIGHTS.sub("", placer.spec)
            rest = json.dumps([name, document.get("config"), facts], sort_keys=True)
            names[rest] = name
            labels.setdefault(rest, {})[placer.label] = training.get("seed")
    return {
        label: names[rest]
        for rest, seeds in labels.items()
        if len(set(map(str, seeds.values()))) == len(seeds) > 1
        for label in seeds
    }


@loaded
def _of_file(path: Path) -> frozenset[int]:
    return _numbers(read_tensors(path)[0].get("training"))


def _numbers(training: Any) -> frozenset[int]:
    """Hashes in the description of a training, and of the one that it began from.

    No hashes if it has none, or damaged ones, and for weights before the first epoch.
    """
    if not isinstance(training, dict):
        return frozenset()
    text = training.get(KEY, "") if training.get("epochs") else ""
    try:
        numbers = np.frombuffer(b64decode(text, validate=True), NUMBER).tolist()
    except (TypeError, ValueError):
        numbers = []
    return frozenset(numbers) | _numbers(training.get("start"))
