"""Formats: packages and options that they lack."""

import sys
from pathlib import Path

import pytest

from streamplace.errors import SettingError
from streamplace.io.registry import FORMATS

NEEDY = [name for name in FORMATS if FORMATS[name].package]


@pytest.mark.parametrize("name", NEEDY)
def test_a_missing_package_is_told_with_its_extra(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line that can be pasted."""
    package = FORMATS[name].package
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingError, match=rf"^{package} is not .* pip install 'streamplace\["):
        list(FORMATS[name].read(tmp_path / "model"))


@pytest.mark.parametrize("option", ["measure", "blocks"])
def test_an_option_of_another_format_is_refused(option: str) -> None:
    """Which has it, is told."""
    with pytest.raises(SettingError, match=f"dream cannot {option}; drop --{option}, .* torch"):
        FORMATS["dream"].with_options([option])
