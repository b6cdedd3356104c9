"""Runs the notebooks of this folder and stores what their cells show.

Run: python docs/notebooks/execute.py [NAME.ipynb ...]

Cells run one after the other in an empty folder, as in Jupyter; nothing of Jupyter is needed.
"""

import ast
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PICTURES = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}
"""What Jupyter shows of a value, best first, and the methods that it asks for it."""


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """Notebook with the outputs that its cells have when they run in the working folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = list(_outputs("".join(cell["source"]), names, count))
            cells.append({**cell, "execution_count": count, "outputs": outputs})
        else:
            cells.append(cell)
    return {**notebook, "cells": cells}


def _outputs(source: str, names: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """What a cell prints, and the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
        elif last is not None:
            exec(compile(ast.Module([last], []), "<cell>", "exec"), names)
    if printed.getvalue():
        yield {"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())}
    if value is not None:
        yield {
            "output_type": "execute_result",
            "execution_count": count,
            "metadata": {},
            "data": _shown(value),
        }


def _shown(value: Any) -> dict[str, list[str]]:
    """Best form in which Jupyter shows a value."""
    for kind, method in PICTURES.items():
        text = getattr(value, method, lambda: None)()
        if text is not None:
            return {kind: _lines(text)}
    return {"text/plain": _lines(repr(value))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(names: list[str]) -> None:
    """Run the notebooks of these names, by default all."""
    for path in [HERE / name for name in names] or sorted(HERE.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            document = executed(notebook)
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
