"""What real parsers make of exported texts: their shape, and the texts that they hold.

The shape is all that is not data; it must not depend on what anything is called.
"""

import ast
import atexit
import base64
import csv
import io
import json
import re
import shlex
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest

from streamplace.engines.text import unquoted_csv


class Parsed(NamedTuple):
    """Shape of a document, and its texts in order."""

    shape: list[str]
    texts: list[str]


def parse(name: str, text: str) -> Parsed:
    """What the parser of a file's language finds in it."""
    suffix = Path(name).suffix
    assert suffix in LANGUAGES, f"say in {Path(__file__).name} how {suffix} files are parsed"
    steps = list(LANGUAGES[suffix](text))
    return Parsed([s for s, _ in steps], [t for _, t in steps if t is not None])


Steps = Iterator[tuple[str, str | None]]


def _json(text: str) -> Steps:
    return _values(json.loads(text, object_pairs_hook=_Pairs))


def _yaml(text: str) -> Steps:
    yaml = pytest.importorskip("yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return _values(list(yaml.load_all(text, loader)))


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its keys, twice where they stand twice."""


def _values(value: Any) -> Steps:
    if isinstance(value, dict | _Pairs):
        yield "object", None
        for key, item in value.items() if isinstance(value, dict) else value:
            yield "key", str(key)
            yield from _values(item)
    elif isinstance(value, list):
        yield "list", None
        for item in value:
            yield from _values(item)
    else:
        yield type(value).__name__, str(value)
    yield "end", None


def _python(text: str) -> Steps:
    for node in ast.walk(ast.parse(text)):
        constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
        yield type(node).__name__, node.value if constant else None


def _java(text: str) -> Steps:
    process = _java_parser()
    process.stdin.write(base64.b64encode(text.encode()) + b"\n")
    process.stdin.flush()
    for word in process.stdout.readline().split():
        if word[:1] in b"=!":
            said = base64.b64decode(word[1:]).decode()
            assert word[:1] == b"=", said
            yield "text", said
        else:
            yield word.decode(), None


@cache
def _java_parser() -> Any:
    """Javac's parser in a process of its own, which starts once."""
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler")
    source = Path(__file__).with_name("ParseJava.java")
    process = subprocess.Popen(
        ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", str(source)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(process.kill)
    return process


def _csv(text: str) -> Steps:
    for row in csv.reader(io.StringIO(text, newline=""), strict=True):
        yield "row", None
        for cell in row:
            yield "cell", unquoted_csv(cell)


def _dot(text: str) -> Steps:
    pydot = pytest.importorskip("pydot")
    graphs = pydot.graph_from_dot_data(text)
    assert graphs is not None
    assert len(graphs) == 1
    yield from _dot_graph(graphs[0])


def _dot_graph(graph: Any) -> Steps:
    yield "graph", _dot_text(graph.get_name())
    for node in graph.get_nodes():
        yield "node", _dot_text(node.get_name())
        yield from _dot_facts(node)
    for edge in graph.get_edges():
        yield "from", _dot_text(edge.get_source())
        yield "to", _dot_text(edge.get_destination())
        yield from _dot_facts(edge)
    for box in graph.get_subgraphs():
        yield from _dot_graph(box)


def _dot_facts(thing: Any) -> Steps:
    for key, value in thing.get_attributes().items():
        yield key, None if key == "label" else _dot_text(value)


def _dot_text(text: Any) -> str:
    name = str(text).removeprefix('"').removesuffix('"')
    return unquote(name.removeprefix("=") if name.startswith("=%") else name)


def _xml(text: str) -> Steps:
    for element in ElementTree.fromstring(text).iter():
        yield element.tag, element.text
        yield from element.attrib.items()


def _shell(text: str) -> Steps:
    """Words and operators; Bash must find no fault with them."""
    done = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    return _tokens(SHELL, lambda word: shlex.split(word)[0], text)


def _spl(text: str) -> Steps:
    return _tokens(SPL, str, text)


SHELL = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<text>'[^']*'(?:\"'\"'[^']*')*)|(?P<space>\s+)"
    r"|(?P<other>\"(?:[^\"\\]|\\.)*\"|[^\s'\"#]+)"
)
SPL = re.compile(
    r"(?P<comment>//[^\n]*)|\"(?P<text>(?:[^\"\\\n\r]|\\.)*)\"|(?P<space>\s+)"
    r"|(?P<word>\w+)|(?P<other>[^\w\s\"])"
)


def _tokens(language: re.Pattern[str], decoded: Callable[[str], str], text: str) -> Steps:
    at = 0
    while at < len(text):
        match = language.match(text, at)
        assert match is not None, text[at : at + 80]
        at, kind = match.end(), match.lastgroup or ""
        if kind == "text":
            yield kind, decoded(match["text"])
        elif kind == "other":
            yield match[0], None
        elif kind == "word":
            yield kind, None
    yield "end", None


LANGUAGES: dict[str, Callable[[str], Steps]] = {
    ".csv": _csv,
    ".dot": _dot,
    ".graphml": _xml,
    ".java": _java,
    ".json": _json,
    ".py": _python,
    ".sh": _shell,
    ".spl": _spl,
    ".yaml": _yaml,
}
"""Parser of the files with a suffix; Java, SPL and shells tell words from texts only."""
