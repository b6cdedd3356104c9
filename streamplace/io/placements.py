"""Placement files (JSON)."""

import json
from pathlib import Path
from typing import Any

from streamplace.errors import FormatError
from streamplace.io.files import located, read_bytes, spot, write_text
from streamplace.io.schema import parse_json, utf8
from streamplace.model.messages import quoted, shown
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

LARGEST_PLACEMENT = 256 * 2**20


def read_placement(path: Path, problem: Problem) -> Placement:
    """Placement of this problem's operators on its devices."""
    return parse_placement(read_bytes(path, LARGEST_PLACEMENT), spot(path), problem)


def parse_placement(content: bytes, where: str, problem: Problem) -> Placement:
    """Placement from the text of a JSON document; ``where`` stands in errors."""
    operators, devices = problem.graph.operators.name, problem.cluster.devices.name
    document = parse_document(content, where)
    with located(where):
        return Placement.of(operators, devices, document["assignment"], document.get("priority"))


def parse_document(content: bytes, where: str) -> dict[str, Any]:
    """Assignment and facts of a JSON document; ``where`` stands in errors."""
    document: dict[str, Any] = parse_json("placement", content, where)
    with located(where):
        _check_keys(content, where)
    return document


def write_placement(placement: Placement, path: Path, **facts: Any) -> None:
    """Write a placement, with facts such as ``graph`` and ``placer`` beside it."""
    priority = placement.priorities()
    order = {} if priority is None else {"priority": priority}
    document = {**facts, "assignment": placement.as_dict(), **order}
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _check_keys(content: bytes, where: str) -> None:
    """Refuse an operator that is placed twice; a JSON reader would keep the last."""

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen:
                raise FormatError(f"{quoted(key)} stands twice; remove one of them")
            seen[key] = value
        return seen

    try:
        json.loads(utf8(content, where), object_pairs_hook=checked)
    except ValueError as error:  # integers of thousands of digits
        raise FormatError(f"is not valid JSON: {shown(str(error))}") from None
