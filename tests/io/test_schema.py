"""The published schemas."""

import json
from typing import Any

import pytest

from streamplace.errors import SettingError
from streamplace.io.schema import FILES, json_schema


@pytest.mark.parametrize("name", FILES)
def test_every_format_has_a_schema(name: Any) -> None:
    """That forbids unknown fields and is plain JSON."""
    schema = json_schema(name)
    assert schema["additionalProperties"] is False
    assert json.loads(json.dumps(schema)) == schema


def test_fields_are_described() -> None:
    """For editors and for the docs."""
    operator = json_schema("graph")["$defs"]["OperatorJson"]["properties"]
    assert operator["ipt"]["description"] == "instructions per input tuple"


def test_an_unknown_schema_is_refused() -> None:
    """The message lists the known ones."""
    with pytest.raises(
        SettingError, match=r"there is no schema 'x'. Known: graph, problem, placement"
    ):
        json_schema("x")
