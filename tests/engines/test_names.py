"""Names are data in whatever is exported, and nothing but data comes out.

Real parsers tell what an export holds: its shape, which is all that is not data and must not depend
on what anything is called, and its texts.
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
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest
from engine_deployments import GENERAL
from hostile import FRAGMENTS, names
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamplace.engines.deployment import Deployment
from streamplace.engines.names import slug
from streamplace.engines.registry import EXPORTS
from streamplace.engines.text import FORMULA, unquoted_csv
from streamplace.errors import StreamplaceError
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.expansion import expand


class Parsed(NamedTuple):
    """Shape of a document, and its texts in order."""

    shape: list[str]
    texts: list[str]


def parse(name, text):
    """What the parser of a file's language finds in it."""
    suffix = Path(name).suffix
    assert suffix in LANGUAGES, f"say in LANGUAGES how {suffix} files are parsed"
    steps = list(LANGUAGES[suffix](text))
    return Parsed([s for s, _ in steps], [t for _, t in steps if t is not None])


Steps = Iterator[tuple[str, str | None]]


def _json(text):
    return _values(json.loads(text, object_pairs_hook=_Pairs))


def _yaml(text):
    yaml = pytest.importorskip("yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return _values(list(yaml.load_all(text, loader)))


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its keys, twice where they stand twice."""


def _values(value):
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


def _python(text):
    for node in ast.walk(ast.parse(text)):
        constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
        yield type(node).__name__, node.value if constant else None


def _java(text):
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
def _java_parser():
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


def _csv(text):
    for row in csv.reader(io.StringIO(text, newline=""), strict=True):
        yield "row", None
        for cell in row:
            yield "cell", unquoted_csv(cell)


def _dot(text):
    pydot = pytest.importorskip("pydot")
    graphs = pydot.graph_from_dot_data(text)
    assert len(graphs) == 1
    yield from _dot_graph(graphs[0])


def _dot_graph(graph):
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


def _dot_facts(thing):
    for key, value in thing.get_attributes().items():
        yield key, None if key == "label" else _dot_text(value)


def _dot_text(text):
    name = str(text).removeprefix('"').removesuffix('"')
    return unquote(name.removeprefix("=") if name.startswith("=%") else name)


def _xml(text):
    for element in ElementTree.fromstring(text).iter():
        yield element.tag, element.text
        yield from element.attrib.items()


def _shell(text):
    """Words and operators; Bash must find no fault with them."""
    done = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    return _tokens(SHELL, lambda word: shlex.split(word)[0], text)


SHELL = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<text>'[^']*'(?:\"'\"'[^']*')*)|(?P<space>\s+)"
    r"|(?P<other>\"(?:[^\"\\]|\\.)*\"|[^\s'\"#]+)"
)


def _tokens(language, decoded, text):
    at = 0
    while at < len(text):
        match = language.match(text, at)
        assert match is not None, text[at : at + 80]
        at, kind = match.end(), match.lastgroup or ""
        if kind == "text":
            yield kind, decoded(match["text"])
        elif kind == "other":
            yield match[0], None
    yield "end", None


LANGUAGES: dict[str, Callable[[str], Steps]] = {
    ".csv": _csv,
    ".dot": _dot,
    ".graphml": _xml,
    ".java": _java,
    ".json": _json,
    ".py": _python,
    ".sh": _shell,
    ".yaml": _yaml,
}
"""Parser of the files with a suffix; Java and shells tell words from texts only."""

WORDS = ("graph", "src", "map", "sink", "box", "node", "tag", "kind", "fact")
PLAIN = tuple(f"Plain {word}" for word in WORDS)
"""Names that no engine takes as they are, so that what is made of them is not mistaken for them."""


class Case(NamedTuple):
    """What everything in a small deployment is called."""

    graph: str
    src: str
    map: str
    sink: str
    box: str
    node: str
    tag: str
    kind: str
    fact: str

    def deployments(self):
        """Three operators with groups, tags and kinds on two devices, as tasks, and as subtasks."""
        operators = [
            Operator(self.src, ipt=1e4, payload=100.0, rate=100.0, kind=self.kind),
            Operator(self.map, ipt=1e4, payload=100.0, parallelism=2, requires={self.tag}),
            Operator(self.sink, ipt=1e4, kind=self.kind),
        ]
        streams = [Stream(self.src, self.map), Stream(self.map, self.sink)]
        graph = StreamGraph.of(self.graph, operators, streams, {self.fact: self.kind})
        cluster = Cluster.of([Device(name, tags={self.tag}) for name in (self.box, self.node)])
        rules = Constraints(colocate=[{self.src, self.sink}], exlocate=[{self.src, self.map}])
        problem = Problem(graph, cluster, rules)
        whole = {self.src: self.box, self.map: self.node, self.sink: self.box}
        yield Deployment.of(problem, whole)
        tasks = StreamGraph.of(self.graph, operators, streams, fires="all")
        yield Deployment.of(Problem(tasks, cluster, rules), whole)
        loose = Problem(graph, cluster)
        del whole[self.map]
        first, second = expand(graph).subtasks(self.map)
        yield Deployment.of(loose, whole | {first: self.box, second: self.node})


strange = names.filter(lambda name: name != slug(name))
cases = st.lists(strange, min_size=len(PLAIN), max_size=len(PLAIN), unique=True).map(
    lambda drawn: Case(*drawn)
)


def named(*fragments):
    """Names that hold all of these, each beginning and ending with another one."""
    turned = (fragments[i:] + fragments[:i] for i in range(len(PLAIN)))
    return Case(*(f"{' '.join(turn)} {i}{turn[0]}" for i, turn in enumerate(turned)))


EVERY_FRAGMENT = [named(*(FRAGMENTS * 2)[k : k + 9]) for k in range(0, len(FRAGMENTS), 9)]


parsed_once = cache(parse)


@cache
def plain_files(export):
    """Files of an export of each deployment with harmless names."""
    return [EXPORTS[export].files(plain) for plain in Case(*PLAIN).deployments()]


def files_or_refusal(export, deployment, case):
    """Files of an export; none where it refuses a name that it cannot hold, which it may."""
    try:
        return EXPORTS[export].files(deployment)
    except StreamplaceError as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert not all(name.isprintable() for name in case)
    return {}


def check(export, case):
    """Same shape as with harmless names, and names where those were; or a refusal that says why."""
    for expected, hostile in zip(plain_files(export), case.deployments(), strict=True):
        files = files_or_refusal(export, hostile, case)
        assert len(files) in (0, len(expected))
        for (name, model), (other, text) in zip(expected.items(), files.items(), strict=False):
            assert Path(other).name.isascii()
            assert Path(other).parent == Path(name).parent
            wanted, found = parsed_once(name, model), parse(other, text)
            assert found.shape == wanted.shape
            renamed = dict(zip(PLAIN, case, strict=True))
            assert [t for t, w in zip(found.texts, wanted.texts, strict=True) if w in renamed] == [
                renamed[w] for w in wanted.texts if w in renamed
            ]


@pytest.mark.parametrize("export", GENERAL)
def test_any_name_is_data_to_every_export(export):
    """By the language's own parser; first those that mean something to a language."""
    for case in EVERY_FRAGMENT:
        check(export, case)

    @given(cases)
    @settings(max_examples=6)
    def any_case(case):
        check(export, case)

    any_case()


@pytest.mark.parametrize("export", [name for name in EXPORTS if EXPORTS[name].read])
@given(case=cases)
@settings(max_examples=10)
def test_any_name_comes_back(export, case):
    for deployment in case.deployments():
        read = EXPORTS[export].read
        for text in files_or_refusal(export, deployment, case).values():
            assert dict(read(text.encode(), "file")) == deployment.placement.as_dict()


@given(case=cases)
@example(case=Case(*PLAIN)._replace(box="esac", node="*)"))
@example(case=EVERY_FRAGMENT[5])
@settings(max_examples=10)
def test_scripts_do_nothing_but_what_they_say(case):
    """Run for each device, with stand-ins for other programs: no name is a command."""
    for export in GENERAL:
        if any(name.endswith(".sh") for name in plain_files(export)[0]):
            with tempfile.TemporaryDirectory() as folder:
                run_scripts(export, case, Path(folder))


def run_scripts(export, case, folder):
    """Run the scripts of an export where there is no program at all."""
    files = files_or_refusal(export, next(case.deployments()), case)
    for name in (name for name in files if name.endswith(".sh")):
        (folder / name).write_text(files[name], encoding="utf-8", newline="")
        for device in (case.box, case.node):
            command = [str(shutil.which("bash")), name, device, "10.0.0.1:6379"]
            run = subprocess.run(command, cwd=folder, env={"PATH": "/none"}, capture_output=True)
            assert run.returncode == 127, run.stderr  # its line was found, but not its program
        assert [path.name for path in folder.iterdir()] == [name]


@given(case=cases)
@example(case=EVERY_FRAGMENT[-1])
@example(case=EVERY_FRAGMENT[-2])
@settings(max_examples=30)
def test_no_cell_of_a_table_is_a_formula(case):
    """Spreadsheets compute what begins with certain signs, in whatever column."""
    for deployment in case.deployments():
        table = EXPORTS["csv"].files(deployment)["placement.csv"]
        for row in csv.reader(io.StringIO(table, newline=""), strict=True):
            assert not [cell for cell in row if FORMULA.match(cell) and not cell.startswith("'")]
