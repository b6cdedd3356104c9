import json
from dataclasses import dataclass

import pytest
from fuzz.trial import refused_in_little
from problems import parse_graph

from streamplace.errors import FormatError
from streamplace.io.parsing import parse_as, parse_toml_text

MANY, LITTLE = 50_000, 2**25


@dataclass
class Entry:
    """A line of a file."""

    name: str
    size: int = 0


def test_an_unknown_field_is_refused_with_one_that_may_be_meant() -> None:
    assert parse_as(Entry, b'{"name": "a"}', "here") == Entry("a")
    with pytest.raises(FormatError, match=r"^here: Size is not a known field; did you mean 'size'"):
        parse_as(Entry, b'{"name": "a", "Size": 1}', "here")
    with pytest.raises(FormatError, match=r"^here: nam is not a known field; did you mean 'name'"):
        parse_as(Entry, b'{"nam": "a"}', "here")
    assert parse_as(Entry, b'{"name": "a", "Size": 1}', "here", extra="ignore") == Entry("a")


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_documents_that_are_nested_too_deep_are_refused_in_one_line(depth: int) -> None:
    deep = b"[" * depth
    with pytest.raises(FormatError, match=r"^here: is not valid JSON: recursion limit exceeded"):
        parse_graph(b'{"operators": ' + deep, "here")
    with pytest.raises(FormatError, match=r"^here: is nested too deep; flatten it$"):
        parse_toml_text(b"a = " + deep, "here")


def test_of_a_flood_of_wrong_attributes_the_first_is_told() -> None:
    """Collecting them all took a gigabyte for a megabyte."""
    flood = {f"x{i}": [] for i in range(MANY)}
    content = json.dumps({"operators": [], "attributes": flood}).encode()
    told = refused_in_little(lambda: parse_graph(content, "here"), LITTLE)
    assert told.startswith("FormatError: here: attributes.x0 is []")
