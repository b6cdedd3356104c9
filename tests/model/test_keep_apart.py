"""Keeping units apart."""

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamplace.model.keep_apart import keep_apart


@st.composite
def cases(draw: Any) -> Any:
    """Up to five units on up to four devices."""
    units, devices = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    cells = st.lists(st.booleans(), min_size=units * devices, max_size=units * devices)
    pairs = draw(
        st.sets(st.sampled_from(list(itertools.combinations(range(units), 2))), min_size=1)
    )
    allowed = np.array(draw(cells)).reshape(units, devices)
    return allowed, np.array(sorted(pairs))


@given(cases())
def test_a_way_is_found_exactly_where_there_is_one(case: Any) -> Any:
    """Compared with trying everything."""
    allowed, pairs = case
    units, devices = allowed.shape

    def fits(chosen: Any) -> Any:
        return allowed[np.arange(units), chosen].all() and all(
            chosen[a] != chosen[b] for a, b in pairs
        )

    found = keep_apart(allowed, pairs)
    possible = any(map(fits, map(list, itertools.product(range(devices), repeat=units))))
    assert (found is not None) == possible
    assert found is None or fits(found.tolist())


def test_a_full_house_is_seated() -> None:
    """As many units as devices, all apart."""
    pairs = np.array(list(itertools.combinations(range(300), 2)))
    found = keep_apart(np.ones((300, 300), bool), pairs)
    assert sorted(found) == list(range(300))


def test_a_hopeless_search_gives_up() -> None:
    """Twelve pigeons in eleven holes of forty."""
    allowed = np.zeros((12, 40), bool)
    allowed[:, :11] = True
    pairs = np.array(list(itertools.combinations(range(12), 2)))
    assert keep_apart(allowed, pairs) is None
