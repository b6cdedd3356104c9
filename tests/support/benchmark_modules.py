"""Modules of the benchmarks, which are no package."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def benchmark_modules(*names: str) -> SimpleNamespace:
    """Import modules of the benchmarks by their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return SimpleNamespace(**{name: import_module(name) for name in names})
