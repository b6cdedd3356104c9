"""Registries: found by importing, told apart by name."""

import subprocess
import sys

import numpy as np
import pytest
from problems import chain
from registered import forgetting

from streamplace.engines.registry import export
from streamplace.errors import PlacementError, SettingError
from streamplace.families.registry import family
from streamplace.io.registry import reader
from streamplace.model import Cluster, Placement, Problem
from streamplace.objectives.registry import OBJECTIVES, objective
from streamplace.placers.named import named_placer
from streamplace.placers.registry import PLACERS, Placer, placer
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


def sized(problem, objective, *, seed, budget):
    """Sizes."""
    return np.zeros(problem.n_operators, np.int32)


def test_a_function_that_is_defined_again_replaces_itself_alone():
    """As a cell of a notebook that is run twice."""
    with forgetting(PLACERS):
        placer("mine")(sized)
        placer("mine")(sized)
        with pytest.raises(SettingError, match="two placers are called 'mine'"):
            placer("mine")(chain)


def test_the_name_of_a_learned_placer_is_refused_at_every_list():
    """Its module has another name, so that it is loaded later than the decorator runs."""
    script = """
import numpy
from streamplace.placers.registry import PLACERS, placer
placer("dream")(numpy.zeros)
for _ in range(2):
    try:
        list(PLACERS)
    except ValueError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    told = "two placers are called 'dream'; rename one of them\n"
    assert done.stdout == 2 * told, done.stderr


@pytest.mark.parametrize(
    "lines",
    [
        "from streamplace.placers.registry import PLACERS as names, placer as named",
        "from streamplace.objectives.registry import OBJECTIVES as names, objective\n"
        "def named(name): return objective('cost', sense='min')",
        "from streamplace.learn.registry import MODELS as names, LearnedModel, register\n"
        "def named(name): return lambda f: register(LearnedModel('pilot', '', None, {}, f))",
    ],
)
def test_the_name_of_a_built_in_is_taken_before_it_is_loaded(lines):
    """Refused at once, and the names that are known stay whole."""
    script = f"""{lines}
def mine(problem, objective, *, seed, budget):
    "Mine."
try:
    named("metis")(mine)
except ValueError as error:
    print(str(error).split()[-4:], len(list(names)) > 3)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "['rename', 'one', 'of', 'them'] True\n", done.stderr


def test_a_module_that_fails_fails_at_every_look(registry, tmp_path):
    (tmp_path / "sorts" / "crash.py").write_text("raise ValueError('broken')\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            list(registry)


@pytest.mark.parametrize(
    ("register", "noun"),
    [
        (placer("nodoc"), "placer"),
        (objective("nodoc", sense="min"), "objective"),
        (export("nodoc"), "export"),
        (reader("nodoc"), "format"),
        (family("nodoc", object), "family"),
    ],
)
def test_what_is_not_described_is_refused(register, noun):
    with pytest.raises(SettingError, match=f"the {noun} 'nodoc' has no docstring"):
        register(lambda problem: None)


def test_a_placer_that_returns_no_placement_is_refused():
    problem = Problem(chain(), Cluster.uniform(2))
    with pytest.raises(PlacementError, match=r"'sized' returned a numpy\.ndarray; return problem"):
        Placer("sized", "", sized).place(problem, OBJECTIVES["throughput"])


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
