"""Placement files (JSON)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamplace.io.files import located, read_bytes, spot, write_text
from streamplace.io.schema import parse_json
from streamplace.model.expansion import named_problem
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

LARGEST_PLACEMENT = 256 * 2**20


def read_placement(path: Path, problem: Problem) -> Placement:
    """Placement of this problem's operators on its devices."""
    return parse_placement(read_bytes(path, LARGEST_PLACEMENT), spot(path), problem)


def read_placed(path: Path, problem: Problem) -> tuple[Problem, Placement]:
    """Placement of this problem's operators or of their subtasks, and the problem of these."""
    content = read_bytes(path, LARGEST_PLACEMENT)
    placed = named_problem(problem, parse_document(content, spot(path))["assignment"])
    return placed, parse_placement(content, spot(path), placed)


def read_present(path: Path) -> Placement:
    """Placement that a graph runs by, of the operators and on the devices that the file names."""
    return parse_given(read_bytes(path, LARGEST_PLACEMENT), spot(path))


def parse_placement(content: bytes, where: str, problem: Problem) -> Placement:
    """Placement from the text of a JSON document; ``where`` stands in errors."""
    operators, devices = problem.graph.operators.name, problem.cluster.devices.name
    document = parse_document(content, where)
    with located(where):
        return Placement.of(operators, devices, document["assignment"], *order_given(document))


def parse_given(content: bytes, where: str) -> Placement:
    """Placement of the operators and on the devices that a JSON document names."""
    document = parse_document(content, where)
    assignment = document["assignment"]
    devices = sorted(set(assignment.values()))
    with located(where):
        return Placement.of(tuple(assignment), devices, assignment, *order_given(document))


def parse_document(content: bytes, where: str) -> dict[str, Any]:
    """Assignment and facts of a JSON document; ``where`` stands in errors."""
    document: dict[str, Any] = parse_json("placement", content, where)
    return document


def order_given(document: Mapping[str, Any]) -> tuple[dict[str, float] | None, str]:
    """Priorities of a document, and what they mean; older files do not say that."""
    return document.get("priority"), document.get("queue", "priority")


def order_facts(placement: Placement) -> dict[str, Any]:
    """What a document says of the order in which devices run operators; nothing without one."""
    priority = placement.priorities()
    return {} if priority is None else {"queue": placement.queue, "priority": priority}


def write_placement(placement: Placement, path: Path, **facts: Any) -> None:
    """Write a placement, with facts such as ``graph`` and ``placer`` beside it."""
    document = {**facts, "assignment": placement.as_dict(), **order_facts(placement)}
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
