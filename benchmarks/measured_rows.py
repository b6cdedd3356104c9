"""Files of measured rows: a line of JSON each, appended as soon as it is measured."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows that were measured; none if the file is missing."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row, so that a command that is stopped goes on after it."""
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
