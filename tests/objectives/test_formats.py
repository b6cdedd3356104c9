"""How values of objectives are written."""

from dataclasses import replace

from streamplace.objectives.registry import OBJECTIVES


def test_values_without_a_unit_are_percentages_only_if_they_are_shares_of_the_rate() -> None:
    """A price of ten is not a thousand percent."""
    throughput = OBJECTIVES["throughput"]
    price = replace(throughput, name="price", kind="")
    assert throughput.format(0.625) == "62.5 %"
    assert price.format(10) == "10"
    assert price.format(0.8) == "0.8"
    assert replace(price, unit="euros").format(10) == "10 euros"
