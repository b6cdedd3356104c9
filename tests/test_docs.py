"""The pages say what happens: their commands, files and Python code are run, page by page.

In a page, a block with a title is a file and is written; in a ``console`` block, lines after ``$``
are run by a shell and the lines below them are what it must print; ``python`` and ``pycon`` blocks
run one after the other. ``...`` stands for anything, and times in ms may differ.
"""

import doctest
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from module_files import module_of
from registered import forgetting

from streamplace.cli.main import main
from streamplace.engines.registry import EXPORTS
from streamplace.families.registry import FAMILIES
from streamplace.io.registry import FORMATS
from streamplace.io.schema import FILES
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS
from streamplace.rooms import absent

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)(?: title=\"(.+?)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ ", re.MULTILINE)
SKIPPED = ("make ", "pip ", "git ", "pre-commit ", ".venv/")
"""Commands of a reader's shell that have no place in a test."""
KAFKA = "docs/tutorials/kafka.md"
WHY_SKIPPED = (
    "needs Kafka: mvn -f tests/kafka/pom.xml package, and STREAMPLACE_KAFKA set to its jars"
)
SLOW = frozenset(
    {
        "docs/explanation/comparisons.md",
        "docs/how-to/cluster-run.md",
        "docs/how-to/compare.md",
        KAFKA,
        "docs/how-to/neural-networks.md",
        "docs/how-to/plan.md",
        "docs/how-to/problems.md",
        "docs/how-to/schedule.md",
        "docs/how-to/train.md",
        "docs/explanation/learned-placers.md",
        "docs/reference/library.md",
    }
)
"""They start a Ray or a Kafka, export, train or compare networks, plan or prove: all long."""
TIMES = re.compile(r"(?<=search time)\s+\d[\d.]* \S+|[\d.]+ ms")
COMPILING = re.compile(r"^(compiling kernels|another process|  \d+ s, ).*…\n", re.MULTILINE)
"""Lines of the first command after kernels changed, which pages do not show."""
SHELL = frozenset({"|", ">", ">>", "<", ";", "&&", "||"})
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    title: str
    text: str


def blocks(page):
    """Fenced blocks, in order."""
    for language, title, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        yield Block(language, title, text)


@cache
def generator():
    """The module that writes the generated parts of the pages."""
    return module_of(ROOT / "docs" / "generate.py")


def name_of(page):
    """Path of a page as its test bears it."""
    return page.relative_to(ROOT).as_posix()


def marks(page):
    """Each page in whatever process is free."""
    found = [pytest.mark.xdist_group(name_of(page))]
    if name_of(page) in SLOW:
        found.append(pytest.mark.slow)
    if name_of(page) == KAFKA:
        found.append(pytest.mark.skipif("STREAMPLACE_KAFKA" not in os.environ, reason=WHY_SKIPPED))
    return found


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """An empty working folder, and registries that forget what a page adds."""
    monkeypatch.chdir(tmp_path)
    with forgetting(EXPORTS, FAMILIES, FORMATS, OBJECTIVES, PLACERS):
        yield tmp_path
    for file in tmp_path.glob("*.pid"):  # of processes that a page did not come to end
        with suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=marks(page))
        for page in PAGES
        if any(blocks(page))
    ],
)
def test_pages_are_true(page, empty_folder, request):
    """Run everything on the page in one folder, as a reader would."""
    if name_of(page) == KAFKA:
        request.getfixturevalue("kafka_libraries")
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.title:
            file = empty_folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for entry in COMMAND.split(block.text)[1:]:
                check_command(entry)
        elif block.language == "pycon":
            check_session(block.text, names, page)
        elif block.language == "python":
            exec(compile(block.text, str(page), "exec"), names)


def check_command(entry):
    """Run one command; it must print what stands below it, and fail only where it shows why."""
    command = entry.partition("\n")[0]
    if command.startswith(SKIPPED):
        return
    words = shlex.split(command)
    plain = words[0] == "streamplace" and not SHELL.intersection(words) and "$" not in command
    check_outcome(entry, *(in_process(words[1:]) if plain else in_shell(command)))


def check_outcome(entry, status, printed):
    """Check how a command of a page ended, and what it printed."""
    command, _, expected = entry.partition("\n")
    refused = 1 if "no result." in expected else 0
    assert status == (2 if expected.startswith("error: ") else refused), entry + printed
    if expected.strip():
        same = doctest.OutputChecker().check_output(timeless(expected), timeless(printed), FLAGS)
        assert same, f"$ {command}\nThe page shows:\n{expected}\nBut it prints:\n{printed}"


def in_process(arguments):
    """Exit status and output of a streamplace command, without the cost of a new process."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out), pytest.raises(SystemExit) as stop:
        main(arguments)
    return int(stop.value.code or 0), out.getvalue()


def in_shell(command):
    """Exit status and output of a command line of a shell that finds streamplace."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**os.environ, "PATH": path},
        timeout=300,
    )
    return run.returncode, run.stdout


def timeless(text):
    """Text in which times in ms and of searches are the same, and nobody compiled kernels."""
    return TIMES.sub(" ? ms", COMPILING.sub("", text))


def check_session(text, names, page):
    """Run an interactive session as a doctest."""
    test = doctest.DocTestParser().get_doctest(text, names, name_of(page), str(page), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    failed = runner.run(test, out=report.append, clear_globs=False).failed
    names.update(test.globs)
    assert not failed, "".join(report)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page))
        for page in PAGES
        if "<!-- generated: " in page.read_text(encoding="utf-8")
    ],
)
def test_generated_parts_of_a_page_are_those_of_today(page):
    text = page.read_text(encoding="utf-8")
    assert text == generator().filled(text), "run python docs/generate.py"


def test_pictures_of_recorded_runs_are_those_of_today():
    for name, draw in module_of(ROOT / "docs" / "pictures.py").FILES.items():
        drawn = (ROOT / "docs" / "assets" / name).read_text(encoding="utf-8")
        assert drawn == draw(), "run python docs/generate.py"


@pytest.mark.parametrize("words", ["placers", *(f"file {name}" for name in FILES)])
def test_every_option_and_field_of_the_reference_has_a_meaning(words):
    rows = re.findall(r"^ *- `.*", generator().generated(words), re.MULTILINE)
    assert rows
    assert [row for row in rows if re.search(r": *$", row)] == []


def test_every_page_stands_in_the_navigation():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    there = {p.relative_to(ROOT / "docs").as_posix() for p in PAGES if p.parent != ROOT}
    assert listed == there | set(module_of(ROOT / "docs" / "hooks.py").PAGES.values())


def test_files_that_rules_are_in_exist():
    """Those of optional rooms, where these are."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Where rules are")[2].partition("\n## ")[0].partition("- ")[2]
    named = {name for name in re.findall(r"`([\w./]+)`", section) if "/" in name}
    assert len(named) > 30
    named = {name for name in named if name.partition("/")[0] not in absent()}
    places = (ROOT, ROOT / "streamplace")
    assert [name for name in named if not any((top / name).exists() for top in places)] == []
