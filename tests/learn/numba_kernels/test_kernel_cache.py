"""Kernels on disk: what is found again, what is not, and what must never be loaded."""

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import walk_packages
from typing import get_type_hints
from unittest.mock import MagicMock

import numpy as np
import pytest
from numba import config
from numba.core import event

from streamplace import learn, papers
from streamplace.learn.numba_kernels import jit, kernel_cache
from streamplace.learn.numba_kernels.jit import Kernel
from streamplace.learn.numba_kernels.kernel_cache import turn

BELOW = """
from typing import NamedTuple
from streamplace.learn.numba_kernels.jit import inlined_kernel

STEP = 1

class Pair(NamedTuple):
    one: int
    two: int

@inlined_kernel
def twice(x):
    return 2 * x + STEP
"""
ABOVE = """
import below
from streamplace.learn.numba_kernels.jit import kernel
from below import Pair, twice

@kernel
def total(values):
    found = 0
    for i in range(len(values)):
        found += twice(values[i])
    return found

@kernel
def double(value):
    return below.twice(value)

@kernel
def constant():
    return twice(3)

@kernel
def first(pair):
    return pair.one
"""
OTHER = 12345
"""Number of a user and a group that are nobody's here."""


class Code:
    """Two files of kernels, one above the other, imported as a new process would."""

    def __init__(self, folder):
        self.folder_of_code = folder
        self.write()

    def write(self, below=BELOW):
        """Write both files."""
        (self.folder_of_code / "below.py").write_text(below)
        (self.folder_of_code / "above.py").write_text(ABOVE)

    def imported(self):
        """Import the files anew; the uppermost one."""
        if (self.folder_of_code / "pairs.py").exists():
            self._module("pairs")
        self._module("below")
        return self._module("above")

    def total(self):
        """2 · 0 + 1 + 2 · 1 + 1 + 2 · 2 + 1 by new kernels."""
        return int(self.imported().total(np.arange(3)))

    def double(self):
        """2 · 3 + 1 by a new kernel, which names the module of the other."""
        return int(self.imported().double(3))

    def first(self):
        """Field ``one`` of a pair of 1 and 2 by new kernels."""
        above = self.imported()
        return int(above.first(above.Pair(1, 2)))

    def folder(self):
        """Where the upper file's kernels are kept."""
        return kernel_cache.folder_of("above")

    def _module(self, name):
        sys.modules.pop(name, None)
        forget()
        spec = spec_from_file_location(name, self.folder_of_code / f"{name}.py")
        sys.modules[name] = module = module_from_spec(spec)
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            spec.loader.exec_module(module)
        finally:
            sys.dont_write_bytecode = before
        return module


def forget():
    """Look for the folders of modules anew, as a new process would."""
    for found in (kernel_cache.folder_of, kernel_cache._recipe, kernel_cache._own):
        found.cache_clear()


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Kernels of their own, beside which they are kept."""
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    folder = tmp_path / "code"
    folder.mkdir()
    yield Code(folder)
    forget()
    for name in ("pairs", "below", "above"):
        sys.modules.pop(name, None)


@pytest.fixture
def nowhere(tmp_path):
    """A path beneath which not even root can write."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "folder"


def compiled_by(call):
    """Number of kernels that a call compiles."""
    with event.install_recorder("numba:compile") as recorder:
        call()
    return sum(made.is_start for _, made in recorder.buffer)


@pytest.mark.parametrize(
    ("call", "old", "new", "expected"),
    [
        (Code.total, "2 * x", "3 * x", 12),
        pytest.param(Code.total, "STEP = 1", "STEP = 5", 21, marks=pytest.mark.slow),
        pytest.param(Code.double, "2 * x", "3 * x", 10, marks=pytest.mark.slow),
        (Code.double, "STEP = 1", "STEP = 5", 11),
    ],
)
def test_what_was_compiled_is_found_and_replaced_when_what_it_uses_changes(
    code, call, old, new, expected
):
    """In another file, which numba would not notice, by its own name or that of its module."""
    assert compiled_by(lambda: call(code)) > 0
    assert compiled_by(lambda: call(code)) == 0
    before = code.folder()
    code.write(BELOW.replace(old, new))
    assert call(code) == expected
    assert code.folder() != before
    assert not before.exists()


def test_a_constant_of_a_module_without_kernels_is_noticed(code):
    constant = "from pairs import STEP"
    for step, expected in ((1, 9), (5, 21)):
        (code.folder_of_code / "pairs.py").write_text(f"STEP = {step}\n")
        code.write(BELOW.replace("STEP = 1", constant))
        assert code.total() == expected


def test_fields_that_change_places_are_another_type(code):
    assert code.first() == 1
    code.write(BELOW.replace("one: int\n    two: int", "two: int\n    one: int"))
    assert code.first() == 2


def test_a_class_that_moves_to_another_module_is_another_type(code):
    """What was compiled names the class by its module, which is no more."""
    pair = BELOW[BELOW.index("class Pair") : BELOW.index("@inlined_kernel")]
    (code.folder_of_code / "pairs.py").write_text(f"from typing import NamedTuple\n\n{pair}")
    code.write(BELOW.replace(pair, "from pairs import Pair\n\n"))
    assert code.first() == 1
    (code.folder_of_code / "pairs.py").unlink()
    del sys.modules["pairs"]
    code.write()
    assert code.first() == 1


