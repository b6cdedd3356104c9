import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.drawing.text import cut_to, text_width

COMMON = st.text(
    st.characters(max_codepoint=0x4FF, categories=["Lu", "Ll", "Nd", "Po", "Ps", "Pe", "Sm"]),
    max_size=20,
)


@pytest.mark.filterwarnings("ignore:Glyph")
@given(COMMON)
def test_no_text_is_wider_than_said(text: str) -> None:
    """The font that matplotlib brings, and browsers on Linux use, is the measure."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    if not text.strip():
        return
    for bold in (False, True):
        font = FontProperties(family="DejaVu Sans", size=100, weight="bold" if bold else "normal")
        width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
        assert text_width(text, 100, bold) >= 0.99 * width


@given(st.text(max_size=60), st.floats(30, 300))
def test_a_text_that_was_cut_fits(text: str, widest: float) -> None:
    cut = cut_to(text, 12, widest)
    assert text_width(cut, 12) <= widest
    assert (cut == text) == (text_width(text, 12) <= widest)


@pytest.mark.parametrize("n", [3, 12, 407])
def test_names_that_differ_at_their_ends_differ_when_cut(n: int) -> None:
    a, b = (f"a_task_with_a_long_name_{i:08d}" for i in (n, n + 1))
    assert cut_to(a, 12, 120) != cut_to(b, 12, 120)
