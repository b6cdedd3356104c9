import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_deployments import DEPLOYMENTS

from streamplace.engines.dot import read_dot
from streamplace.engines.registry import EXPORTS
from streamplace.errors import FormatError


def test_a_device_has_a_colour_of_its_own() -> None:
    """Operators of a device share it."""
    (text,) = EXPORTS["dot"].files(DEPLOYMENTS["odd names"]).values()
    colours = re.findall(r'fillcolor="([\d. ]+)"', text)
    assert len(set(colours)) == len(colours) == len(DEPLOYMENTS["odd names"].elements)


def test_what_tasks_hand_on_is_told_in_bytes() -> None:
    """A task graph has no rates."""
    (text,) = EXPORTS["dot"].files(DEPLOYMENTS["tasks"]).values()
    assert '"load" -> "left" [label="4 MB", style=dashed]' in text
    assert '"right" -> "add" [label="1 MB"]' in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("deployment", ["shop", "odd names"])
def test_graphviz_draws_it(written: Callable[..., Path], deployment: str) -> None:
    """And the drawing, as DOT, can be read back."""
    file = written("dot", deployment) / "placement.dot"
    drawn = subprocess.run(["dot", "-Tdot", str(file)], capture_output=True, check=True).stdout
    assert read_dot(drawn, "f") == DEPLOYMENTS[deployment].placement.as_dict()


def test_a_drawing_that_was_laid_out_can_be_read() -> None:
    """Graphviz drops quotes, adds attributes and defaults."""
    laid_out = b"""digraph shop {
        graph [bb="0,0,206,108", rankdir=LR];
        node [label="\\N", shape=box];
        subgraph cluster_0 {
            graph [bb="8,8,78,83", label="PE 0 on d0"];
            src [device=d0, height=0.5, label=src, pe=0, pos="43,34", width=0.75];
        }
        "two words" [device="d 1", height=0.5, pos="43,34"];
        src -> "two words" [label="1/s, 8 bps", pos="e,1,2 3,4"];
    }"""
    assert read_dot(laid_out, "f") == {"src": "d0", "two words": "d 1"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"digraph {", "not valid DOT"),
        (b"digraph { a -> b }", "places no operator"),
        (b"digraph { a [device=d0]; a [device=d1] }", "'a' appears twice"),
        (
            b"digraph { a [device=d0] }\ndigraph { b [device=d1] }",
            r"is not valid DOT \(line 2\)",  # it would be passed over in silence
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_line(
    text: bytes, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the file's name in front, and nothing else printed."""
    with pytest.raises(FormatError, match=f"^t.dot: .*{complaint}"):
        read_dot(text, "t.dot")
    assert capsys.readouterr() == ("", "")


def test_what_other_tools_write_is_read() -> None:
    """Comments, keywords in any case, ports, lists of attributes, texts in pieces and in HTML."""
    text = """// a note
# another
    STRICT Digraph "node" { /* and { one ] more */
        graph [label=<<b>x</b>>]; node [device=none]; rankdir = LR
        "node" [device=d0][label="a \"b\""]  c:out:n [device="d" + "1"] é [device=1.5,];
        subgraph { e [device=d2] } -> f [device=edge]
        e -> { g [device=d3] }
        h ["]"=yes, device=d4]
    }""".encode()
    placed = {"node": "d0", "c": "d1", "é": "1.5", "e": "d2", "g": "d3", "h": "d4"}
    assert read_dot(text, "f") == placed


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_long_name_that_graphviz_broke_is_whole_on_every_system(end: bytes) -> None:
    text = b'digraph {\n  "long \\\nname" [device="d\\\n0"];\n}\n'.replace(b"\n", end)
    assert read_dot(text, "f") == {"long name": "d0"}


@pytest.mark.parametrize(
    "text",
    [
        b"graph{" + b"{" * 100_000,
        b"graph{" + b"subgraph x {" * 50_000,
        b"digraph {a" + b"[x=1]" * 50_000,
        b"digraph {a [x=" + b"<" * 100_000,
        b'digraph {"' + b'\\"' * 100_000,
        b"digraph {" + b"/*" * 100_000,
    ],
    ids=["braces", "subgraphs", "lists", "html", "quotes", "comments"],
)
def test_nesting_costs_neither_time_nor_stack(text: bytes) -> None:
    """A reader that tries again at every bracket would not end."""
    with pytest.raises(FormatError, match="is not valid DOT"):
        read_dot(text, "f")


def test_deep_subgraphs_are_read() -> None:
    """A hundred thousand in one another."""
    depth = 100_000
    text = b"digraph {" + b"{" * depth + b"a [device=d0]" + b"}" * depth + b"}"
    assert read_dot(text, "f") == {"a": "d0"}
