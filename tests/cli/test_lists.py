"""Commands that show what is registered, and the schemas of files."""

import json
from collections.abc import Callable

import pytest

from streamplace.io.schema import FILES
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS


def test_the_list_of_placers_is_the_registry(run: Callable) -> None:
    rows = json.loads(run("placers", "--json").out)
    assert [row["name"] for row in rows] == list(PLACERS)
    assert all(row["name"] in run("placers").out for row in rows[:3])


def test_the_list_of_objectives_is_the_registry(run: Callable) -> None:
    rows = json.loads(run("objectives", "--json").out)
    assert [row["name"] for row in rows] == list(OBJECTIVES)
    assert "|".join(OBJECTIVES) in "".join(run("simulate", "--help").out.split())
    assert all(name in run("objectives").out for name in OBJECTIVES)


@pytest.mark.parametrize("name", FILES)
def test_every_file_format_has_a_schema_that_forbids_unknown_fields(
    run: Callable, name: str
) -> None:
    schema = json.loads(run("schema", name).out)
    assert "properties" in schema
    assert schema["additionalProperties"] is False


def test_a_schema_describes_its_fields(run: Callable) -> None:
    operator = json.loads(run("schema", "graph").out)["$defs"]["OperatorJson"]["properties"]
    assert operator["ipt"]["description"] == "instructions per input tuple"
