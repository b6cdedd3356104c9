"""Patient kernels: Python answers first, to the same bits, and compiling waits until it pays."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from makespan_cases import problems
from numba import config
from streamsim import jit, kernel_cache, resource_loads, throughput
from streamsim.jit import Kernel, compiling_seconds
from streamsim.loads import limits_subtasks
from streamsim.steady import is_plain
from streamsim.topology import undirected
from streamsim_strategies import Description, Ints, placed, placed_joins

from streamplace.model.level import operators_level
from streamplace.model.problem import Problem
from streamplace.placers.anneal.makespan import listed_plans
from streamplace.placers.anneal.walk import new_walk, peak_of
from streamplace.scheduling.insertion import by_upward_rank
from streamplace.scheduling.ranks import least_after
from streamplace.scheduling.tasks import tasks_of

CODE = """
from streamsim.jit import kernel, patient

@patient
@kernel
def total(values):
    found = 0
    for value in values:
        found += value
    return found
"""


@contextmanager
def kernels(
    change: Callable[[pytest.MonkeyPatch, ModuleType, str, Kernel], None],
) -> Iterator[None]:
    """Have all kernels changed while the block runs."""
    homes = [m for name, m in sys.modules.items() if name.startswith(("streamsim", "streamplace"))]
    with pytest.MonkeyPatch.context() as patch:
        for home in homes:
            for name, value in list(vars(home).items()):
                if isinstance(value, Kernel):
                    change(patch, home, name, value)
        yield


def by_python(patch: pytest.MonkeyPatch, home: ModuleType, name: str, kernel: Kernel) -> None:
    """A kernel is the function that it was made of."""
    patch.setattr(home, name, kernel.py_func)


def compiled(patch: pytest.MonkeyPatch, home: ModuleType, name: str, kernel: Kernel) -> None:
    """A kernel has no patience."""
    patch.setattr(kernel, "patience", 0.0)


def answers(description: Description, places: Ints) -> list[bytes]:
    """What prepares and judges a problem, bit by bit."""
    instance = description.instance
    level = operators_level(instance, is_plain(instance), limits_subtasks(instance))
    loads = resource_loads(instance, places[0])
    weight = np.arange(len(instance.source), dtype=np.int64)
    near = undirected(instance.source, instance.target, weight, instance.n_operators)
    walk = new_walk(level, places[0], seed=0)
    found = [
        *instance,
        *level,
        *near,
        *walk,
        throughput(instance, places),
        peak_of(level, places[0]),
    ]
    return [np.asarray(one).tobytes() for one in (*found, loads.links, loads.devices, loads.egress)]


@given(placed(count=3) | placed_joins(count=3) | placed(count=3, limits=True))
def test_python_comes_to_the_same_bits(case: tuple[Description, Ints]) -> None:
    with np.errstate(all="ignore"), kernels(by_python):
        first = answers(*case)
    with kernels(compiled):
        assert answers(*case) == first


@settings(max_examples=20, deadline=None)
@given(problem=problems())
def test_python_makes_the_same_schedules(problem: Problem) -> None:
    tasks = tasks_of(problem)

    def made() -> list[bytes]:
        after = least_after(tasks)
        found = [*listed_plans(tasks, after), by_upward_rank(tasks, True)]
        return [part.tobytes() for part in (after, *chain.from_iterable(found))]

    with np.errstate(all="ignore"), kernels(by_python):
        first = made()
    with kernels(compiled):
        assert made() == first


@pytest.fixture
def total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[int], bool]]:
    """A patient kernel, as a new process has it: its answers, and whether it was compiled."""
    monkeypatch.setattr(config, "CACHE_DIR", "")
    (tmp_path / "sums.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)

    def call(*sizes: int) -> tuple[list[int], bool]:
        sys.modules.pop("sums", None)
        for found in (kernel_cache.folder_of, kernel_cache._recipe, kernel_cache._own):
            found.cache_clear()
        import sums

        before = compiling_seconds()
        found = [int(sums.total(np.arange(size))) for size in sizes]
        return found, compiling_seconds() > before

    return call


def test_small_calls_compile_nothing_until_a_large_one_leaves_a_kernel_on_disk(
    total: Callable[..., tuple[list[int], bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert total(3, 4, 5) == ([3, 6, 10], False)
    assert total(jit.SMALL + 1) == ([jit.SMALL * (jit.SMALL + 1) // 2], True)
    monkeypatch.setattr(Kernel, "_by_python", None)
    assert total(3) == ([3], False)


def test_what_has_been_called_often_is_compiled(
    total: Callable[..., tuple[list[int], bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "PATIENCE", 1e-9)
    assert total(3) == ([3], False)
    assert total(3, 4) == ([3, 6], True)
