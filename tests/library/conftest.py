"""A library of two instances in a folder of its own."""

import json
import shutil
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "datasets/library"
NAMES = ("random-00", "random-pass-00", "random-pass-19")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of three entries: two that are closed, and an open one."""
    folder = tmp_path / "library"
    for name in NAMES:
        shutil.copytree(SOURCE / name, folder / name)
    manifest = json.loads((SOURCE / "manifest.json").read_text())
    manifest["instances"] = {name: manifest["instances"][name] for name in NAMES}
    manifest["sha256"] = {
        file: digest
        for file, digest in manifest["sha256"].items()
        if file.partition("/")[0] in NAMES
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    lines = (SOURCE / "best.jsonl").read_text().splitlines(keepends=True)
    (folder / "best.jsonl").write_text(
        "".join(line for line in lines if json.loads(line)["instance"] in NAMES)
    )
    return folder
