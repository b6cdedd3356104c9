"""Layouts in the order of their predictions, and the one that is better for sure."""

import pytest

from streamplace.engines.flink.decide.decision import Candidate, RateInterval, decide, interval


def candidate(name: str, value: float, moves: int = 1) -> Candidate:
    """A layout of which 10 % are uncertain."""
    return Candidate(name, {}, interval([value], 0.1), moves)


PRESENT = candidate("present", 100.0, 0)


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        ([], "present"),
        ([candidate("found", 90.0)], "present"),
        ([candidate("found", 120.0)], "present"),  # 108 to 132, and 90 to 110
        ([candidate("found", 150.0)], "found"),
        ([candidate("found", 150.0, 9), candidate("even", 149.0, 3)], "even"),
        ([candidate("found", 150.0, 3), candidate("even", 149.0, 3)], "found"),
        (
            [Candidate("SLOTS", {}, RateInterval(20, 140, 300), 1, "SLOTS")],
            "present",
        ),  # may be worse
        ([Candidate("SLOTS", {}, interval([150.0], 0.1), can_be_pinned=False)], "present"),
    ],
)
def test_the_better_layout_is_better_for_sure_and_moves_least(
    others: list[Candidate], chosen: str
) -> None:
    assert decide(PRESENT, others).chosen.name == chosen


def test_layouts_that_carry_all_that_is_offered_are_equal() -> None:
    """However much more than that one of them could carry."""
    present = Candidate("present", {}, interval([100.0]).up_to(50.0))
    other = Candidate("found", {}, interval([900.0]).up_to(50.0), 3)
    assert decide(present, [other]).stays


def test_candidates_are_ordered_by_what_they_should_carry() -> None:
    answer = decide(PRESENT, [candidate("low", 10.0), candidate("high", 200.0)])
    assert [one.name for one in answer.candidates] == ["high", "present", "low"]
    assert answer.best.name == "high"
