"""Native graph files: ``.json`` holds one graph, ``.jsonl`` and ``.jsonl.gz`` one per line."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from streamplace.errors import FormatError
from streamplace.io.fields import plain
from streamplace.io.files import (
    MAX_LINE_BYTES,
    check_suffix,
    encoded,
    file_path,
    json_line,
    located,
    spot,
    writing,
)
from streamplace.io.lines import Line, lines_of
from streamplace.io.parsing import parse_json, untyped
from streamplace.io.schema import OPERATOR, STREAM
from streamplace.io.suffixes import LINES
from streamplace.model.arrays import Floats
from streamplace.model.columns import FieldRule, NumberRule, checked_kind
from streamplace.model.graph import StreamGraph, rated
from streamplace.model.message_text import quoted, shown
from streamplace.model.operators import ALL, EACH, Operators, Window
from streamplace.model.streams import Streams

_Row = dict[str, Any]
_GRAPH_FIELD = re.compile(rb'"graph"\s*:')
_T = TypeVar("_T")


class Document(NamedTuple):
    """A validated document."""

    parts: dict[str, Any]  # documents of the ``graph`` and of the other parts of a problem
    where: str  # place of the document, for error messages
    default_name: str  # name for a graph without one

    @classmethod
    def of(cls, line: Line) -> "Document":
        """Validate a document of a problem, or of a graph alone."""
        content, where, default_name = line
        if _is_problem(content):
            return cls(parse_json("problem", content, where), where, default_name)
        return cls({"graph": parse_json("graph", content, where)}, where, default_name)

    def graph(self) -> StreamGraph:
        """The graph of the document."""
        with located(self.where):
            return graph_from_dict(self.parts["graph"], self.default_name)


def documents(name: str | Path) -> Iterator[Document]:
    """All documents of a file, a folder or shards (see `lines_of`), one after the other."""
    return map(Document.of, lines_of(name))


class SeveralFound(FormatError):
    """A file holds several graphs or problems, but one is needed."""


def only(items: Iterator[_T], path: str | Path, noun: str) -> _T:
    """Return the only item of a file."""
    first = next(items, None)
    if first is None:
        raise FormatError(f"{spot(Path(path))}: holds no {noun}; name a file with one")
    if next(items, None) is not None:
        raise SeveralFound(f"{spot(Path(path))}: holds several {noun}s; name a file with one")
    return first


def read_graph(path: str | Path) -> StreamGraph:
    """Read the only graph of a file."""
    return only(read_graphs(path), path, "graph")


def read_graphs(path: str | Path) -> Iterator[StreamGraph]:
    """Read the graphs of a file, of the files of a folder or of shards, one after the other.

    From documents of problems, the graph is read.
    """
    return (document.graph() for document in documents(path))


def write_graph(graph: StreamGraph, name: str | Path) -> None:
    """Write one graph as readable JSON, or as the only line of a data set."""
    path = file_path(name)
    if path.name.endswith(LINES):
        write_graphs([graph], path)
        return
    with writing(path) as file:
        file.write(encoded(_readable(graph), f"graph {quoted(graph.name)}"))


def _readable(graph: StreamGraph) -> str:
    """JSON with one operator or stream per line."""
    fields = []
    for key, value in graph_to_dict(checked_kind(graph, StreamGraph)).items():
        if key in ("operators", "streams"):
            text = "[" + ",".join("\n  " + _compact(row) for row in value) + "\n ]"
        else:
            text = _compact(value)
        fields.append(f' "{key}": {text}')
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_graphs(graphs: Iterable[StreamGraph], path: str | Path) -> int:
    """Write a data set, one graph per line, and return their number."""
    return write_lines(map(_named_line, checked_kind(graphs, Iterable)), file_path(path), "graph")


def _named_line(graph: StreamGraph) -> tuple[str, bytes]:
    if not isinstance(graph, StreamGraph):
        raise FormatError(f"{quoted(graph)} is not a graph; write problems with write_problems")
    return graph.name, graph_line(graph)


def write_lines(lines: Iterable[tuple[str, bytes]], path: Path, noun: str) -> int:
    """Write a data set of named lines, and return their number."""
    check_suffix(path, "a data set", *LINES)
    count = 0
    with writing(path) as file:
        for name, line in lines:
            if len(line) > MAX_LINE_BYTES:
                raise FormatError(
                    f"{spot(path)}: {noun} {quoted(name)} needs a line longer than "
                    f"{MAX_LINE_BYTES >> 20} MiB; write it to a .json file of its own"
                )
            file.write(line)
            count += 1
    return count


def graph_line(graph: StreamGraph) -> bytes:
    """One line of a data set."""
    return encoded(json_line(graph_to_dict(graph)), f"graph {quoted(graph.name)}")


def graph_from_dict(document: dict[str, Any], default_name: str = "graph") -> StreamGraph:
    """Graph from a validated document of the native format."""
    rows, lines = document["operators"], document.get("streams", [])
    usual = document.get("fires", EACH)
    operators = Operators(
        [row["name"] for row in rows],
        **_columns_of(rows, OPERATOR, _operator),
        window={i: _window(row) for i, row in enumerate(rows) if "window" in row},
        fires_all=[row.get("fires", usual) == ALL for row in rows],
    )
    sources, targets = [line["from"] for line in lines], [line["to"] for line in lines]
    if len(set(zip(sources, targets, strict=True))) < len(lines):
        _refuse_copies(lines, operators)
    columns = _columns_of(lines, STREAM, _stream)
    streams = Streams.between(operators, sources, targets, **columns)
    if usual == ALL:
        operators, streams = rated(operators, streams)
    name = document.get("name", default_name)
    return StreamGraph(name, operators, streams, document.get("attributes", {}))


def _refuse_copies(lines: list[dict[str, Any]], operators: Operators) -> None:
    """Raise FormatError for a stream that equals another.

    Equal streams are legal as inputs of a join, or if they are partitioned by different keys.
    """
    rows = set[tuple[Any, ...]]()
    for line in lines:
        row = tuple(sorted(line.items()))
        is_join = operators.fires_all[operators.index(line["to"])]
        if row in rows and not is_join and line.get("partitioning") != "hash":
            raise FormatError(
                f"{_stream(line)} is written twice, and would be sent twice; drop one, or double "
                "its selectivity"
            )
        rows.add(row)


def graph_to_dict(graph: StreamGraph) -> dict[str, Any]:
    """Native document of a graph, without fields that equal their defaults.

    A rule of firing that all operators share is in the document of the graph.
    """
    operators, streams, names = graph.operators, graph.streams, graph.operators.name
    document: dict[str, Any] = {"name": graph.name}
    if graph.attributes:
        document["attributes"] = dict(graph.attributes)
    joins = operators.fires_all
    if joins.all():
        document["fires"], joins = ALL, np.zeros(len(joins), np.bool_)
    document["operators"] = [
        _operator_row(operators, i) | ({"fires": ALL} if joins[i] else {})
        for i in range(len(operators))
    ]
    ends = zip(streams.source.tolist(), streams.target.tolist(), strict=True)
    document["streams"] = [
        {"from": names[u], "to": names[v]} | _stated(streams, STREAM, i)
        for i, (u, v) in enumerate(ends)
    ]
    return document


def _operator_row(operators: Operators, i: int) -> dict[str, Any]:
    row: dict[str, Any] = {"name": operators.name[i], "ipt": plain(operators.ipt[i])}
    row |= _stated(operators, OPERATOR, i)
    about = {"about": row.pop("about")} if "about" in row else {}
    if i in operators.window:
        window = operators.window[i]
        limit = () if math.isinf(window.limit) else ("limit",)
        keys = ("size", "advance", "base", "factor", *limit)
        row["window"] = {key: plain(getattr(window, key)) for key in keys}
    return row | about


def _stated(table: Operators | Streams, rules: dict[str, FieldRule], i: int) -> dict[str, Any]:
    """Fields of a row that do not equal their defaults."""
    row: dict[str, Any] = {}
    for key, rule in rules.items():
        value = getattr(table, key)[i]
        if value == rule.default or value != value:
            continue
        if isinstance(value, str | frozenset):
            row[key] = value if isinstance(value, str) else sorted(value)
        else:
            row[key] = plain(value)
    return row


def _columns_of(
    rows: list[_Row], rules: dict[str, FieldRule], label: Callable[[_Row], str]
) -> dict[str, Any]:
    """Columns by name, of the fields that any row has; numbers are read with their units."""
    stated = set[str]().union(*rows)
    return {
        key: _numbers(rows, key, rule, label)
        if isinstance(rule, NumberRule)
        else [row.get(key, rule.default) for row in rows]
        for key, rule in rules.items()
        if key in stated
    }


def _numbers(rows: list[_Row], key: str, rule: NumberRule, label: Callable[[_Row], str]) -> Floats:
    usual = math.nan if rule.default is None else rule.default
    values = [row.get(key, usual) for row in rows]
    if rule.parse is not None and str in set(map(type, values)):
        for i, value in enumerate(values):
            if isinstance(value, str):
                with located(label(rows[i])):
                    values[i] = rule.parse(value)
    return np.array(values, np.float64)


def _operator(row: _Row) -> str:
    return f"operator {quoted(row['name'])}"


def _stream(line: _Row) -> str:
    return f"stream {shown(line['from'])}→{shown(line['to'])}"


def _window(row: _Row) -> Window:
    with located(_operator(row)):
        return Window(**row["window"])


def _is_problem(content: bytes) -> bool:
    """Whether a document has a field ``graph`` and no ``operators``; most need no parsing."""
    if not _GRAPH_FIELD.search(content):
        return False
    try:
        document = untyped(content)
    except ValueError:
        return False
    is_candidate = isinstance(document, dict) and "operators" not in document
    return is_candidate and isinstance(document.get("graph"), dict)
