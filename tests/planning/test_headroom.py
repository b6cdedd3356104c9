"""Headroom that is derived from restarts and from waiting."""

import pytest
from planning_cases import pipeline

from streamplace.errors import SettingError
from streamplace.planning.headroom import Headroom
from streamplace.planning.offers import Catalogue, Offer

OFFERS = Catalogue.of([Offer("slow", 1.0, mips=1.0), Offer("fast", 2.0, mips=4.0)])


def test_what_waits_during_a_restart_is_worked_off_in_time() -> None:
    """With restart r, catch-up c and rate R, capacity is R · (1 + r / c)."""
    share = Headroom(restart=60, catch_up=300).share(pipeline(), OFFERS)
    capacity = 1 / (1 - share)
    assert (capacity - 1) * 300 == pytest.approx(60)


def test_queues_are_as_short_as_asked() -> None:
    """On the slowest core, the heaviest operator of three uses up a third of the latency."""
    asked = Headroom(latency=0.03, variability=0.5)
    use = 1 - asked.share(pipeline(), OFFERS)
    seconds = 8000 / 1e6
    assert 0.5 * use / (1 - use) * seconds == pytest.approx(0.01)


def test_shares_of_headroom_multiply() -> None:
    """What is flat stays free of what the others leave."""
    both = Headroom(restart=1, catch_up=1, flat=0.5)
    assert both.share(pipeline(), OFFERS) == pytest.approx(0.75)
    assert Headroom().share(pipeline(), OFFERS) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restart": -1}, "restart is -1; it must be 0 or more"),
        ({"catch_up": 0}, "catch_up is 0 s; it must be above 0"),
        ({"latency": float("nan")}, "latency is nan s; it must be above 0"),
        ({"flat": 1}, "headroom is 1; it must be at least 0 and less than 1"),
    ],
)
def test_impossible_headroom_is_refused(options: dict[str, float], message: str) -> None:
    """In one line."""
    with pytest.raises(SettingError, match=message):
        Headroom(**options)
