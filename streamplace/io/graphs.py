"""Native graph files: ``.json`` holds one graph, ``.jsonl`` and ``.jsonl.gz`` one per line."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from streamplace.errors import FormatError, GraphError, StreamplaceError
from streamplace.io.files import read_bytes, read_lines, writing
from streamplace.io.schema import parse_json
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import Operators, Window
from streamplace.model.streams import Streams
from streamplace.model.units import Quantity, size_bytes, tuple_rate

_LINES = (".jsonl", ".jsonl.gz")


def read_graph(path: Path) -> StreamGraph:
    """The one graph in a file."""
    graphs = read_graphs(path)
    first = next(graphs, None)
    if first is None:
        raise FormatError(f"{path}: holds no graph")
    if next(graphs, None) is not None:
        raise FormatError(f"{path}: holds several graphs; name a file with one")
    return first


def read_graphs(path: Path) -> Iterator[StreamGraph]:
    """All graphs of a file or of the ``.json`` files of a folder, one after the other."""
    if path.is_dir():
        files = sorted(path.glob("*.json"))
        if not files:
            raise FormatError(f"{path}: the folder holds no .json file")
        for file in files:
            yield from read_graphs(file)
    elif path.name.endswith(_LINES):
        for number, line in read_lines(path):
            yield parse_graph(line, f"{path}:{number}", default_name=f"{path.name}:{number}")
    else:
        yield parse_graph(read_bytes(path), str(path), default_name=path.name.split(".")[0])


def write_graph(graph: StreamGraph, path: Path) -> None:
    """Write one graph as readable JSON, or as the only line of a data set."""
    if path.name.endswith(_LINES):
        write_graphs([graph], path)
        return
    with writing(path) as file:
        file.write(json.dumps(graph_to_dict(graph), indent=1, ensure_ascii=False).encode() + b"\n")


def write_graphs(graphs: Iterable[StreamGraph], path: Path) -> int:
    """Write a data set, one graph per line; returns how many."""
    if not path.name.endswith(_LINES):
        raise FormatError(f"{path}: a data set's name must end in .jsonl or .jsonl.gz")
    count = 0
    with writing(path) as file:
        for graph in graphs:
            file.write(graph_line(graph))
            count += 1
    return count


def graph_line(graph: StreamGraph) -> bytes:
    """One line of a data set."""
    return (
        json.dumps(graph_to_dict(graph), separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    )


def parse_graph(content: bytes, where: str, default_name: str = "graph") -> StreamGraph:
    """Graph from the text of a native JSON document; ``where`` stands in errors."""
    document = parse_json("graph", content, where)
    try:
        return graph_from_dict(document, default_name)
    except StreamplaceError as error:
        raise type(error)(f"{where}: {error}") from None


def graph_from_dict(document: dict[str, Any], default_name: str = "graph") -> StreamGraph:
    """Graph from a validated document of the native format."""
    rows = document["operators"]
    operators = Operators(
        tuple(row["name"] for row in rows),
        ipt=_column(rows, "ipt", float),
        payload=_column(rows, "payload", size_bytes),
        rate=_column(rows, "rate", tuple_rate),
        parallelism=_column(rows, "parallelism", float, 1.0),  # type: ignore[arg-type]
        kind=tuple(row.get("kind", "") for row in rows),
        requires=tuple(frozenset(row.get("requires", ())) for row in rows),
        memory=_column(rows, "memory", size_bytes),
        window={i: Window(**row["window"]) for i, row in enumerate(rows) if "window" in row},
    )
    lines = document.get("streams", [])
    streams = Streams(
        operators,
        _ends(operators, lines, "from"),
        _ends(operators, lines, "to"),
        selectivity=_column(lines, "selectivity", float, 1.0),
        payload=_column(lines, "payload", size_bytes, math.nan),
        partitioning=tuple(line.get("partitioning", "") for line in lines),
    )
    name = document.get("name", default_name)
    return StreamGraph(name, operators, streams, document.get("attributes", {}))


def graph_to_dict(graph: StreamGraph) -> dict[str, Any]:
    """Native document of a graph; what equals its default is left out."""
    document: dict[str, Any] = {"name": graph.name}
    if graph.attributes:
        document["attributes"] = dict(graph.attributes)
    document["operators"] = [_operator_row(graph, i) for i in range(graph.n_operators)]
    document["streams"] = [_stream_row(graph, i) for i in range(graph.n_streams)]
    return document


def _operator_row(graph: StreamGraph, i: int) -> dict[str, Any]:
    operators = graph.operators
    row: dict[str, Any] = {"name": operators.name[i], "ipt": _plain(operators.ipt[i])}
    for key, column in (("payload", operators.payload), ("rate", operators.rate)):
        if column[i]:
            row[key] = _plain(column[i])
    if operators.parallelism[i] != 1:
        row["parallelism"] = int(operators.parallelism[i])
    if operators.kind[i]:
        row["kind"] = operators.kind[i]
    if operators.requires[i]:
        row["requires"] = sorted(operators.requires[i])
    if operators.memory[i]:
        row["memory"] = _plain(operators.memory[i])
    if i in operators.window:
        row["window"] = _window_row(operators.window[i])
    return row


def _window_row(window: Window) -> dict[str, Any]:
    row = {key: _plain(getattr(window, key)) for key in ("size", "advance", "base", "factor")}
    return row if math.isinf(window.limit) else {**row, "limit": _plain(window.limit)}


def _stream_row(graph: StreamGraph, i: int) -> dict[str, Any]:
    streams, names = graph.streams, graph.operators.name
    row: dict[str, Any] = {"from": names[streams.source[i]], "to": names[streams.target[i]]}
    if streams.selectivity[i] != 1:
        row["selectivity"] = _plain(streams.selectivity[i])
    if not np.isnan(streams.payload[i]):
        row["payload"] = _plain(streams.payload[i])
    if streams.partitioning[i]:
        row["partitioning"] = streams.partitioning[i]
    return row


def _plain(number: float) -> int | float:
    """Whole numbers without the point, which halves a file."""
    value = float(number)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _column(
    rows: list[dict[str, Any]],
    key: str,
    parse: Callable[[Quantity], float],
    default: float = 0.0,
) -> Any:
    values = (row.get(key, default) for row in rows)
    numbers = [parse(value) if isinstance(value, str) else value for value in values]
    try:
        return np.array(numbers, np.float64)
    except OverflowError:
        raise GraphError(f"a value of {key} is too large") from None


def _ends(operators: Operators, lines: list[dict[str, Any]], end: str) -> Any:
    for line in lines:
        if line[end] not in operators:
            raise GraphError(
                f"stream {line['from']}→{line['to']} names the unknown operator {line[end]!r}; "
                "add that operator or correct the name"
            )
    return np.fromiter((operators.index(line[end]) for line in lines), np.int32, len(lines))
