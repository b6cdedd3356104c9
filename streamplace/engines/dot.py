"""DOT: a drawing by Graphviz with a box around each processing element, and the parser for it.

The parser finds nodes and their attributes in one pass, however deep subgraphs are nested. It
accepts Graphviz' grammar, but skips ports, edges and defaults, which no placement needs.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from streamplace.engines.deployment import DeployedFlow, Deployment, Element
from streamplace.engines.registry import export
from streamplace.engines.text import (
    CHECK,
    comment,
    decoded,
    dot_label,
    group_notes,
    quoted_dot,
    unique,
    unquoted_dot,
)
from streamplace.errors import FormatError
from streamplace.io.files import located
from streamplace.model.messages import shown
from streamplace.model.units import format_bandwidth, format_bytes

GOLDEN = 0.618034
"""Difference of hue between consecutive devices, by which neighbours look different."""
_TOKEN = re.compile(
    r"""(?P<skip>\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|^\#[^\n]*+)
    |(?P<quoted>"(?:[^"\\]|\\.)*+")
    |(?P<html><)
    |(?P<mark>->|--|[{}\[\]=;,:+])
    |(?P<word>[^\W\d]\w*+|-?(?:\.\d++|\d++(?:\.\d*+)?))""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_BRACKET = re.compile("[<>]")
_CONTINUED = re.compile(r"\\\r?\n")
"""A backslash at the end of a line of a text, as Graphviz breaks long ones."""
_ARROWS = ("->", "--")
_DEFAULTS = ("graph", "node", "edge")
_KEYWORDS = (*_DEFAULTS, "strict", "digraph", "subgraph")


class DotNode(NamedTuple):
    """A node statement."""

    name: str
    attributes: dict[str, str]


class _Token(NamedTuple):
    """A mark, a keyword, or an ID without its quotes."""

    kind: str
    text: str
    line: int


def nodes(text: str) -> Iterator[DotNode]:
    """Node statements of the single graph in a DOT document, including those in subgraphs.

    >>> list(nodes('digraph { subgraph x { a [device="d 0"]; } a -> b }'))
    [DotNode(name='a', attributes={'device': 'd 0'})]
    """
    tokens = _Tokens(text)
    tokens.begin()
    depth, after_arrow = 1, False
    while depth:
        token = tokens.next()
        if token.kind == "id":
            node = tokens.statement(token)
            if node and not after_arrow:
                yield node
        elif token.kind == "keyword":
            tokens.keyword(token)
        elif token.text in ("{", "}"):
            depth += 1 if token.text == "{" else -1
        elif token.text == "[":  # of an edge that ends in a subgraph
            tokens.attributes()
        elif token.text not in (*_ARROWS, ";", ","):
            raise _wrong(token.line)
        after_arrow = token.text in _ARROWS
    if (token := tokens.next()).kind != "end":
        raise _wrong(token.line)


