"""Placement files (JSON)."""

import json
from pathlib import Path
from typing import Any

from streamplace.errors import StreamplaceError
from streamplace.io.files import read_bytes, write_text
from streamplace.io.schema import parse_json
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem


def read_placement(path: Path, problem: Problem) -> Placement:
    """Placement of this problem's operators on its devices."""
    document = parse_json("placement", read_bytes(path), str(path))
    operators, devices = problem.graph.operators.name, problem.cluster.devices.name
    try:
        return Placement.of(operators, devices, document["assignment"])
    except StreamplaceError as error:
        raise type(error)(f"{path}: {error}") from None


def write_placement(placement: Placement, path: Path, **facts: Any) -> None:
    """Write a placement, with facts such as ``graph`` and ``placer`` beside it."""
    document = {**facts, "assignment": placement.as_dict()}
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
