from collections.abc import Callable
from pathlib import Path

from engine_deployments import DEPLOYMENTS, shop

from streamplace.engines.reading import read_deployment
from streamplace.io.placements import read_placement


def test_it_is_a_native_placement(written: Callable[..., Path]) -> None:
    """Whatever reads placements reads it."""
    path = written("json") / "placement.json"
    assert read_placement(path, shop()) == DEPLOYMENTS["shop"].placement


def test_a_placement_of_subtasks_comes_back_as_one(written: Callable[..., Path]) -> None:
    """Counts per device survive the file."""
    deployment = read_deployment(written("json", "shop by subtasks") / "placement.json", shop())
    assert deployment.is_split
    assert deployment.counts["join"] == {"box0": 1, "box1": 1}
