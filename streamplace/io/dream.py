"""The published format of the DREAM benchmark: one JSON document per graph.

Payloads are in megabits per tuple, ``cpu`` in instructions per tuple. Weights, which are rates
relative to the source, and the flags ``is_source`` and ``is_sink`` follow from the connections and
are not read.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NotRequired

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from streamplace.errors import GraphError
from streamplace.io.fields import Amount
from streamplace.io.files import located, spot
from streamplace.io.foreign import distinct, files_with, read_foreign
from streamplace.io.lines import name_of
from streamplace.io.registry import reader
from streamplace.model.graph import Attribute, StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.operators import Operators
from streamplace.model.streams import Streams

MEGABIT = 125_000
"""Bytes per megabit."""


class DreamOperator(TypedDict):
    """An operator; connections refer to its ``idx``."""

    idx: int
    name: NotRequired[str]
    cpu: Amount
    payload: NotRequired[Amount]


class DreamConnection(TypedDict):
    """A stream between the operators with these two ``idx``."""

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
    for file in files_with(path, ".json"):
        document = read_foreign(DreamJson, file)
        with located(spot(file)):
            yield _graph(document, name_of(file))


def _graph(document: DreamJson, name: str) -> StreamGraph:
    rows = sorted(document["operators"], key=lambda row: row["idx"])
    row_of = {row["idx"]: i for i, row in enumerate(rows)}
    if len(row_of) < len(rows):
        twice = next(idx for idx, n in Counter(row["idx"] for row in rows).items() if n > 1)
        raise GraphError(f"two operators have the idx {quoted(twice)}; indices must differ")
    lines = document["connections"]
    source = _ends(row_of, [line["from_vertex"] for line in lines], "from_vertex")
    target = _ends(row_of, [line["to_vertex"] for line in lines], "to_vertex")
    receivers, senders = set(target), set(source)
    is_source = [i not in receivers for i in range(len(rows))]
    is_sink = [i not in senders for i in range(len(rows))]
    for row, last in zip(rows, is_sink, strict=True):
        if "payload" not in row and not last:
            raise GraphError(f"operator {quoted(row['idx'])} has no payload; add it (in megabit)")
    operators = Operators(
        distinct(
            [row.get("name") or f"op{row['idx']}" for row in rows],
            [f"-{row['idx']}" for row in rows],
        ),
        ipt=np.array([row["cpu"] for row in rows]),
        # Rounded to a millionth, so that whole bytes survive the conversion from megabits.
        payload=np.round(np.array([row.get("payload", 0.0) for row in rows]) * MEGABIT, 6),
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