class _Tokens:
    """Tokens of a text, with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._ahead = next(self._tokens)

    def next(self) -> _Token:
        """Consume a token."""
        token = self._ahead
        self._ahead = next(self._tokens, token)
        return token

    def taken(self, text: str) -> bool:
        """Consume this mark if it is next."""
        return self._ahead.kind == "mark" and self._ahead.text == text and bool(self.next())

    def begin(self) -> None:
        """Consume ``strict digraph name {``."""
        token = self.next()
        if (token.kind, token.text) == ("keyword", "strict"):
            token = self.next()
        if token.kind != "keyword" or token.text not in ("graph", "digraph"):
            raise _wrong(token.line)
        if self._ahead.kind == "id":
            self.identifier()
        self.expect("{")

    def statement(self, first: _Token) -> DotNode | None:
        """Consume a statement after its first ID; None unless it is a node with attributes."""
        name = self.joined(first)
        if self.taken("="):
            self.identifier()
            return None
        while self.taken(":"):
            self.identifier()
        return DotNode(name, self.attributes()) if self.taken("[") else None

    def keyword(self, token: _Token) -> None:
        """Consume the rest of a subgraph's head or of a statement of defaults."""
        if token.text == "subgraph":
            if self._ahead.kind == "id":
                self.identifier()
        elif token.text in _DEFAULTS:
            if self.taken("["):
                self.attributes()
        else:
            raise _wrong(token.line)

    def attributes(self) -> dict[str, str]:
        """Consume attributes after a bracket, and further lists of them."""
        attributes: dict[str, str] = {}
        while True:
            while not self.taken("]"):
                name = self.identifier()
                attributes[name] = self.identifier() if self.taken("=") else "true"
                _ = self.taken(",") or self.taken(";")
            if not self.taken("["):
                return attributes

    def identifier(self) -> str:
        """Consume an ID; keywords are valid as names of attributes."""
        token = self.next()
        if token.kind not in ("id", "keyword"):
            raise _wrong(token.line)
        return self.joined(token)

    def joined(self, token: _Token) -> str:
        """Text of an ID, with those concatenated to it."""
        parts = [token.text]
        while self.taken("+"):
            parts.append(self.next().text)
        return "".join(parts)

    def expect(self, text: str) -> None:
        """Consume a mark that must be next."""
        if not self.taken(text):
            raise _wrong(self._ahead.line)


def _tokens(text: str) -> Iterator[_Token]:
    """Tokens of a text; the last one, of kind ``end``, is repeated for ever."""
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _wrong(line)
        kind, end = str(match.lastgroup), match.end()
        if kind == "html":
            end = _html_end(text, at, line)
        if kind != "skip":
            yield _token(kind, text[at:end], line)
        line += text.count("\n", at, end)
        at = end
    while True:
        yield _Token("end", "", line)


def _token(kind: str, raw: str, line: int) -> _Token:
    if kind == "quoted":
        return _Token("id", _CONTINUED.sub("", raw[1:-1]).replace('\\"', '"'), line)
    if kind == "word" and raw.lower() in _KEYWORDS:
        return _Token("keyword", raw.lower(), line)
    return _Token("mark" if kind == "mark" else "id", raw, line)


def _html_end(text: str, start: int, line: int) -> int:
    """Position after the bracket that closes an HTML text."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "<" else -1
        if not depth:
            return bracket.end()
    raise _wrong(line)


def _wrong(line: int) -> FormatError:
    return FormatError(
        f"is not valid DOT (line {line}); write it again with streamplace export --to dot"
    )


def read_dot(content: bytes, where: str) -> dict[str, str]:
    """Operator → device from nodes with a ``device``, also after `dot` has laid them out."""
    with located(where):
        return unique(_placed(nodes(decoded(content))))


@export("dot", suffix=".dot", read=read_dot)
def as_dot(deployment: Deployment) -> str:
    """Graphviz drawing: a box and a colour per device, streams with their rates or bytes."""
    notes = comment(
        [
            f"{deployment.title}.",
            "Use: dot -Tsvg FILE -o placement.svg",
            CHECK,
            *group_notes(deployment),
        ],
        "//",
    )
    name = quoted_dot(deployment.placed.graph.name)
    boxes = "".join(map(_box, deployment.elements))
    tasks = bool(deployment.placed.graph.operators.fires_all.all())
    label = _bytes if tasks else _rates
    streams = "".join(_stream(flow, label) for flow in deployment.flows)
    return (
        f"{notes}digraph {name} {{\n"
        '  rankdir=LR;\n  node [shape=box, style="rounded,filled"];\n'
        f"{boxes}{streams}}}\n"
    )


def _box(element: Element) -> str:
    tags = f" ({shown(', '.join(element.tags))})" if element.tags else ""
    boxes = "".join(
        f"    {quoted_dot(name)} [label={dot_label(name)}, device={quoted_dot(element.device)}, "
        f"pe={element.number}];\n"
        for name in element.operators
    )
    title = dot_label(f"PE {element.number} on {element.device}{tags}")
    colour = f'    node [fillcolor="{element.number * GOLDEN % 1:.3f} 0.250 1.000"];\n'
    return f'  subgraph "cluster_{element.number}" {{\n    label={title};\n{colour}{boxes}  }}\n'


def _stream(flow: DeployedFlow, label: Callable[[DeployedFlow], str]) -> str:
    """Edge of a stream between two operators, dashed if it crosses the network."""
    style = ", style=dashed" if flow.is_remote else ""
    ends = f"{quoted_dot(flow.source)} -> {quoted_dot(flow.target)}"
    return f'  {ends} [label="{label(flow)}"{style}];\n'


def _rates(flow: DeployedFlow) -> str:
    """Tuples/s and bits/s at the sources' full rate."""
    tuples = float(f"{flow.tuples:.4g}")
    return f"{tuples:,.15g}/s, {format_bandwidth(8 * flow.traffic)}"


def _bytes(flow: DeployedFlow) -> str:
    """Bytes that one task sends to another."""
    return format_bytes(flow.traffic / flow.tuples) if flow.tuples else format_bytes(0)


def _placed(found: Iterable[DotNode]) -> Iterator[tuple[str, str]]:
    """Operator and device of every node that has one."""
    for name, attributes in found:
        if "device" in attributes:
            yield unquoted_dot(name), unquoted_dot(attributes["device"])
