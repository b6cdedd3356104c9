"""Problem instances of SAGA."""

import json
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from fuzz.targets import SEEDS

import streamplace
from streamplace.errors import StreamplaceError
from streamplace.io.registry import FORMATS
from streamplace.model import Problem

PIPE = json.loads((SEEDS / "saga.json").read_text())


def read(folder: Path, document: Any) -> Problem:
    """Problem that is read from a document."""
    path = folder / "instance.json"
    path.write_text(json.dumps(document))
    (problem,) = FORMATS["saga"].read(path)
    return problem


@pytest.mark.parametrize("unit", [1, 1e8, 3e11])
def test_costs_and_sizes_are_divided_by_speeds(tmp_path: Path, unit: float) -> None:
    """2 on the node of speed 1, 10 over the link of speed 5, and 7.5 on the node of speed 2.

    Costs and speeds may be cycles and hertz; only their ratio counts.
    """
    document = json.loads(json.dumps(PIPE))
    for task in document["task_graph"]["tasks"]:
        task["cost"] *= unit
    for node in document["network"]["nodes"]:
        node["speed"] *= unit
    told = streamplace.simulate(read(tmp_path, document), {"a": "x", "b": "y", "c": "y"})
    assert told.value == pytest.approx(2 / 1 + 10 / 5 + (6 + 1.5) / 2)


def test_the_order_of_sets_does_not_matter(tmp_path: Path) -> None:
    """SAGA writes them in whatever order they have."""
    turned = json.loads(json.dumps(PIPE))
    for rows in (*turned["task_graph"].values(), *turned["network"].values()):
        rows.reverse()
    one, other = read(tmp_path, PIPE), read(tmp_path, turned)
    assert (one.graph, one.cluster) == (other.graph, other.cluster)


def test_an_infinite_speed_is_unlimited(tmp_path: Path) -> None:
    """SAGA gives it to links from a node to itself, as null or as JSON of Python writes it."""
    document = json.loads(json.dumps(PIPE))
    for link, speed in zip(document["network"]["edges"], cycle((None, float("inf")))):
        link["speed"] = speed
    assert "Infinity" in json.dumps(document)
    told = streamplace.simulate(read(tmp_path, document), {"a": "x", "b": "y", "c": "y"})
    assert told.value == pytest.approx(2 / 1 + (6 + 1.5) / 2)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda d: d["network"]["edges"].clear(), "'x' and 'y' have no link, or one of speed 0"),
        (lambda d: d["network"]["nodes"].pop(), "ends at 'x', which is not a node; add the node"),
        (lambda d: d.pop("network"), "network is missing; add it"),
        (lambda d: d["network"]["nodes"][0].update(speed=0), "device 'y' has mips 0"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, spoil: Any, complaint: str) -> None:
    document = json.loads(json.dumps(PIPE))
    spoil(document)
    with pytest.raises(StreamplaceError, match=f"instance.json: .*{complaint}"):
        read(tmp_path, document)
