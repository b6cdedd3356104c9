import json
import re
from dataclasses import dataclass

import pytest
from fuzz.trial import refused_in_little
from problems import parse_graph

from streamplace.errors import FormatError
from streamplace.io.dream import parse_dream
from streamplace.io.parsing import parse_as
from streamplace.io.placements import parse_document

MANY, LITTLE = 50_000, 2**25


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ('{"operators": [{"name": "a", "rate": 1, "rate": 2}]}', "'rate'"),
        ('{"operators": [{"name": "a", "rate": 1}], "operators": []}', "'operators'"),
        ('{"operators": [{"name": "a:b", "rate": 1}], "name": "x", "name": "x"}', "'name'"),
        ('{"operators": [{"name": ":", "rate": 1, "rate" \n: 1}]}', "'rate'"),
    ],
)
def test_a_field_that_stands_twice_is_refused(text: str, twice: str) -> None:
    """JSON's readers keep one of them and say nothing."""
    with pytest.raises(FormatError, match=f"^here: {twice} appears twice; remove one of them"):
        parse_graph(text.encode(), "here")


def test_imported_graphs_repeat_no_field_either() -> None:
    """Though they may have fields that nobody knows."""
    text = b'{"event_rate": 1, "operators": [{"idx": 0, "cpu": 1, "cpu": 2}], "connections": []}'
    with pytest.raises(FormatError, match=r"^here: 'cpu' appears twice"):
        parse_dream(text, "here", "g")


@pytest.mark.parametrize("name", ["Source: a", ":", '":"', ": :", '\\":'])
def test_colons_in_names_are_no_fields(name: str) -> None:
    """The text may then be read once more, and is found to be fine."""
    text = json.dumps({"operators": [{"name": name, "rate": 1}], "name": name})
    assert parse_graph(text.encode(), "here").operators.name == (name,)


@dataclass
class Entry:
    """A line of a file."""

    name: str
    size: int = 0


def test_an_unknown_field_is_no_substitute_for_one_that_is_left_out() -> None:
    """Although there are as many fields as expected."""
    assert parse_as(Entry, b'{"name": "a"}', "here") == Entry("a")
    with pytest.raises(FormatError, match=r"^here: Size is not a known field; did you mean 'size'"):
        parse_as(Entry, b'{"name": "a", "Size": 1}', "here")


@pytest.mark.parametrize(
    ("head", "tail", "message"),
    [
        ('{"operators": [], ', "}", "x0 is not a known field"),
        ('{"operators": [], "attributes": {', "}}", r"attributes.x0 is \[\]"),
    ],
)
def test_of_a_flood_of_faults_the_first_is_told(head: str, tail: str, message: str) -> None:
    """Collecting them all took a gigabyte for a megabyte."""
    flood = ",".join(f'"x{i}":[]' for i in range(MANY))
    content = f"{head}{flood}{tail}".encode()
    told = refused_in_little(lambda: parse_graph(content, "here"), LITTLE)
    assert re.match(f"FormatError: here: {message}", told), told


def test_of_a_flood_of_unplaced_operators_the_first_is_told() -> None:
    flood = ",".join(f'"x{i}":1' for i in range(MANY))
    content = f'{{"assignment":{{{flood}}}}}'.encode()
    told = refused_in_little(lambda: parse_document(content, "here"), LITTLE)
    assert told.startswith("FormatError: here: assignment.x0 is 1; it should be a valid string")
