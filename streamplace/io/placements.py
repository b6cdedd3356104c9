"""Placement files (JSON)."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import isclose
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamplace.errors import FormatError, PlacementError
from streamplace.io.files import (
    file_path,
    json_text,
    located,
    read_bytes,
    read_lines,
    spot,
    write_text,
)
from streamplace.io.parsing import parse_json, parse_tables, untyped
from streamplace.io.suffixes import EXPORTED
from streamplace.model.arrays import ROUNDING
from streamplace.model.columns import checked_kind
from streamplace.model.message_text import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

if TYPE_CHECKING:
    from streamplace.model.prediction_intervals import RateInterval

PRINTED = frozenset({"assignment", "verdict", "placer"})
"""Fields that identify the output of ``place --json``."""
READ = frozenset({"graph", "assignment", "priority", "queue", "parallelism", "rate", "objective"})
"""Fields of that output that are read."""


def read_placement(name: str | PathLike[str], problem: Problem | None = None) -> Placement:
    """Placement of the operators on the devices of a problem, by default of those in the file."""
    path = file_path(name)
    if problem is None:
        return parse_named_placement(read_bytes(path), spot(path))
    return parse_placement(read_bytes(path), spot(path), problem)


def read_placements(name: str | PathLike[str]) -> Iterator[tuple[str, Placement | None]]:
    """Graph names and placements of a data set, as ``place -o FILE.jsonl`` writes them.

    The placement is None for a graph that could not be placed.
    """
    path = file_path(name)
    for number, line in read_lines(path):
        where, document = f"{spot(path)}:{number}", fields_of(line)
        if not isinstance(document.get("graph"), str):
            raise FormatError(f"{where}: is no line of placements; name a file of place -o .jsonl")
        yield (
            document["graph"],
            None if is_refusal(document) else parse_named_placement(line, where),
        )


class PlacedFor(NamedTuple):
    """Rate and objective of a placement, if its file names them."""

    rate: float | None = None  # tuples/s of all sources
    objective: str = ""  # with its options, without conditions

    def other_rate(self, offered: float) -> float | None:
        """Rate, unless it is the offered one but for rounding."""
        is_same = self.rate is None or isclose(self.rate, offered, rel_tol=ROUNDING)
        return None if is_same else self.rate


def read_placed_for(path: Path) -> PlacedFor:
    """Rate and objective in a placement file; other formats and old files have none."""
    if path.suffix in EXPORTED:
        return PlacedFor()
    document = parse_document(read_bytes(path), spot(path))
    objective = document.get("objective", "").partition(" ")[0]
    return PlacedFor(document.get("rate"), objective)


class Prediction(NamedTuple):
    """Rate that a placement of a measured graph was predicted to carry, with its interval."""

    graph: str
    carries: "RateInterval"
    confidence: float | None  # confidence of the interval; None if unknown
    drift: float | None = None  # share by which the interval is wider as the job was not warm
    kept: float | None = None  # tuples/s of sources that the placement does not limit
    spread: float | None = None  # spread of the profile, by which the interval is wider


def read_prediction(path: Path) -> Prediction | None:
    """Prediction in a placement file; None if its graph was not measured."""
    from streamplace.model.prediction_intervals import RateInterval

    document = parse_document(read_bytes(path), spot(path))
    carries = document.get("carries")
    if carries is None:
        return None
    ends = RateInterval(carries["low"], carries["value"], carries["high"])
    return Prediction(document.get("graph", ""), ends, carries["confidence"])


def prediction_facts(carries: "RateInterval | None", confidence: float) -> dict[str, Any]:
    """Fields of a document for the rate that the placement carries; empty if it is unknown."""
    return {} if carries is None else {"carries": carries._asdict() | {"confidence": confidence}}


def parse_placement(content: bytes, where: str, problem: Problem) -> Placement:
    """Placement from the text of a JSON document; errors begin with ``where``."""
    return placement_of(parse_document(content, where), where, problem)


def placement_of(document: Mapping[str, Any], where: str, problem: Problem) -> Placement:
    """Placement of a problem from a validated document; errors begin with ``where``."""
    operators, devices = problem.graph.operators.name, problem.cluster.devices.name
    with located(where):
        try:
            return Placement.of(operators, devices, document["assignment"], *order_of(document))
        except PlacementError as error:
            named = document.get("graph", problem.graph.name)
            if named == problem.graph.name or set(document["assignment"]) == set(operators):
                raise
            raise PlacementError(
                f"is a placement of graph {quoted(named)}, not of {quoted(problem.graph.name)}: "
                f"{error}"
            ) from None


def parse_named_placement(content: bytes, where: str) -> Placement:
    """Placement of the operators, on the devices, that a JSON document names."""
    document = parse_document(content, where)
    assignment = document["assignment"]
    devices = sorted(set(assignment.values()))
    with located(where):
        return Placement.of(tuple(assignment), devices, assignment, *order_of(document))


def parse_document(content: bytes, where: str) -> dict[str, Any]:
    """Assignment and other fields of a JSON document; errors begin with ``where``.

    From the output of ``place --json``, which has a verdict, only the placement is read.
    """
    if where.endswith(EXPORTED):
        raise FormatError(
            f"{where}: is an exported placement; convert it with: streamplace export FILE "
            "--graph GRAPH --to json -o placement.json"
        )
    printed = fields_of(content) if b'"verdict"' in content else {}
    document: dict[str, Any]
    if not PRINTED - set(printed):
        placed = {key: value for key, value in printed.items() if key in READ}
        document = parse_tables("placement", placed, where)
    else:
        document = parse_json("placement", content, where)
    return document


def fields_of(content: bytes) -> dict[str, Any]:
    """Fields of a JSON object; empty for any other content."""
    with suppress(ValueError):
        if isinstance(document := untyped(content), dict):
            return document
    return {}


def is_refusal(document: Mapping[str, Any]) -> bool:
    """Whether a line of placements says why its graph was not placed."""
    return document.get("error") is not None


def order_of(document: Mapping[str, Any]) -> tuple[dict[str, float] | None, str]:
    """Priorities in a document and their discipline, which older files lack."""
    return document.get("priority"), document.get("queue", "priority")


def order_facts(placement: Placement) -> dict[str, Any]:
    """Fields of a document for the order in which devices run operators; empty without one."""
    priority = placement.priorities()
    return {} if priority is None else {"queue": placement.queue, "priority": priority}


def write_placement(placement: Placement, path: str | PathLike[str], **facts: Any) -> None:
    """Write a placement, with other fields such as ``graph`` and ``placer``."""
    chosen = checked_kind(placement, Placement)
    document = {**facts, "assignment": chosen.as_dict(), **order_facts(chosen)}
    write_text(file_path(path), json_text(document))
