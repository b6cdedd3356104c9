import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock

import numpy as np
import pytest
from numba import config
from numba.core.event import install_recorder
from streamsim import jit, kernel_cache
from streamsim.jit import compiling_seconds

BELOW = """
from typing import NamedTuple
from streamsim.jit import inlined_kernel

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
from streamsim.jit import kernel
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
def first(pair):
    return pair.one
"""
OTHER = 12345
"""Number of a user and a group that are nobody's here."""


class Code:
    """Two files of kernels, one above the other, imported as a new process would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write()

    def write(self, below: str = BELOW) -> None:
        """Write both files."""
        (self.folder / "below.py").write_text(below)
        (self.folder / "above.py").write_text(ABOVE)

    def imported(self) -> ModuleType:
        """Import the files anew; the uppermost one."""
        if (self.folder / "pairs.py").exists():
            self._module("pairs")
        self._module("below")
        return self._module("above")

    def total(self) -> int:
        """2 · 0 + 1 + 2 · 1 + 1 + 2 · 2 + 1 by new kernels."""
        return int(self.imported().total(np.arange(3)))

    def double(self) -> int:
        """2 · 3 + 1 by a new kernel, which names the module of the other."""
        return int(self.imported().double(3))

    def first(self) -> int:
        """Field ``one`` of a pair of 1 and 2 by new kernels."""
        above = self.imported()
        return int(above.first(above.Pair(1, 2)))

    def _module(self, name: str) -> ModuleType:
        sys.modules.pop(name, None)
        spec = spec_from_file_location(name, self.folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = module_from_spec(spec)
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            spec.loader.exec_module(module)
        finally:
            sys.dont_write_bytecode = before
        return module


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Code]:
    """Kernels of their own, beside which they are kept."""
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(kernel_cache, "_unkept", [])
    monkeypatch.setattr(kernel_cache, "_closed", set())
    folder = tmp_path / "code"
    folder.mkdir()
    yield Code(folder)
    for name in ("pairs", "below", "above"):
        sys.modules.pop(name, None)


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A path beneath which not even root can write."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "folder"


def compiled_by(call: Callable[[], int]) -> float:
    """Seconds that a call spends compiling."""
    before = compiling_seconds()
    call()
    return compiling_seconds() - before


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("2 * x", "3 * x", 12), ("STEP = 1", "STEP = 5", 21)],
    ids=["kernel", "constant"],
)
def test_what_was_compiled_is_found_and_replaced_when_what_it_uses_changes(
    code: Code, old: str, new: str, expected: int
) -> None:
    """In another file, which numba would not notice."""
    assert compiled_by(code.total) > 0
    assert compiled_by(code.total) == 0
    before = {path.name for path in code.folder.rglob("*.nbc")}
    code.write(BELOW.replace(old, new))
    assert code.total() == expected
    after = {path.name for path in code.folder.rglob("*.nbc")}
    assert len(after) == len(before)
    assert not after & before


@pytest.mark.parametrize(
    ("old", "new", "expected"), [("2 * x", "3 * x", 10), ("STEP = 1", "STEP = 5", 11)]
)
def test_what_is_used_by_the_name_of_its_module_is_noticed(
    code: Code, old: str, new: str, expected: int
) -> None:
    assert code.double() == 7
    code.write(BELOW.replace(old, new))
    assert code.double() == expected


def test_fields_that_change_places_are_another_type(code: Code) -> None:
    assert code.first() == 1
    code.write(BELOW.replace("one: int\n    two: int", "two: int\n    one: int"))
    assert code.first() == 2


def test_a_class_that_moves_to_another_module_is_another_type(code: Code) -> None:
    """What was compiled names the class by its module, which is no more."""
    pair = BELOW[BELOW.index("class Pair") : BELOW.index("@inlined_kernel")]
    (code.folder / "pairs.py").write_text(f"from typing import NamedTuple\n\n{pair}")
    code.write(BELOW.replace(pair, "from pairs import Pair\n\n"))
    assert code.first() == 1
    (code.folder / "pairs.py").unlink()
    del sys.modules["pairs"]
    code.write()
    assert code.first() == 1


def test_a_kernel_that_moves_to_another_module_is_compiled_anew(code: Code) -> None:
    """What was compiled may name the module of a function that it calls, which is no more."""
    step = BELOW[BELOW.index("STEP") : BELOW.index("class Pair")]
    twice = BELOW[BELOW.index("@inlined_kernel") :]
    head = "from streamsim.jit import inlined_kernel\n\n"
    (code.folder / "pairs.py").write_text(f"{head}{step}{twice}")
    code.write(BELOW.replace(step, "").replace(twice, "from pairs import twice\n"))
    assert code.total() == 9
    before = {path.name for path in code.folder.rglob("above.total*.nbc")}
    (code.folder / "pairs.py").unlink()
    del sys.modules["pairs"]
    code.write()
    assert code.total() == 9
    assert not {path.name for path in code.folder.rglob("above.total*.nbc")} & before


def test_whole_numbers_of_all_kinds_are_one_type_between_kernels(code: Code) -> None:
    above = code.imported()
    assert above.total(np.arange(3)) == above.total(np.arange(3, dtype=np.int32)) == 9
    assert len(list(code.folder.rglob("below.twice*.nbc"))) == 1


@pytest.mark.parametrize("damage", [b"", None], ids=["empty", "cut"])
def test_a_damaged_file_is_replaced(code: Code, damage: bytes | None) -> None:
    code.total()
    files = {path: path.read_bytes() for path in code.folder.rglob("*.nbc")}
    assert files
    for path, content in files.items():
        path.write_bytes(content[:-9] if damage is None else damage)
    assert code.total() == 9
    assert compiled_by(code.total) == 0


def test_what_another_process_compiles_meanwhile_is_loaded(
    code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While this one waits for its turn."""

    @contextmanager
    def turn(*_: object) -> Iterator[None]:
        monkeypatch.undo()
        monkeypatch.setattr(config, "CACHE_DIR", "")
        code.imported().total(np.arange(3))
        yield

    monkeypatch.setattr(kernel_cache, "turn_among_processes", turn)
    above = code.imported()
    with install_recorder("numba:compile") as recorder:
        assert above.total(np.arange(3)) == 9
    compiled = [event.data["dispatcher"] for _, event in recorder.buffer if event.is_start]
    assert compiled
    assert above.total not in compiled


