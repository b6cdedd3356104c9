import pytest

from streamplace.errors import FormatError
from streamplace.io.toml import MOST_PARTS, tables


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 20_000) + " = 1",
        "[" + ".".join("a" * 20_000) + "]",
        "a = " + "[" * 100 + "]" * 100,
        "a = " + "[" * 100_000,
        "a = " + "{b = " * 100 + "1" + "}" * 100,
        '"quoted".' * 40 + "a = 1",
    ],
    ids=["name", "header", "arrays", "open arrays", "tables", "quoted"],
)
def test_depth_is_bounded(text: str) -> None:
    """Forty kilobytes of dots cost the standard reader 20 s and 1.7 GB."""
    with pytest.raises(FormatError, match=r"^here: is nested too deep; flatten it$"):
        tables(text, "here")


@pytest.mark.parametrize(
    "text",
    ["a = 1\n" * MOST_PARTS + "\n", "a = [" + "1," * (MOST_PARTS + 1) + "]"],
    ids=["lines", "values"],
)
def test_the_number_of_values_is_bounded(text: str) -> None:
    """Each costs the standard reader some microseconds; the message says what to do instead."""
    with pytest.raises(FormatError, match=r"here: has more than 524288 lines and values; desc"):
        tables(text, "here")


def test_dots_and_commas_in_texts_and_comments_are_no_values() -> None:
    """However many, and whatever quotes are around them."""
    dots = ".,\\" * 100_000
    text = (
        f"a = '{dots}' # {dots}\nb = '''{dots}\n''{dots}'''\n"
        'c = "1.2.3.4\\".5"\nd = """a"b.\\".""c"""\n' + f"e = '''{dots}'''''\n"
    )
    found = tables(text, "here")
    assert found["a"] == dots
    assert found["c"] == '1.2.3.4".5'
    assert found["e"] == dots + "''"


@pytest.mark.parametrize("quote", ['"', "'", '"""', "'''", '\\"'])
def test_open_quotes_are_looked_at_once(quote: str) -> None:
    """Beginning anew at each of them would not end."""
    with pytest.raises(FormatError, match="here: is not valid TOML"):
        tables("a = " + quote + '\\"' * 200_000, "here")


@pytest.mark.parametrize(
    "number", ["9223372036854775808", "-9223372036854775809", "0x" + "f" * 9999]
)
def test_integers_have_64_bits(number: str) -> None:
    """As TOML says; larger ones would fail wherever they are written again."""
    with pytest.raises(FormatError, match=r"is not valid TOML: .* has more than 64 bits"):
        tables(f"a = [{{b = {number}}}]", "here")
    assert tables(f"a = [{2**63 - 1}, {-(2**63)}]", "here") == {"a": [2**63 - 1, -(2**63)]}
