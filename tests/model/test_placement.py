"""Placements: names at the edge, device rows inside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import PlacementError
from streamplace.model import Placement

OPERATORS, DEVICES = ("src", "join", "sink"), ("d0", "d1")


def test_a_placement_is_a_mapping_of_names():
    placement = Placement(OPERATORS, DEVICES, [0, 1, 1])
    assert dict(placement) == placement.as_dict() == {"src": "d0", "join": "d1", "sink": "d1"}
    assert "nobody" not in placement
    with pytest.raises(KeyError):
        placement["nobody"]


@given(st.lists(st.integers(0, 1), min_size=3, max_size=3))
def test_names_and_rows_are_two_forms_of_one_placement(index):
    placement = Placement(OPERATORS, DEVICES, index)
    assert Placement.of(OPERATORS, DEVICES, placement.as_dict()) == placement


@pytest.mark.parametrize(
    ("index", "order", "place"),
    [
        ([0, 1], (), r"3 operators .*\(2,\)"),
        ([0, 1, 2], (), "operator 'sink' is on device number 2"),
        ([0, 0.5, 0], (), "operator 'join' is on device number 0.5"),
        (["x", "y", "z"], (), "3 operators"),
        (3, (), r"3 values, .*\(\)"),
        ([0, 1, 1], ([1, 2, 3], "fifo"), "queue is 'fifo'"),
        ([0, 1, 1], (None, "order"), "queue is order"),
    ],
)
def test_rows_and_orders_that_cannot_be_are_refused(index, order, place):
    with pytest.raises(PlacementError, match=place):
        Placement(OPERATORS, DEVICES, index, *order)


@pytest.mark.parametrize(
    ("change", "place"),
    [({"join": None}, "'join'"), ({"join": "d9"}, "'join' .*'d9'"), ({"stray": "d0"}, "'stray'")],
)
def test_names_that_do_not_fit_are_refused(change, place):
    assignment = {"src": "d0", "join": "d0", "sink": "d0"} | change
    assignment = {name: device for name, device in assignment.items() if device}
    with pytest.raises(PlacementError, match=place):
        Placement.of(OPERATORS, DEVICES, assignment)


def test_priorities_mean_who_is_first_of_what_is_ready_unless_they_say_otherwise():
    plain = Placement(OPERATORS, DEVICES, [0, 1, 1])
    first = Placement(OPERATORS, DEVICES, [0, 1, 1], [3, 2, 1])
    held = Placement(OPERATORS, DEVICES, [0, 1, 1], [3, 2, 1], "order")
    assert (first.queue, held.queue) == ("priority", "order")
    assert plain != first != held
    assert first != plain
    ranks = {"src": 3.0, "join": 2.0, "sink": 1.0}
    assert Placement.of(OPERATORS, DEVICES, held.as_dict(), ranks, "order") == held
