"""Registries: found by importing, told apart by name."""

import sys

import pytest

from streamplace.errors import SettingError
from streamplace.registry import Registry


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A package with two modules that add themselves."""
    package = tmp_path / "sorts"
    package.mkdir()
    (package / "__init__.py").write_text("REGISTRY = None\n")
    for name in ("quick", "bubble"):
        text = f"import sorts\nsorts.REGISTRY.add({name!r}, {len(name)})\n"
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("sorts", "sort")
    import sorts

    sorts.REGISTRY = registry
    yield registry
    for name in [name for name in sys.modules if name.split(".")[0] == "sorts"]:
        del sys.modules[name]


def test_modules_of_the_package_register_themselves(registry):
    """At the first look, in order of names."""
    assert list(registry) == ["bubble", "quick"]
    assert registry["quick"] == 5
    assert "quick" in registry
    assert "slow" not in registry


def test_nothing_is_imported_before_the_first_look(registry):
    """So that importing streamplace stays quick."""
    assert "sorts.quick" not in sys.modules
    assert len(list(registry)) == 2
    assert "sorts.quick" in sys.modules


def test_two_things_of_one_name_are_refused(registry):
    """The message names the name."""
    registry.add("merge", 1)
    with pytest.raises(SettingError, match="two sorts are called 'merge'; rename one of them"):
        registry.add("merge", 2)


def test_an_unknown_name_is_refused_with_the_nearest(registry):
    """The message lists the known ones."""
    with pytest.raises(
        SettingError, match=r"no sort 'quik'; did you mean 'quick'\?.*bubble, quick"
    ):
        registry["quik"]


def test_a_long_name_is_cut_in_the_message(registry):
    """Names come from files too."""
    with pytest.raises(SettingError) as caught:
        registry["x" * 100_000]
    assert len(str(caught.value)) < 1000
