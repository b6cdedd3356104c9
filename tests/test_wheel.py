"""The wheel without extras, in an environment of its own, far from the repository."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from test_docs import COMMAND, FLAGS, SKIPPED, blocks, check_outcome

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
MOST_MB = 520
SESSION = """
import doctest, sys
failed, tried = doctest.testfile(sys.argv[1], False, optionflags=int(sys.argv[2]))
sys.exit(failed or not tried)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Python of a new environment in which the wheel is installed, and nothing that it lacks."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    (wheel,) = folder.glob("*.whl")
    constraints = ROOT / "constraints.txt"
    install = [python, "-m", "pip", "install", "--quiet", "-c", constraints, wheel]
    subprocess.run(install, check=True, cwd=folder)
    return python


def environment(python):
    """Variables of a shell in which the environment is active, and no checkout is at hand."""
    plain = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    return {**plain, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}


def test_an_installation_is_light(python):
    """Packages take less than 520 MB before their byte code, and PyTorch is not among them."""
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    files = [file for file in packages.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert sum(file.stat().st_size for file in files) < MOST_MB * 1e6
    assert not (packages / "torch").exists()


def test_the_tutorial_works_after_an_installation(python, tmp_path):
    """Its files, its commands with what they print, and its Python session."""
    session = ""
    for block in blocks(ROOT / "docs" / "tutorials" / "placement.md"):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "pycon":
            session += block.text
        elif block.language == "console":
            for entry in COMMAND.split(block.text)[1:]:
                command = entry.partition("\n")[0]
                if command.startswith(SKIPPED):
                    continue
                done = subprocess.run(
                    ["bash", "-c", command], cwd=tmp_path, env=environment(python),
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                )  # fmt: skip
                check_outcome(entry, done.returncode, done.stdout)
    (tmp_path / "session.txt").write_text(session, encoding="utf-8")
    command = [python, "-c", SESSION, "session.txt", str(FLAGS)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(python), capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_demo_works_after_an_installation(python, tmp_path):
    command = [python, "-m", "streamplace", "demo"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(python), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "streamplace-demo" / "placements.svg").is_file()
    assert (tmp_path / "streamplace-demo" / "report.html").stat().st_size > 50_000


def test_the_library_and_its_checker_are_installed(python, tmp_path):
    command = [python.parent / "streamplace", "library", "check", "random-00"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(python), capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("accepted: random-00/") == 1
