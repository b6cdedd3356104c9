"""Which layout a job should have, and that it never costs what it has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.decide.decision import Candidate, RateInterval, decide, interval


def candidate(name: str, value: float, moves: int = 1, mode: str | None = None) -> Candidate:
    """A layout of which 10 % are uncertain."""
    return Candidate(name, {}, interval([value], 0.1), moves, mode)  # type: ignore[arg-type]


PRESENT = candidate("present", 100.0, 0)


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        ([], "present"),
        ([candidate("found", 90.0)], "present"),
        ([candidate("found", 120.0)], "present"),  # 108 to 132, and 90 to 110
        ([candidate("found", 150.0)], "found"),
        ([candidate("found", 150.0), candidate("SLOTS", 145.0, 5, "SLOTS")], "SLOTS"),
        ([candidate("found", 200.0), candidate("SLOTS", 145.0, 5, "SLOTS")], "found"),
        ([candidate("found", 150.0, 9), candidate("even", 149.0, 3)], "even"),
        ([candidate("found", 150.0, 3), candidate("even", 149.0, 3)], "found"),
    ],
)
def test_of_layouts_that_may_be_equal_the_one_that_costs_least_is_chosen(
    others: list[Candidate], chosen: str
) -> None:
    """The present one, then what one line of configuration does, then the fewest moves."""
    assert decide(PRESENT, others).chosen.name == chosen


def test_a_layout_that_may_be_worse_than_the_present_one_is_not_recommended() -> None:
    """However likely it is to be as good as the best one."""
    wide = Candidate("SLOTS", {}, RateInterval(20.0, 140.0, 300.0), 1, "SLOTS")
    assert decide(PRESENT, [candidate("found", 150.0), wide]).chosen.name == "found"


def test_a_layout_that_is_better_for_sure_is_chosen_beside_one_that_may_be_anything() -> None:
    """Flink may choose one that carries 50, or one that carries 400."""
    wide = Candidate("NONE", {}, RateInterval(50.0, 160.0, 400.0), 1, "NONE")
    assert decide(PRESENT, [candidate("found", 150.0), wide]).chosen.name == "found"


def test_slots_is_recommended_by_its_line_of_configuration() -> None:
    best = candidate("the layout that was found", 150.0)
    answer = decide(PRESENT, [best, candidate("Flink's own layout SLOTS", 145.0, 5, "SLOTS")])
    assert answer.sentences() == [
        "Flink's own layout SLOTS should carry 145 tuples/s (130.5 to 159.5), and the layout that "
        "was found 150 tuples/s (135 to 165), which may be the same; it needs no pins, so nothing "
        "is moved. Add this line to the configuration of the JobManager, restart it, and submit "
        "the job again: taskmanager.load-balance.mode: SLOTS"
    ]


def test_layouts_that_carry_all_that_is_offered_are_equal() -> None:
    """However much more than that one of them could carry."""
    present = Candidate("present", {}, interval([100.0]).up_to(50.0))
    other = Candidate("found", {}, interval([900.0]).up_to(50.0), 3)
    answer = decide(present, [other])
    assert answer.stays
    assert answer.gain == 0


def test_the_gain_is_told_by_its_lower_end() -> None:
    assert decide(PRESENT, [candidate("found", 200.0)]).gain == pytest.approx(80.0)


@given(
    st.floats(0, 1e6),
    st.lists(
        st.tuples(
            st.floats(0, 1e6),
            st.floats(0, 0.9),
            st.integers(0, 9),
            st.sampled_from(["SLOTS", None]),
        )
    ),
)
def test_no_choice_is_worse_than_the_present_layout(
    now: float, others: list[tuple[float, float, int, str | None]]
) -> None:
    """Not even at the lower end of its interval; and none that is better for sure is passed by."""
    present = candidate("present", now, 0)
    answer = decide(
        present,
        [
            Candidate(str(i), {}, interval([value], width), moves, mode)  # type: ignore[arg-type]
            for i, (value, width, moves, mode) in enumerate(others)
        ],
    )
    if not answer.stays:
        assert answer.chosen.carries.low >= now
    assert answer.chosen.carries.high >= answer.best.carries.low


def test_a_model_that_kept_half_its_promise_is_believed_by_half() -> None:
    answer = decide(PRESENT, [candidate("found", 200.0)]).damped(0.5)
    assert answer.chosen.name == "found"
    assert answer.chosen.carries == pytest.approx((140.0, 150.0, 160.0))
    assert answer.gain == pytest.approx(40.0)


def test_a_model_that_kept_nothing_moves_nothing() -> None:
    """However much more it promises: such a correction would overshoot."""
    assert decide(PRESENT, [candidate("found", 900.0)]).damped(0.0).stays
