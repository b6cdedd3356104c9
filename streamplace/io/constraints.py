"""Constraints in TOML files and in problem documents."""

from os import PathLike
from typing import Any

import tomli_w

from streamplace.io.files import MAX_TOML_BYTES, file_path, read_bytes, spot, write_text
from streamplace.io.parsing import parse_toml
from streamplace.model.columns import checked_kind
from streamplace.model.constraints import Constraints


def read_constraints(name: str | PathLike[str]) -> Constraints:
    """Constraints from a TOML file; see ``streamplace schema constraints``."""
    path = file_path(name)
    return parse_constraints(read_bytes(path, MAX_TOML_BYTES), spot(path))


def write_constraints(constraints: Constraints, path: str | PathLike[str]) -> None:
    """Write constraints as a TOML file, which `read_constraints` and ``--constraints`` read."""
    rules = checked_kind(constraints, Constraints)
    write_text(file_path(path), tomli_w.dumps(constraints_to_tables(rules)))


def parse_constraints(content: bytes, where: str) -> Constraints:
    """Constraints from the text of a TOML document; errors begin with ``where``.

    >>> parse_constraints(b'pin = {src = "d0"}', "rules.toml").pin
    {'src': 'd0'}
    """
    tables = parse_toml("constraints", content, where)
    return Constraints(**tables)


def constraints_to_tables(constraints: Constraints) -> dict[str, Any]:
    """Tables of a constraints file."""
    tables = {
        "pin": dict(constraints.pin),
        "colocate": [sorted(group) for group in constraints.colocate],
        "exlocate": [sorted(group) for group in constraints.exlocate],
        "allowed": {name: sorted(devices) for name, devices in constraints.allowed.items()},
    }
    return {key: table for key, table in tables.items() if table}