def test_kernels_that_cannot_be_kept_anywhere_work(
    code: Code, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code.folder / "__pycache__").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere))
    monkeypatch.setattr(config, "CACHE_DIR", str(nowhere))
    assert code.total() == 9
    assert not kernel_cache.is_kept()
    assert compiled_by(code.total) > 0


def test_kernels_that_cannot_be_kept_beside_the_code_go_to_the_users_cache(
    code: Code, tmp_path: Path
) -> None:
    (code.folder / "__pycache__").write_text("")
    code.total()
    assert kernel_cache.is_kept()
    assert list((tmp_path / "caches/streamplace/kernels").rglob("*.nbc"))
    assert compiled_by(code.total) == 0


def test_kernels_of_an_installation_that_cannot_be_written_are_used(
    code: Code, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was compiled while an image was built, say."""
    code.total()
    monkeypatch.setattr(config, "CACHE_DIR", str(nowhere))
    monkeypatch.setattr(kernel_cache, "_write", _refuse)
    assert compiled_by(code.total) == 0


PLACES = ("NUMBA_CACHE_DIR", "user")


@pytest.fixture
def place(
    request: pytest.FixtureRequest, code: Code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """One of the places that are looked at, where the kernels are; the others have none."""
    if request.param == "NUMBA_CACHE_DIR":
        monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "named"))
    elif request.param == "user":
        (code.folder / "__pycache__").write_text("")
    code.total()
    (folder,) = {path.parent for path in tmp_path.rglob("*.nbc")}
    monkeypatch.setattr(kernel_cache, "_write", _refuse)
    monkeypatch.setattr(kernel_cache, "_closed", set())
    return folder


def compiled_files(folder: Path) -> list[Path]:
    return list(folder.glob("*.nbc"))


def link_files(folder: Path) -> None:
    """Have the files be links to files elsewhere."""
    for file in compiled_files(folder):
        file.rename(folder.parent / file.name)
        file.symlink_to(folder.parent / file.name)


OPENINGS: dict[str, Callable[[Path], object]] = {
    "files of another": lambda folder: [os.chown(f, OTHER, -1) for f in compiled_files(folder)],
    "folder of another": lambda folder: os.chown(folder, OTHER, -1),
    "folder that all can write": lambda folder: folder.chmod(0o777),
    "folder that a group can write": lambda folder: (
        os.chown(folder, -1, OTHER),
        folder.chmod(0o775),
    ),
    "folder that all can replace": lambda folder: folder.parent.chmod(0o777),
    "files that all can write": lambda folder: [f.chmod(0o666) for f in compiled_files(folder)],
    "links": link_files,
}
OPENED = [
    *(pytest.param(place, "files of another", marks=pytest.mark.slow) for place in PLACES),
    *(("code", opening) for opening in OPENINGS),
]


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root gives away")
@pytest.mark.parametrize(("place", "opening"), OPENED, indirect=["place"])
def test_what_another_user_could_have_written_is_never_loaded(
    code: Code, place: Path, opening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To load is to run: a pickle may hold any command."""
    assert compiled_by(code.total) == 0
    monkeypatch.setattr(kernel_cache, "_closed", set())
    OPENINGS[opening](place)
    loads = MagicMock(side_effect=AssertionError)
    monkeypatch.setattr(kernel_cache.pickle, "loads", loads)
    assert code.total() == 9
    assert not loads.called


@pytest.mark.parametrize("place", ["NUMBA_CACHE_DIR"], indirect=True)
def test_a_folder_in_which_all_keep_their_own_is_no_danger(code: Code, place: Path) -> None:
    """As the temporary folder, whose sticky bit lets nobody replace what is another's."""
    place.parent.chmod(0o1777)
    assert compiled_by(code.total) == 0


def test_what_is_kept_can_be_read_by_all_and_written_by_nobody_else(
    code: Code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the process allows new files: an image is built by root and run by others."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "a" / "b"))
    before = os.umask(0)
    try:
        code.total()
    finally:
        os.umask(before)
    made = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o755}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o644}
    assert compiled_by(code.total) == 0


def _refuse(path: Path, content: bytes) -> None:
    raise PermissionError(path)


@pytest.mark.parametrize(
    ("kept", "before", "words"),
    [
        (True, False, "once per installation"),
        (True, True, "that no command has needed before"),
        (False, False, "NUMBA_CACHE_DIR"),
    ],
)
def test_compiling_is_told_once_where_it_is_felt(
    code: Code,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    kept: bool,
    before: bool,
    words: str,
) -> None:
    """One line for all kernels, which says what can be done; an installation begins only once."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kernels"))
    folder = next(kernel_cache._folders(Path(jit.__file__).absolute().parent))
    folder.mkdir(parents=True)
    (folder / "a.nbc").touch()
    earlier = jit.BEGAN - 1 if before else jit.BEGAN + 1
    os.utime(folder / "a.nbc", (earlier, earlier))
    monkeypatch.setattr(jit, "NOTICEABLE", -1.0)
    monkeypatch.setattr(jit._compiling, "_told", False)
    monkeypatch.setattr(kernel_cache, "_unkept", [] if kept else ["a kernel"])
    with caplog.at_level(logging.WARNING):
        code.total()
        code.first()
    assert len(caplog.messages) == 1
    assert words in caplog.messages[0]
