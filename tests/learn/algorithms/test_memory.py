"""The memory of good placements."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamplace.learn.algorithms.memory import EMPTY, PlacementMemory


def remembering(rewards: list[float], places: int = 3) -> PlacementMemory:
    """Memory of one problem that saw placement i with reward i."""
    memory = PlacementMemory(1, places, 4)
    memory.add(
        0, np.array([[0, i, 0] for i in range(len(rewards))]).reshape(-1, 3), np.array(rewards)
    )
    return memory


def replayed(memory: PlacementMemory, most: int = 9, threshold: float = 0.8) -> list[int]:
    return memory.replay(0, most, threshold, 3)[0][:, 1].tolist()


def test_the_best_are_kept() -> None:
    """Best first, of equals the first."""
    memory = remembering([0.1, 0.9, 0.3, 0.9, 0.2])
    assert memory.rewards.tolist() == [[0.9, 0.9, 0.3]]
    assert memory.placements[0, :, 1].tolist() == [1, 3, 2]


def test_good_ones_are_replayed_and_else_the_best() -> None:
    """As many as wanted; nothing where nothing is remembered."""
    memory = remembering([0.8, 0.95, 0.79])
    assert replayed(memory) == [1, 0]
    assert replayed(memory, most=1) == [1]
    assert replayed(memory, most=0) == []
    assert replayed(remembering([0.2, 0.5, 0.1])) == [1]
    assert replayed(remembering([])) == []


def test_problems_have_memories_of_their_own() -> None:
    memory = PlacementMemory(2, 1, 2)
    memory.add(1, np.array([[1]]), np.array([0.5]))
    assert [memory.best(0), memory.best(1)] == [0.0, 0.5]


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), max_size=5))
def test_the_order_of_arrival_does_not_matter(arrivals: list[list[int]]) -> None:
    """A memory holds the best distinct placements of all that came."""
    memory = PlacementMemory(1, 4, 1)
    for arrived in arrivals:
        worth = np.array(arrived, float)
        memory.add(0, np.array(arrived)[:, None], worth / 10)
    best = sorted({i for arrived in arrivals for i in arrived}, reverse=True)[:4]
    assert memory.placements[0, : len(best), 0].tolist() == best
    assert memory.rewards[0].tolist() == [i / 10 for i in best] + [EMPTY] * (4 - len(best))
