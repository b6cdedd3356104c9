"""Exports written to a folder, and modules run from there."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from engine_deployments import DEPLOYMENTS

from streamplace.engines.registry import EXPORTS

collect_ignore = ["golden"]


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write an export of a named deployment into an empty folder, and return the folder."""

    def write(export: str, deployment: str = "shop") -> Path:
        for name, text in EXPORTS[export].files(DEPLOYMENTS[deployment]).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def module(written: Callable[..., Path]) -> Callable[..., ModuleType]:
    """Import ``placement.py`` of an export of a named deployment."""

    def load(export: str, deployment: str = "shop") -> ModuleType:
        path = written(export, deployment) / "placement.py"
        spec = importlib.util.spec_from_file_location("placement", path)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded

    return load
