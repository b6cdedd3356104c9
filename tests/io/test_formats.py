"""Formats of other tools: what is wrong in a file, packages and options that they lack."""

import json
import sys

import pytest
from formats import read_as
from fuzz.targets import SEEDS
from refusals import refusal_of

from streamplace.errors import MissingPackageError, SettingError
from streamplace.io.extras import extra, importing
from streamplace.io.registry import FORMATS

NEEDY = [name for name in FORMATS if FORMATS[name].package]


@pytest.mark.parametrize(
    ("name", "spoil", "place"),
    [
        ("dream", lambda d: d.pop("event_rate"), "event_rate"),
        ("dream", lambda d: d["connections"][0].pop("from_vertex"), "connections[0].from_vertex"),
        ("dream", lambda d: d.update(event_rate=0), "event_rate"),
        ("dream", lambda d: d["operators"][1].update(idx=3), "idx 3"),
        ("dream", lambda d: d["operators"][1].update(idx=10**30), "from_vertex is 1"),
        ("dream", lambda d: d["operators"][1].pop("payload"), "operator 1 has no payload"),
        ("dream", lambda d: d["connections"][2].update(to_vertex=9), "connections[2].to_vertex"),
        ("saga", lambda d: d["network"]["edges"].clear(), "'x' and 'y'"),
        ("saga", lambda d: d["network"]["nodes"].pop(), "'x'"),
        ("saga", lambda d: d.pop("network"), "network"),
        ("saga", lambda d: d["network"]["nodes"][0].update(speed=0), "'y'"),
        ("wfcommons", lambda d: d["workflow"]["execution"]["tasks"].pop(), "'merge_4'"),
        ("wfcommons", lambda d: d["workflow"]["execution"]["machines"].pop(), "'node2'"),
        ("wfcommons", lambda d: d["workflow"].pop("specification"), "no operators"),
        ("wfcommons", lambda d: d["workflow"]["specification"]["files"][0].pop("id"), "[0].id"),
    ],
)
def test_what_is_wrong_in_a_document_is_told_in_one_line(tmp_path, name, spoil, place):
    if name not in FORMATS:
        pytest.skip(f"needs the room that reads {name}")
    document = json.loads((SEEDS / f"{name}.json").read_text())
    spoil(document)
    path = tmp_path / "g.json"
    assert place in refusal_of(path, read_as, name, path.name, tmp_path, document)


@pytest.mark.parametrize("name", NEEDY)
def test_a_missing_package_has_its_extra(name, tmp_path, monkeypatch):
    package = FORMATS[name].package
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingError, match=rf"^{package} .*pip install 'streamplace\["):
        list(FORMATS[name].read(tmp_path / "model"))


def test_broken_packages_are_not_missing(tmp_path, monkeypatch):
    """A library that it needs may be missing, or another package."""
    (tmp_path / "broken.py").write_text("raise ImportError('libsome.so: cannot open file')")
    (tmp_path / "lacking.py").write_text("import what_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    for package, reason in {"broken": "libsome.so", "lacking": "what_nobody_has"}.items():
        with pytest.raises(SettingError, match=f"^{package} .*{reason}.*--force-reinstall"):
            extra(package)


def test_a_missing_package_of_learned_placers_has_their_extra():
    line = r"^torch is not installed; install it with: pip install 'streamplace\[learn\]'$"
    with pytest.raises(MissingPackageError, match=line), importing("learn"):
        raise ModuleNotFoundError(name="torch")


def test_other_modules_that_are_missing_are_defects():
    with pytest.raises(ModuleNotFoundError), importing("learn"):
        raise ModuleNotFoundError(name="streamplace.lost")


def test_an_option_of_another_format_is_refused():
    with pytest.raises(SettingError, match=r"dream .*--measure.* torch"):
        FORMATS["dream"].with_options(["measure"])
