"""Jobs and rates for which no advice is given, because it would be wrong."""

from collections.abc import Callable
from typing import Any

import pytest
from lazy_flink import Clock
from shop_flink import ShopFlink, advised

from streamplace.engines.flink.measure.job_watch import seconds_running
from streamplace.engines.flink.measure.steady import UnsteadyJob, agree
from streamplace.errors import SettingError, StreamplaceError
from streamplace.planning.offers import Catalogue, Offer


def test_back_pressure_hides_the_rate_that_is_multiplied(shop: Callable[..., ShopFlink]) -> None:
    """A multiple is refused; a rate is planned for, and the unknown is named."""
    with pytest.raises(SettingError, match=r"'src' may be offered more.*give --rate in tuples/s"):
        advised(shop(blocked=1.0))
    advice = advised(shop(blocked=1.0), "200")
    assert advice.offered is None
    text = " ".join(str(advice).split())
    assert "back-pressured 50.0 % of the time, so it is offered more than that" in text


def test_a_young_job_is_not_measured(shop: Callable[..., ShopFlink]) -> None:
    """It says how long to wait, before it has watched anything."""
    flink = shop(duration=20_000)
    with pytest.raises(UnsteadyJob, match=r"has run for 20 s, .*wait 40 s, or lower --warm-up"):
        advised(flink)
    assert flink.asked == [("GET /jobs/job", None)]


def test_a_restarted_job_is_as_old_as_its_restart() -> None:
    """The job's duration counts from its first start."""
    document: Any = {"duration": 900_000, "now": 50_000, "timestamps": {"RUNNING": 20_000.0}}
    assert seconds_running(document) == 30.0
    assert seconds_running(document | {"timestamps": {"RUNNING": 0.0}}) == 900.0


def test_windows_that_differ_are_refused(shop: Callable[..., ShopFlink]) -> None:
    """A source that begins to emit twice as much in the second window."""
    with pytest.raises(UnsteadyJob, match=r"source 'src' sent 1\d\d tuples/s and then"):
        advised(shop(bend=172.0))  # in the last of the windows


@pytest.mark.parametrize("late", [0.25, 1.0, 30.0])
def test_windows_may_differ_by_when_they_were_counted_but_not_by_more(late: float) -> None:
    """A constant source seemed to send 4351 and 3722 tuples/s in windows of 8 s."""
    assert agree(4351.0, 3722.0, 8.0, late)
    assert not agree(4351.0, 3722.0, 8.0, 0.0)
    assert not agree(4351.0, 3000.0, 8.0, late)


def test_counters_that_stand_still_are_no_two_windows(
    shop: Callable[..., ShopFlink], clock: Clock
) -> None:
    """Two windows need three moments."""
    flink = shop()
    flink.vertices["v0"].rates = {name: 0.0 for name in flink.vertices["v0"].rates}  # type: ignore[misc]
    with pytest.raises(UnsteadyJob, match="watch for longer with --seconds"):
        advised(flink)


def test_garbage_collection_that_dominates_is_refused(shop: Callable[..., ShopFlink]) -> None:
    """One TaskManager of the job is enough."""
    assert advised(shop(garbage={"dev-1": 0.1})).plan.machines
    with pytest.raises(UnsteadyJob, match=r"garbage collection took 50% of the time .* 'dev-1'"):
        advised(shop(garbage={"dev-1": 0.5}))


@pytest.mark.parametrize("rate", ["0x", "0", "-1", "fast", "2xx", "x", "1e99x", "nan"])
def test_rates_that_are_none_are_refused(shop: Callable[..., ShopFlink], rate: str) -> None:
    """Before anything is asked."""
    flink = shop()
    with pytest.raises(StreamplaceError):
        advised(flink, rate)
    assert flink.asked == []


def test_a_rate_that_nothing_carries_is_refused(shop: Callable[..., ShopFlink]) -> None:
    """The message names the largest rate."""
    offers = Catalogue.of([Offer("small", 0.1, at_most=1)])
    with pytest.raises(StreamplaceError, match="a plan was found for up to"):
        advised(shop(), "100x", offers)
