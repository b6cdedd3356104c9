from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.local.config import cluster_settings
from streamplace.engines.flink.pin.names import GROUPS, future_devices
from streamplace.engines.flink.pin.spread import MOST_SLOTS, SpreadLimits, offers
from streamplace.errors import PlacementError

Vectors = list[list[int]]


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


def filled(
    managers: dict[str, TaskManager], demands: Sequence[dict[str, int]], slots: list[int]
) -> list[Counter[str]]:
    """Number of slots by TaskManager, each on the first in a random order that fits."""
    random, found = Random(repr(slots)), [Counter[str]() for _ in demands]
    for j in slots:
        device = random.choice([d for d in managers if managers[d].fits(demands[j])])
        managers[device].take(demands[j])
        found[j][device] += 1
    return found


@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 7), min_size=n, max_size=n).filter(any), max_size=6
        )
    ),
    st.integers(0, 2),
    st.randoms(use_true_random=False),
)
def test_any_order_of_slots_ends_with_the_counts(
    vectors: Vectors, room: int, random: Random
) -> None:
    """Several groups at once, slots in random order, each on a random TaskManager that fits.

    Devices that came later, and those that are not prepared, take none.
    """
    size = len(vectors[0]) if vectors else 2
    devices = [f"dev-{d}" for d in range(size)]
    every = [*devices, *future_devices(devices, room)]
    limits = SpreadLimits.untouched(every, layers=len(vectors))
    managers = {d: TaskManager(offers(d, every, len(vectors))) for d in every}
    managers["bare"] = TaskManager({"dev-bare": 10_000})
    wanted = [{d: n for d, n in zip(devices, vector, strict=True) if n} for vector in vectors]
    demands = [limits.take(counts) for counts in wanted]
    slots = [j for j, counts in enumerate(wanted) for _ in range(sum(counts.values()))]
    random.shuffle(slots)
    assert [dict(counts) for counts in filled(managers, demands, slots)] == wanted
    for demand in demands:  # and there is no room for one more
        assert not any(manager.fits(demand) for manager in managers.values())


def test_what_a_task_manager_offers_does_not_grow_with_the_cluster() -> None:
    """Of a hundred devices, with room for ten more; beyond 256 each needs to be named once."""
    sizes = {n: len(offers("dev-0", [f"dev-{i}" for i in range(n)])) for n in (5, 100, 1000)}
    assert sizes[5] == 1 + GROUPS + 5 * GROUPS
    assert sizes[100] < sizes[5] * 1.3
    assert sizes[1000] == 1 + GROUPS + 1000
    written = cluster_settings([f"dev-{i}" for i in range(100)], room=10)
    assert len(written) == 110
    assert max(map(len, written.values())) < 20_000


@pytest.mark.parametrize("count", [7, 500, 998, MOST_SLOTS])
def test_the_limit_is_exact_up_to_the_largest_count(count: int) -> None:
    """Count slots fit, one more does not, be it the largest number of the group or not."""
    demand = SpreadLimits.untouched(["a", "b"]).take({"a": count, "b": MOST_SLOTS})
    for device, number in {"a": count, "b": MOST_SLOTS}.items():
        offered = offers(device, ["a", "b"])
        assert min(offered[name] // amount for name, amount in demand.items()) == number


def test_what_the_scheme_cannot_count_is_refused() -> None:
    """More slots than the amounts can tell apart, and devices that are not there."""
    with pytest.raises(PlacementError, match="at most 999"):
        SpreadLimits.untouched(["a"]).take({"a": MOST_SLOTS + 1})
    with pytest.raises(PlacementError, match="'z' is not a device"):
        SpreadLimits.untouched(["a"]).take({"z": 1})
