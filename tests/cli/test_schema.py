import json
from collections.abc import Callable

import pytest

from streamplace.io.schema import FILES


@pytest.mark.parametrize("name", FILES)
def test_every_file_format_has_a_schema(run: Callable, name: str) -> None:
    """The schema is a JSON document with properties."""
    assert "properties" in json.loads(run("schema", name).out)
