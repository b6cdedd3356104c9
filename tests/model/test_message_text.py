"""Names and values in messages."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamplace.model.message_text import quoted, shown


@given(st.text() | st.binary() | st.lists(st.text()) | st.integers() | st.floats())
def test_a_quoted_value_is_short_and_printable(value: Any) -> None:
    text = quoted(value)
    assert text.isprintable()
    assert len(text) < 1000


@given(st.text(st.characters()))
def test_a_shown_text_is_short_and_printable(text: Any) -> None:
    assert shown(text).isprintable()
    assert len(shown(text)) <= 10 * 80


def test_endless_integers_and_deep_lists_are_abridged() -> None:
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert quoted(10**5000) == "a number of thousands of digits"
    assert quoted(deep) == "[[[[...]]]]"