def test_tuples_among_the_arguments_of_kernels_can_be_told_from_their_modules():
    """A change to the fields of one that is imported for type checkers only would go unnoticed."""
    kernels = {
        value
        for package in (learn, papers)
        for found in walk_packages(package.__path__, f"{package.__name__}.")
        for value in vars(import_module(found.name)).values()
        if isinstance(value, Kernel)
    }
    assert kernels
    for kernel in kernels:
        assert get_type_hints(kernel.py_func)


def test_whole_numbers_and_constants_are_one_type_between_kernels(code):
    above = code.imported()
    assert above.total(np.arange(3)) == above.total(np.arange(3, dtype=np.int32)) == 9
    assert above.constant() == 7
    assert len(list(code.folder_of_code.rglob("below.twice*.nbc"))) == 1


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("nbi", 0),
        pytest.param("nbi", -9, marks=pytest.mark.slow),
        pytest.param("nbc", 0, marks=pytest.mark.slow),
        ("nbc", -9),
    ],
)
def test_a_damaged_file_is_replaced(code, kind, kept):
    code.total()
    files = {path: path.read_bytes() for path in code.folder_of_code.rglob(f"*.{kind}")}
    assert files
    for path, content in files.items():
        path.write_bytes(content[:kept])
    assert code.total() == 9
    assert compiled_by(code.total) == 0


def test_kernels_that_cannot_be_kept_anywhere_work(code, nowhere, monkeypatch, caplog):
    (code.folder_of_code / "__pycache__").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere))
    monkeypatch.setattr(config, "CACHE_DIR", str(nowhere))
    monkeypatch.setattr(jit, "NOTICEABLE", -1.0)
    monkeypatch.setattr(jit._compiling, "_told", False)
    with caplog.at_level(logging.WARNING):
        assert code.total() == 9
    assert compiled_by(code.total) > 0
    assert len(caplog.messages) == 1
    assert "NUMBA_CACHE_DIR" in caplog.messages[0]


def test_kernels_with_no_place_beside_the_code_go_to_the_cache(code, tmp_path):
    (code.folder_of_code / "__pycache__").write_text("")
    code.total()
    assert list((tmp_path / "caches/streamplace/kernels").rglob("*.nbc"))
    assert compiled_by(code.total) == 0


def test_kernels_of_the_installation_are_used(code, monkeypatch):
    """What was compiled while an image was built, say; the others work, too."""

    def refuse(*_):
        raise PermissionError

    code.total()
    monkeypatch.setattr(kernel_cache, "_make", refuse)
    assert compiled_by(code.total) == 0
    assert code.double() == 7


def link_files(folder):
    """Have the files be links to files elsewhere."""
    for file in folder.iterdir():
        file.rename(folder.parent / file.name)
        file.symlink_to(folder.parent / file.name)


OPENINGS: dict[str, Callable[[Path], object]] = {
    "files of another": lambda folder: [os.chown(f, OTHER, -1) for f in folder.iterdir()],
    "folder of another": lambda folder: os.chown(folder, OTHER, -1),
    "folder that all can write": lambda folder: folder.chmod(0o777),
    "folder that a group can write": lambda folder: (
        os.chown(folder, -1, OTHER),
        folder.chmod(0o775),
    ),
    "folder that all can replace": lambda folder: folder.parent.chmod(0o777),
    "files that all can write": lambda folder: [f.chmod(0o666) for f in folder.iterdir()],
    "links": link_files,
}
FEW = ("files of another", "folder that all can write")
"""Those of the quick tests."""


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives away")
@pytest.mark.parametrize(
    "opening",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in OPENINGS],
)
def test_what_another_user_could_have_written_is_never_loaded(code, opening):
    """To load is to run: a pickle may hold any command."""
    code.total()
    before = code.folder()
    OPENINGS[opening](before)
    assert compiled_by(code.total) > 0
    after = code.folder()
    assert kernel_cache._is_ours(after)


def test_a_folder_in_which_all_keep_their_own_is_no_danger(code, tmp_path, monkeypatch):
    """As the temporary folder, whose sticky bit lets nobody replace what is another's."""
    code.total()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "named"))
    assert compiled_by(code.total) > 0  # not those beside the code
    (tmp_path / "named").chmod(0o1777)
    assert compiled_by(code.total) == 0


HOLDS = """
import sys
from streamplace.learn.numba_kernels.kernel_cache import turn
sys.path.insert(0, sys.argv[1])
import above
with turn(above.total.py_func):
    print("holds", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["kill", pytest.param("communicate", marks=pytest.mark.slow)])
def test_the_turn_of_another_process_is_waited_for_until_it_ends(code, end):
    above = code.imported()
    holder = subprocess.Popen(
        [sys.executable, "-B", "-c", HOLDS, code.folder_of_code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout.readline() == b"holds\n"
    with turn(above.double.py_func, MagicMock(side_effect=AssertionError)):
        pass
    tell = MagicMock(side_effect=getattr(holder, end))
    with turn(above.total.py_func, tell):
        pass
    assert tell.call_count == 1
    holder.communicate()
