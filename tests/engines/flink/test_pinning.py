import pytest

from streamplace.engines.flink.pinning import pinning, vectors_of
from streamplace.errors import PlacementError

DEVICES = ["a", "b", "c"]


def test_operators_on_one_device_share_its_group() -> None:
    """A group is a processing element; parallelism inside it is free."""
    answer = pinning({"src": ["a"], "map": ["a", "a"], "sink": ["b"]}, DEVICES)
    assert answer.operators == {"src": "a", "map": "a", "sink": "b"}
    assert answer.parallelism == {}


def test_operators_placed_alike_subtask_by_subtask_share_a_spread_group() -> None:
    """So that Flink may fuse them; equal counts in another order are another group."""
    answer = pinning({"u": ["a", "b"], "v": ["a", "b"], "w": ["b", "a"]}, DEVICES)
    assert answer.operators == {"u": "spread-0", "v": "spread-0", "w": "spread-1"}


def test_spread_groups_take_the_free_indexes_in_turn() -> None:
    """Those that other jobs hold are left alone, and running out of them is told."""
    vectors = {"u": ["a", "b"], "v": ["b", "a"]}
    assert set(pinning(vectors, DEVICES, free=[4, 9]).groups) == {"spread-4", "spread-9"}
    with pytest.raises(PlacementError, match="free group indexes"):
        pinning(vectors, DEVICES, free=[4])


def test_operators_that_were_fused_when_measured_are_placed_together() -> None:
    """The job knows them by their own names."""
    assert vectors_of({"src -> trim": "a", "map -> out#0": "a", "map -> out#1": "b"}) == {
        "src": ["a"],
        "trim": ["a"],
        "map": ["a", "b"],
        "out": ["a", "b"],
    }


def test_subtasks_are_known_by_their_numbers() -> None:
    """Names with gaps in their numbers are operators of their own."""
    assert vectors_of({"m#0": "a", "m#1": "b", "n#1": "c", "k": "a"}) == {
        "m": ["a", "b"],
        "n#1": ["c"],
        "k": ["a"],
    }


def test_arrows_within_a_name_do_not_part_it() -> None:
    """Operators that were fused when they were measured are placed by their own names."""
    assignment = {"Calc(select=[id -> start, x]) -> out": "a", "in": "b"}
    assert vectors_of(assignment).keys() == {"Calc(select=[id -> start, x])", "out", "in"}
