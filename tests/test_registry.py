"""Registries: found by importing, told apart by name."""

import sys

import numpy as np
import pytest
from problems import chain
from registered import forgetting

from streamplace.errors import SettingError
from streamplace.model import Cluster, Placement, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer
from streamplace.placers.registry import PLACERS, Placer
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
    """At the first look, in order of names; before, nothing is imported."""
    assert "sorts.quick" not in sys.modules
    assert list(registry) == ["bubble", "quick"]
    assert "sorts.quick" in sys.modules
    assert registry["quick"] == 5
    assert "quick" in registry
    assert "slow" not in registry


def test_a_second_package_is_added(tmp_path, monkeypatch):
    """Sub-packages register in the module of that name; those without one are passed over."""
    for folder in ("kinds", "kinds/core", "rare", "rare/odd", "rare/shared"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("REGISTRY = None\n")
    for package, name in (("kinds", "core"), ("rare", "odd")):
        text = f"import kinds\nkinds.REGISTRY.add({name!r}, {package!r})\n"
        (tmp_path / package / name / "model.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import kinds

    kinds.REGISTRY = Registry("kinds", "kind", "model", second="rare")
    assert kinds.REGISTRY["odd"] == "rare"
    assert "kinds.core.model" not in sys.modules
    assert list(kinds.REGISTRY) == ["core", "odd"]
    assert "shared" not in kinds.REGISTRY
    for name in [name for name in sys.modules if name.split(".")[0] in ("kinds", "rare")]:
        del sys.modules[name]


def test_names_that_are_taken_or_unknown_are_refused(registry):
    """With the nearest name; a long one is cut in the message, as names come from files too."""
    registry.add("merge", 1)
    with pytest.raises(SettingError, match="two sorts are called 'merge'"):
        registry.add("merge", 2)
    with pytest.raises(SettingError, match=r"no sort 'quik'"):
        registry["quik"]
    with pytest.raises(SettingError) as caught:
        registry["x" * 100_000]
    assert len(str(caught.value)) < 1000


def test_options_of_placers_are_read_as_they_are_annotated():
    """Truth values, numbers and texts, left open or not; what is no text is Python's alone."""
    seen: list[dict[str, object]] = []

    def choosy(
        problem,
        objective,
        *,
        seed,
        budget,
        fast: bool = False,
        slack: float | None = None,
        name: str | None = None,
        k: int = 1,
        start: tuple[Placement, ...] = (),
    ):
        """Remember the options."""
        seen.append({"fast": fast, "slack": slack, "name": name, "k": k})
        return problem.placement(np.zeros(problem.n_operators, np.int32))

    with forgetting(PLACERS):
        PLACERS.add("choosy", Placer("choosy", "", choosy))
        problem = Problem(chain(), Cluster.uniform(2))
        for text in ("choosy:fast=true:slack=0.5:name=x:k=3", "choosy:fast=no:slack=none"):
            named_placer(text).place(problem, OBJECTIVES["throughput"])
        for text, complaint in (
            ("choosy:fast=perhaps", "fast is 'perhaps'"),
            ("choosy:k=none", "k is 'none'"),
            ("choosy:k=1000000000000000000", "k is '1000000000000000000'"),
            ("choosy:start=x", "'start'"),
        ):
            with pytest.raises(SettingError, match=complaint):
                named_placer(text)
    assert seen == [
        {"fast": True, "slack": 0.5, "name": "x", "k": 3},
        {"fast": False, "slack": None, "name": None, "k": 1},
    ]


def test_a_name_is_looked_up_in_the_module_of_that_name(registry):
    """So that a command loads what it runs; any other name needs all modules."""
    assert registry["bubble"] == 6
    assert "sorts.quick" not in sys.modules
    assert "merge" not in registry
    assert "sorts.quick" in sys.modules
