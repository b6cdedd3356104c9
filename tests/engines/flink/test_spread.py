from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.spread import MOST_SLOTS, offers, spread_demand
from streamplace.errors import PlacementError


class TaskManager:
    """What Flink keeps of a TaskManager: what is left of each resource."""

    def __init__(self, left: dict[str, int]) -> None:
        self.left = left

    def fits(self, demand: dict[str, int]) -> bool:
        """Whether a slot can be cut from it."""
        return all(self.left.get(name, 0) >= amount for name, amount in demand.items())

    def take(self, demand: dict[str, int]) -> None:
        """Cut a slot."""
        for name, amount in demand.items():
            self.left[name] -= amount


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 7), min_size=n, max_size=n), max_size=4)
    ),
    st.randoms(use_true_random=False),
)
def test_any_order_of_slots_ends_with_the_counts(vectors: list[list[int]], random: object) -> None:
    """Several groups at once, slots in random order, each on a random TaskManager that fits."""
    size = len(vectors[0]) if vectors else 1
    devices = [f"dev-{d}" for d in range(size)]
    managers = {d: TaskManager(offers(d, devices, groups=len(vectors))) for d in devices}
    wanted = [dict(zip(devices, vector, strict=True)) for vector in vectors]
    demands = [spread_demand(counts, devices, j) for j, counts in enumerate(wanted)]
    slots = [j for j, vector in enumerate(vectors) for _ in range(sum(vector))]
    random.shuffle(slots)
    found = [Counter(dict.fromkeys(devices, 0)) for _ in vectors]
    for j in slots:
        device = random.choice([d for d in devices if managers[d].fits(demands[j])])
        managers[device].take(demands[j])
        found[j][device] += 1
    assert [dict(counts) for counts in found] == wanted
    for demand in demands:  # and there is no room for one more
        assert not any(manager.fits(demand) for manager in managers.values())


@pytest.mark.parametrize("count", [1, 2, 3, 7, 500, 998, MOST_SLOTS])
def test_the_limit_is_exact_up_to_the_largest_count(count: int) -> None:
    """Count slots fit, one more does not."""
    demand = spread_demand({"a": count}, ["a"], 0)["lim-0-dev-a"]
    offer = offers("a", ["a"], 1)["lim-0-dev-a"]
    assert offer // demand == count


def test_what_the_scheme_cannot_count_is_refused() -> None:
    """More slots than the amounts can tell apart, and devices that are not there."""
    with pytest.raises(PlacementError, match="at most 999"):
        spread_demand({"a": MOST_SLOTS + 1}, ["a"], 0)
    with pytest.raises(PlacementError, match="'z' is no device"):
        spread_demand({"z": 1}, ["a"], 0)
