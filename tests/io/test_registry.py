"""Formats: packages and options that they lack."""

import sys
from pathlib import Path

import pytest

from streamplace.errors import SettingError
from streamplace.io.extras import extra
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


def test_a_package_that_is_broken_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that it needs may be missing, or another package."""
    (tmp_path / "broken.py").write_text("raise ImportError('libsome.so: cannot open file')")
    (tmp_path / "lacking.py").write_text("import what_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    reasons = {"broken": "libsome.so: cannot open file", "lacking": "No module named 'what_nobody_"}
    for package, reason in reasons.items():
        with pytest.raises(SettingError, match=f"^{package} is installed, but .*: {reason}"):
            extra(package)


@pytest.mark.parametrize("option", ["measure", "blocks"])
def test_an_option_of_another_format_is_refused(option: str) -> None:
    """Which has it, is told."""
    with pytest.raises(SettingError, match=f"dream cannot {option}; drop --{option}, .* torch"):
        FORMATS["dream"].with_options([option])
