"""Problem instances of SAGA."""

import json
from functools import partial
from itertools import cycle

import pytest
from formats import read_as
from fuzz.targets import SEEDS

import streamplace

PIPE = json.loads((SEEDS / "saga.json").read_text())
read = partial(read_as, "saga", "instance.json")


@pytest.mark.parametrize("unit", [1, 1e8, 3e11])
def test_costs_and_sizes_are_divided_by_speeds(tmp_path, unit):
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


def test_the_order_of_sets_does_not_matter(tmp_path):
    turned = json.loads(json.dumps(PIPE))
    for rows in (*turned["task_graph"].values(), *turned["network"].values()):
        rows.reverse()
    one, other = read(tmp_path, PIPE), read(tmp_path, turned)
    assert (one.graph, one.cluster) == (other.graph, other.cluster)


def test_an_infinite_speed_is_unlimited(tmp_path):
    """SAGA gives it to links from a node to itself, as null or as JSON of Python writes it."""
    document = json.loads(json.dumps(PIPE))
    for link, speed in zip(document["network"]["edges"], cycle((None, float("inf")))):
        link["speed"] = speed
    assert "Infinity" in json.dumps(document)
    told = streamplace.simulate(read(tmp_path, document), {"a": "x", "b": "y", "c": "y"})
    assert told.value == pytest.approx(2 / 1 + (6 + 1.5) / 2)
