"""Which layout a job should have, and that it never costs what it has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.decide.decision import Candidate, RateInterval, decide, interval


def candidate(name: str, value: float, moves: int = 1, mode: str | None = None) -> Candidate:
    """A layout of which 10 % are uncertain."""
    return Candidate(name, {}, interval([value], 0.1), moves, mode)  # type: ignore[arg-type]


def wide(*carries: float) -> Candidate:
    """A layout of Flink's own of which it may choose a worse or a better one."""
    return Candidate("SLOTS", {}, RateInterval(*carries), 1, "SLOTS")


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
        ([candidate("found", 150.0), wide(20, 140, 300)], "found"),  # may be worse than now
        ([candidate("found", 150.0), wide(50, 160, 400)], "found"),  # found is better for sure
    ],
)
def test_of_layouts_that_may_be_equal_the_one_that_costs_least_is_chosen(
    others: list[Candidate], chosen: str
) -> None:
    """The present one, then what one line of configuration does, then the fewest moves."""
    assert decide(PRESENT, others).chosen.name == chosen


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


def test_a_model_is_believed_by_the_part_of_its_promise_that_it_kept() -> None:
    """The gain is that of the lower end; a model that kept nothing moves nothing."""
    answer = decide(PRESENT, [candidate("found", 200.0)])
    assert answer.gain == pytest.approx(80.0)
    half = answer.damped(0.5)
    assert half.chosen.name == "found"
    assert half.chosen.carries == pytest.approx((140.0, 150.0, 160.0))
    assert half.gain == pytest.approx(40.0)
    assert answer.damped(0.0).stays
