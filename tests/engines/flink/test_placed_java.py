"""The exported class, compiled against Flink and run on a job's graph."""

import base64
import subprocess
import zipfile
from pathlib import Path

import pytest

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink, find_java
from streamplace.engines.flink.pin.pinning import SpreadLimits, pinning
from streamplace.engines.flink.program.jars import compile_java, placed_jar, placed_java

PROGRAMS = Path(__file__).parent / "java" / "placed"
NAMES = (
    "unit\x1fends",
    "record\x1e1",
    "\x1e0\x1f\x1f",
    "a\nb",
    "\\u000a\\",
    '" + x + "',
    "größe 大",
)


def compiled(flink: Flink, folder: Path, vectors: Layout, *programs: str) -> Path:
    """Folder with the classes of a placement and of programs."""
    devices = sorted(vectors.devices)
    sources = placed_java(pinning(vectors, SpreadLimits.untouched(devices)))
    for name, text in sources.items():
        (folder / name).write_text(text, encoding="utf-8")
    own = [PROGRAMS / f"{name}.java" for name in programs]
    compile_java(flink, [*sorted(folder.glob("*.java")), *own], folder)
    return folder


def run_java(flink: Flink, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a class of a folder with its arguments."""
    java = [find_java("java"), *flink.java_options()]
    return subprocess.run(
        [*java, "-cp", ":".join(map(str, [*flink.jars, folder])), *words],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def pinned(flink: Flink, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of two programs, whose two operators are placed on one device."""
    vectors = {"in": ["dev-0"], "out": ["dev-0"]}
    return compiled(
        flink, tmp_path_factory.mktemp("pinned"), Layout(vectors), "Requesting", "Listening"
    )


def test_operators_and_devices_of_any_name_get_their_groups(flink: Flink, tmp_path: Path) -> None:
    """Those too that hold what the class separates its own cells with."""
    devices = {name: f"on {name}" for name in NAMES}
    names = [base64.b64encode(name.encode()).decode() for name in NAMES]
    vectors = {name: [device] for name, device in devices.items()}
    run = run_java(flink, compiled(flink, tmp_path, Layout(vectors), "Main"), "Main", *names)
    assert run.returncode == 0, run.stderr
    told = [line.split() for line in run.stdout.splitlines()]
    assert [base64.b64decode(group).decode() for group, _ in told] == list(devices.values())
    assert {known for _, known in told} == {"true"}


def test_devices_that_a_program_requests_are_refused(flink: Flink, pinned: Path) -> None:
    """A slot of the placement would not have them."""
    run = run_java(flink, pinned, "Requesting")
    assert run.returncode != 0
    assert "slot sharing group 'vision' requests gpu, which a placement does not" in run.stderr


def test_listeners_of_a_program_are_told_of_its_job(flink: Flink, pinned: Path) -> None:
    """Once, although another environment executes it."""
    run = run_java(flink, pinned, "Placed", "Listening")
    assert run.stdout.count("told of the job") == 1, run.stderr


def test_the_pinning_classes_run_on_the_oldest_java_of_flink(flink: Flink, tmp_path: Path) -> None:
    """Java 11, whose classes have version 55, whatever compiles them here."""
    job = tmp_path / "job.jar"
    with zipfile.ZipFile(job, "w") as made:
        made.writestr("a", "")
    answer = pinning(Layout({"in": ["dev-0"]}), SpreadLimits.untouched(["dev-0"]))
    with placed_jar(flink, job, [], answer) as jar, zipfile.ZipFile(jar) as opened:
        content = opened.read("Placed.class")
    assert int.from_bytes(content[6:8], "big") == 55
