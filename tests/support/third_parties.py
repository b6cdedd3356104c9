"""Packages of third parties, installed as their pyproject.toml says, and commands that see them."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).parents[2] / "examples"


class Answer(NamedTuple):
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str


def installed(package, site):
    """Install a package of modules into a folder, with its entry points."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    about = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    facts = f"Name: {project['name']}\nVersion: {project['version']}\n"
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\n{facts}")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in points.items())
        for group, points in project["entry-points"].items()
    ]
    (about / "entry_points.txt").write_text("\n".join(groups))
    for module in package.glob("*.py"):
        shutil.copy(module, site)
    return site


def run_with(site, folder, *arguments):
    """Run a command of this checkout in a folder, where a site's packages are installed."""
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    found = subprocess.run(
        [sys.executable, "-m", "streamplace", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    return Answer(found.returncode, found.stdout, found.stderr)
