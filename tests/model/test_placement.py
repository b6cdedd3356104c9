"""Placements: names at the edge, device rows inside."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import PlacementError
from streamplace.model import Placement

OPERATORS, DEVICES = ("src", "join", "sink"), ("d0", "d1")


def test_a_placement_is_a_mapping_of_names() -> None:
    placement = Placement(OPERATORS, DEVICES, [0, 1, 1])
    assert dict(placement) == placement.as_dict() == {"src": "d0", "join": "d1", "sink": "d1"}
    assert "nobody" not in placement
    with pytest.raises(KeyError):
        placement["nobody"]


@given(st.lists(st.integers(0, 1), min_size=3, max_size=3))
def test_names_and_rows_are_two_forms_of_one_placement(index: Any) -> None:
    placement = Placement(OPERATORS, DEVICES, index)
    assert Placement.of(OPERATORS, DEVICES, placement.as_dict()) == placement


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 1], r"a placement of 3 operators must have 3 values, one each, but comes as \(2,\)"),
        ([0, 1, 2], "operator 'sink' is on device number 2; it must be a whole number from 0 to 1"),
        ([0, 0.5, 0], "operator 'join' is on device number 0.5"),
        (["x", "y", "z"], "a placement of 3 operators must be whole numbers"),
        (3, r"must have 3 values, one each, but comes as \(\)"),
    ],
)
def test_rows_that_are_no_devices_are_refused(index: Any, message: Any) -> None:
    with pytest.raises(PlacementError, match=message):
        Placement(OPERATORS, DEVICES, index)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"join": None}, "operator 'join' is not placed; give it a device"),
        (
            {"join": "d9"},
            "operator 'join' is on the unknown device 'd9'; the cluster has 'd0', 'd1'",
        ),
        ({"stray": "d0"}, "'stray' is placed but is not an operator of the graph; remove it"),
    ],
)
def test_names_that_do_not_fit_are_refused(change: Any, message: Any) -> None:
    assignment = {"src": "d0", "join": "d0", "sink": "d0"} | change
    assignment = {name: device for name, device in assignment.items() if device}
    with pytest.raises(PlacementError, match=message):
        Placement.of(OPERATORS, DEVICES, assignment)


def test_priorities_mean_who_is_first_of_what_is_ready_unless_they_say_otherwise() -> None:
    """Either meaning is part of the placement."""
    plain = Placement(OPERATORS, DEVICES, [0, 1, 1])
    first = Placement(OPERATORS, DEVICES, [0, 1, 1], [3, 2, 1])
    held = Placement(OPERATORS, DEVICES, [0, 1, 1], [3, 2, 1], "order")
    assert (first.queue, held.queue) == ("priority", "order")
    assert plain != first != held
    assert first != plain
    ranks = {"src": 3.0, "join": 2.0, "sink": 1.0}
    assert Placement.of(OPERATORS, DEVICES, held.as_dict(), ranks, "order") == held


@pytest.mark.parametrize(
    ("priority", "queue", "message"),
    [
        ([1, 2, 3], "fifo", "queue is 'fifo'; it must be priority or order"),
        (None, "order", "the queue is order, but no operator has a priority; add them"),
    ],
)
def test_orders_that_cannot_be_are_refused(priority: Any, queue: str, message: str) -> None:
    with pytest.raises(PlacementError, match=message):
        Placement(OPERATORS, DEVICES, [0, 1, 1], priority, queue)
