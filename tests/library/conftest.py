"""A library of two instances in a folder of its own."""

import json
import shutil
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "datasets/library"
PROOF_SECONDS = 0.001
NAMES = ("giph-11", "random-00", "random-pass-00")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder of three entries, which commands use: two that are closed, and an open one."""
    folder = tmp_path / "library"
    monkeypatch.setenv("STREAMPLACE_LIBRARY", str(folder))
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
    lines = map(json.loads, (SOURCE / "best.jsonl").read_text().splitlines())
    chosen = [line for line in lines if line["instance"] in NAMES]
    for line in chosen:
        line |= {"proof_seconds": PROOF_SECONDS} if line["closed"] else {}
    (folder / "best.jsonl").write_text("".join(json.dumps(line) + "\n" for line in chosen))
    return folder
