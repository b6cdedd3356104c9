"""Placement files (JSON)."""

import json
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from streamplace.errors import FormatError
from streamplace.io.files import located, read_bytes, read_lines, spot, write_text
from streamplace.io.parsing import parse_json, parse_tables
from streamplace.model.expansion import named_problem
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

EXPORTED = (".csv", ".dot", ".graphml")
"""Names of placements in other forms end so; ``export`` reads them."""
LARGEST_PLACEMENT = 256 * 2**20
PRINTED = frozenset({"assignment", "verdict", "placer"})
"""Fields by which an answer of ``place --json`` is recognised;"""
READ = frozenset({"graph", "assignment", "priority", "queue", "parallelism"})
"""and those that are read from it."""


def read_placement(name: str | PathLike[str], problem: Problem | None = None) -> Placement:
    """Placement of a problem's operators on its devices, by default those that the file names."""
    path = Path(name)
    if problem is None:
        return read_present(path)
    return parse_placement(read_bytes(path, LARGEST_PLACEMENT), spot(path), problem)


def read_placements(name: str | PathLike[str]) -> Iterator[tuple[str, Placement | None]]:
    """Graph names and placements of a data set, as ``place -o FILE.jsonl`` writes them.

    The placement is None for a graph that could not be placed.
    """
    path = Path(name)
    for number, line in read_lines(path):
        where = f"{spot(path)}:{number}"
        try:
            document = from_json(line)
        except ValueError:
            document = None
        if not isinstance(document, dict) or not isinstance(document.get("graph"), str):
            raise FormatError(f"{where}: is no line of placements; name a file of place -o .jsonl")
        failed = document.get("error") is not None
        yield document["graph"], None if failed else parse_given(line, where)


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
    """Assignment and facts of a JSON document; ``where`` stands in errors.

    Of what ``place --json`` printed, which also explains the placement, only the placement is read.
    """
    if where.endswith(EXPORTED):
        raise FormatError(
            f"{where}: is an exported placement; convert it with: streamplace export FILE "
            "--graph GRAPH --to json -o placement.json"
        )
    document: dict[str, Any]
    if (printed := _printed(content)) is not None:
        document = parse_tables("placement", printed, where)
    else:
        document = parse_json("placement", content, where)
    return document


def _printed(content: bytes) -> dict[str, Any] | None:
    """Placement in what ``place --json`` printed, as its verdict tells; else None."""
    if b'"verdict"' not in content:
        return None
    try:
        document = from_json(content)
    except ValueError:
        return None
    if not isinstance(document, dict) or PRINTED - set(document):
        return None
    return {key: value for key, value in document.items() if key in READ}


def order_given(document: Mapping[str, Any]) -> tuple[dict[str, float] | None, str]:
    """Priorities of a document, and what they mean; older files do not say that."""
    return document.get("priority"), document.get("queue", "priority")


def order_facts(placement: Placement) -> dict[str, Any]:
    """What a document says of the order in which devices run operators; nothing without one."""
    priority = placement.priorities()
    return {} if priority is None else {"queue": placement.queue, "priority": priority}


def write_placement(placement: Placement, path: str | PathLike[str], **facts: Any) -> None:
    """Write a placement, with facts such as ``graph`` and ``placer`` beside it."""
    document = {**facts, "assignment": placement.as_dict(), **order_facts(placement)}
    write_text(Path(path), json.dumps(document, indent=1, ensure_ascii=False) + "\n")
