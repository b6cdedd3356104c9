"""The notebooks of the documentation run, and show what is stored in them."""

import json
import re
from pathlib import Path

import pytest
from module_files import module_of

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SLOW = frozenset({"training.ipynb"})
"""They train models; what those compute depends a little on the instructions of the CPU."""
NUMBER = re.compile(r"\d+\.\d+")
TIME = re.compile(r"[\d.,]+ (?:ms|us|µs|s|min)\b|(?<=>)[\d.,]+(?=</td></tr>)")
"""Times, also those in the last column of a comparison."""

TAG = re.compile(r"<[^<>]+>")
"""Styles and coordinates may change without a change of what is told."""


def shown(notebook):
    """Kinds and words of what every code cell shows; times are alike."""
    return [
        [
            (kind, " ".join(TAG.sub(" ", TIME.sub("? s", "".join(text))).split()))
            for output in cell["outputs"]
            for kind, text in output.get("data", {"stdout": output.get("text", "")}).items()
        ]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=path.name,
            marks=[
                pytest.mark.xdist_group(path.name),
                *([pytest.mark.slow] if path.name in SLOW else []),
            ],
        )
        for path in NOTEBOOKS
    ],
)
def test_notebooks_are_fresh(path, tmp_path, monkeypatch):
    """Cell by cell, from an empty folder; docs/notebooks/execute.py renews it."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    now, stored = shown(module_of(FOLDER / "execute.py").executed(notebook)), shown(notebook)
    if path.name in SLOW:
        assert numbers(now) == pytest.approx(numbers(stored), rel=0.03)
        now, stored = (json.loads(NUMBER.sub("#", json.dumps(one))) for one in (now, stored))
    assert now == stored


def numbers(cells):
    """Fractions that are shown."""
    return [float(one) for one in NUMBER.findall(json.dumps(cells))]
