"""The published format of the DREAM benchmark: one JSON document per graph.

Payloads are in megabits per tuple, ``cpu`` in instructions per tuple; ``weight`` is the rate of an
operator relative to the source. Weights and the flags ``is_source`` and ``is_sink`` follow from the
connections, so they are optional, and a warning names those that contradict the connections.
"""

import logging
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NotRequired

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from streamplace.errors import FormatError, GraphError, StreamplaceError
from streamplace.io.fields import Amount
from streamplace.io.files import read_bytes, spot
from streamplace.io.foreign import distinct, files_of
from streamplace.io.lines import name_of
from streamplace.io.parsing import parse_as
from streamplace.io.registry import reader
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.operators import Operators
from streamplace.model.streams import Streams

LOG = logging.getLogger(__name__)
MEGABIT = 125_000
"""Bytes per megabit."""
WEIGHT_TOLERANCE = 0.02
"""Largest relative difference between a weight and the rate that the selectivities give."""


class DreamOperator(TypedDict):
    """An operator; connections refer to its ``idx``."""

    idx: int
    is_source: NotRequired[bool]
    is_sink: NotRequired[bool]
    name: NotRequired[str]
    cpu: Amount
    payload: NotRequired[Amount]
    weight: NotRequired[Amount]


class DreamConnection(TypedDict):
    """A stream between the operators with these two ``idx``; its weight is ignored."""

    from_vertex: int
    to_vertex: int
    selectivity: NotRequired[Amount]


class DreamJson(TypedDict):
    """A graph whose sources generate ``event_rate`` tuples/s each."""

    operators: list[DreamOperator]
    connections: list[DreamConnection]
    event_rate: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    num_vms: NotRequired[Annotated[int, Field(ge=1)]]


@reader("dream")
def read_dream(path: Path) -> Iterator[StreamGraph]:
    """Published files of the DREAM benchmark: one ``.json`` file, or a folder of them."""
    for file in files_of(path, ".json"):
        yield parse_dream(read_bytes(file), spot(file), name_of(file))


def parse_dream(content: bytes, where: str, name: str) -> StreamGraph:
    """Graph from the text of a document; errors begin with ``where``.

    Examples
    --------
    >>> text = b'''{"event_rate": 1e4, "num_vms": 2,
    ...   "operators": [{"idx": 0, "cpu": 1000, "payload": 0.5}, {"idx": 1, "cpu": 2000}],
    ...   "connections": [{"from_vertex": 0, "to_vertex": 1}]}'''
    >>> graph = parse_dream(text, "example", "pipe")
    >>> graph.operators["op0"].payload, graph.input_rate.tolist()
    (62500.0, [10000.0, 10000.0])
    """
    document = parse_as(DreamJson, content, where, extra="ignore")
    try:
        graph = _graph(document, name)
    except StreamplaceError as error:
        raise FormatError(f"{where}: {error}") from None
    for contradiction in _contradictions(document, graph):
        LOG.warning("%s: %s; the connections are used", where, contradiction)
    return graph


def _graph(document: DreamJson, name: str) -> StreamGraph:
    rows = sorted(document["operators"], key=lambda row: row["idx"])
    row_of = {row["idx"]: i for i, row in enumerate(rows)}
    if len(row_of) < len(rows):
        twice = next(idx for idx, n in Counter(row["idx"] for row in rows).items() if n > 1)
        raise GraphError(f"two operators have the idx {quoted(twice)}; indices must differ")
    lines = document["connections"]
    source = _ends(row_of, [line["from_vertex"] for line in lines], "from_vertex")
    target = _ends(row_of, [line["to_vertex"] for line in lines], "to_vertex")
    is_source, is_sink = _roles(len(rows), source, target)
    operators = Operators(
        _names(rows),
        ipt=np.array([row["cpu"] for row in rows]),
        payload=_payloads(rows, is_sink),
        rate=np.where(is_source, document["event_rate"], 0.0),
        kind=tuple(
            "source" if first else "sink" if last else "work"
            for first, last in zip(is_source, is_sink, strict=True)
        ),
    )
    selectivity = np.array([line.get("selectivity", 1.0) for line in lines], np.float64)
    streams = Streams(operators, source, target, selectivity=selectivity)
    attributes: dict[str, Attribute] = {}
    if "num_vms" in document:
        attributes["devices"] = document["num_vms"]
    return StreamGraph(name, operators, streams, attributes)


def _ends(row_of: dict[int, int], ends: list[int], field: str) -> list[int]:
    for i, idx in enumerate(ends):
        if idx not in row_of:
            raise GraphError(
                f"connections[{i}].{field} is {quoted(idx)}, but no operator has that idx; "
                "correct it or add the operator"
            )
    return [row_of[idx] for idx in ends]


def _names(rows: list[DreamOperator]) -> list[str]:
    names = [row.get("name") or f"op{row['idx']}" for row in rows]
    return distinct(names, [f"-{row['idx']}" for row in rows])


def _roles(n: int, source: list[int], target: list[int]) -> tuple[list[bool], list[bool]]:
    """Which of n operators have no inputs, and which have no outputs."""
    fed, feeding = set(target), set(source)
    return [i not in fed for i in range(n)], [i not in feeding for i in range(n)]


def _payloads(rows: list[DreamOperator], is_sink: list[bool]) -> Any:
    """Bytes, rounded to a millionth so that whole bytes survive the conversion from megabits."""
    for row, last in zip(rows, is_sink, strict=True):
        if "payload" not in row and not last:
            raise GraphError(f"operator {quoted(row['idx'])} has no payload; add it (in megabit)")
    return np.round(np.array([row.get("payload", 0.0) for row in rows]) * MEGABIT, 6)


def _contradictions(document: DreamJson, graph: StreamGraph) -> Iterator[str]:
    """Describe fields that contradict the connections, the first of each kind."""
    rows = sorted(document["operators"], key=lambda row: row["idx"])
    weight = graph.input_rate / document["event_rate"]
    for field, truth in (
        ("is_source", np.isin(np.arange(len(rows)), graph.sources)),
        ("is_sink", np.isin(np.arange(len(rows)), graph.sinks)),
        ("weight", weight),
    ):
        for row, computed in zip(rows, truth.tolist(), strict=True):
            given = row.get(field, computed)
            if not math.isclose(given, computed, rel_tol=WEIGHT_TOLERANCE, abs_tol=1e-9):  # type: ignore[arg-type]
                yield f"operator {quoted(row['idx'])} has {field} {quoted(given)}, not {computed:g}"
                break
