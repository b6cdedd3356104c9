"""Compiled kernels on disk: a file for every kernel and signature, named by a hash of its inputs.

Numba's own cache depends on the kernel's own file only: it misses changes to inlined kernels, both
after upgrades and during development. Its index keeps only the last concurrent write, a damaged
file raises an exception, and without a writable folder nothing is compiled. Here the name is a hash
of the code of the kernel and of all kernels and constants that it uses: a file is correct or absent
but never stale, and two processes that write it write the same content. Files are stored next to
the code, as Python's own are, or else in the user's cache folder.

Loading a file runs its content. Therefore only files of the user or of root are loaded, from
folders in which, and above which, nobody else can write.

Processes take turns to compile a kernel: the others wait, and load what the first has compiled. A
turn is a lock of the operating system on one byte of a file, so it ends with its process, however
that ends. A process that is stopped, not ended, delays the others by `LONGEST` seconds only. Where
files cannot be locked, all processes compile.
"""

import os
import pickle
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import numba
import numpy as np
from numba import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

CHECK = 32
"""Bytes of the checksum at the beginning of a file."""
VERSIONS = (numba.__version__, np.__version__)

ROOT = 0
LONGEST: Final = 120.0
"""Seconds for which a process waits for another one."""
POLL: Final = 0.02
NAME: Final = "kernels.lock"

_unkept: list[str] = []
_closed: set[Path] = set()
"""Folders in which, and above which, nobody else can write."""


def is_kept() -> bool:
    """Whether all kernels that this process compiled could be stored."""
    return not _unkept


def had_kernels(moment: float) -> bool:
    """Whether kernels were stored before a moment (seconds since the epoch)."""
    folders = list(_folders(Path(__file__).absolute().parent))
    for folder in folders[:1] if config.CACHE_DIR else folders:  # type: ignore[attr-defined]
        with suppress(OSError):
            if any(file.stat().st_mtime < moment for file in folder.glob("*.nbc")):
                return True
    return False


def turn_among_processes(
    name: str, folder: Path, tell: Callable[[], None] = lambda: None
) -> AbstractContextManager[None] | None:
    """Return the turn of a name, where kernels of a folder of code are kept; None if nowhere.

    ``tell`` is called if another process has the turn.
    """
    for place in _folders(folder):
        with suppress(OSError, RuntimeError):
            _make(place)
            if _is_closed(place):
                return turn(place, name, tell)
    return None


def note(name: str) -> None:
    """Keep a name beside the kernels, for this processor and these versions."""
    for folder in _folders(Path(__file__).absolute().parent):
        file = folder / _noted(name)
        with suppress(OSError):
            _write(file, b"")
            if _is_ours(file):
                return


def is_noted(name: str) -> bool:
    """Whether a name was kept."""
    folders = _folders(Path(__file__).absolute().parent)
    return any(_is_ours(folder / _noted(name)) for folder in folders)


def _noted(name: str) -> str:
    magic = cpu_target.target_context.codegen().magic_tuple()
    return f"{name}.{sys.implementation.cache_tag}-{_hashed([repr((VERSIONS, magic))])[:16]}.note"


class KernelCache(NullCache):
    """The files of one kernel, compiled with these options."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        assert isinstance(function, FunctionType)
        self._function = function
        self._options = _spelt_options(options)
        self._source = Path(function.__code__.co_filename).absolute()

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether a file for a signature is on disk."""
        name = self._name(sig, target_context.codegen())
        return any(_is_ours(folder / name) for folder in _folders(self._source.parent))

    def turn(self, sig: Any, target_context: Any) -> AbstractContextManager[None]:
        """Return the turn to compile for a signature; all processes compile what is not kept."""
        name = self._name(sig, target_context.codegen())
        return turn_among_processes(name, self._source.parent) or nullcontext()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled code for a signature; None unless an intact file is on disk.

        Machine code needs only numba's runtime; its compiler stays unloaded.
        """
        rtsys.initialize(target_context)
        name = self._name(sig, target_context.codegen())
        for folder in _folders(self._source.parent):
            with suppress(OSError):
                content = (folder / name).read_bytes() if _is_ours(folder / name) else b""
                if content[:CHECK] == sha256(content[CHECK:]).digest():
                    parts = pickle.loads(content[CHECK:])
                    return CompileResult._rebuild(target_context, *parts)  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the compiled code for a signature in the first writable folder, if any."""
        if data.library.has_dynamic_globals:
            return
        name = self._name(sig, data.codegen)
        content: bytes = dumps(data._reduce())  # type: ignore[no-untyped-call]
        for folder in _folders(self._source.parent):
            with suppress(OSError):
                _write(folder / name, sha256(content).digest() + content)
                if _is_ours(folder / name):
                    self._sweep(folder)
                    return
        _unkept.append(name)

    def _name(self, sig: Any, codegen: Any) -> str:
        variant = (_spelt(sig), self._options, codegen.magic_tuple())
        return f"{self._prefix()}{recipe(self._function)[:16]}-{_hashed([repr(variant)])[:16]}.nbc"

    def _prefix(self) -> str:
        name = self._function.__qualname__.replace("<", "").replace(">", "")
        return f"{self._source.stem}.{name}.{sys.implementation.cache_tag}-"

    def _sweep(self, folder: Path) -> None:
        """Remove compiled code of earlier versions of the kernel."""
        current = recipe(self._function)[:16]
        for file in folder.glob(f"{self._prefix()}*.nbc"):
            if file.name.split("-")[-2] != current:
                file.unlink(missing_ok=True)


@cache
def recipe(function: FunctionType) -> str:
    """Hash of the code of a function and of all kernels and constants that it uses."""
    return _hashed(_ingredients(function, set()))


def _ingredients(function: FunctionType, seen: set[FunctionType]) -> Iterator[str]:
    seen.add(function)
    yield repr((VERSIONS, function.__module__, function.__defaults__))
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    scope = {**function.__globals__, **dict(zip(function.__code__.co_freevars, cells, strict=True))}
    for code in _codes(function.__code__):
        plain = tuple(c for c in code.co_consts if not isinstance(c, CodeType))
        names = (*code.co_names, *code.co_freevars)
        yield repr((code.co_code, code.co_exceptiontable, plain, code.co_varnames, names))
        for value in _values(names, scope):
            if isinstance(value, Dispatcher):
                yield repr(_spelt_options(value.targetoptions))
                if value.py_func not in seen:
                    yield from _ingredients(value.py_func, seen)
            elif isinstance(value, int | float | str | tuple | np.generic):
                yield repr(value)
            elif isinstance(value, type):
                yield _spelt_class(value)


def _values(names: Sequence[str], scope: Mapping[str, Any]) -> Iterator[Any]:
    """Values of the names of a code; of a module, those of the other names in it."""
    for name in names:
        value = scope.get(name)
        if isinstance(value, ModuleType):
            yield from _values([other for other in names if other != name], vars(value))
        else:
            yield value


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _spelt(part: Any) -> str:
    """Signature as text, with the names and fields of NamedTuple classes."""
    parts = getattr(part, "types", part if isinstance(part, tuple) else ())
    named = getattr(part, "instance_class", None)
    of_class = "" if named is None else _spelt_class(named)
    return f"{part}{of_class}[{' '.join(_spelt(inner) for inner in parts)}]"


def _spelt_class(named: type) -> str:
    """Qualified name of a class, by which a loaded kernel finds it, and its fields."""
    return f"{named.__module__}.{named.__qualname__}{getattr(named, '_fields', ())}"


def _spelt_options(options: dict[str, Any]) -> str:
    spelt = {key: sorted(v) if isinstance(v, set) else v for key, v in options.items()}
    return repr(sorted(spelt.items()))


def _hashed(texts: Iterable[str]) -> str:
    digest = sha256()
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode())
    return digest.hexdigest()


def _folders(source: Path) -> Iterator[Path]:
    """Yield the folders that may hold the kernels of a folder of code."""
    elsewhere = Path(f"{source.name}-{sha256(os.fsencode(source)).hexdigest()[:16]}")
    named: str = config.CACHE_DIR  # type: ignore[attr-defined]
    if named:
        yield named / elsewhere
    yield source / "__pycache__"
    with suppress(RuntimeError):  # a user without a home
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        yield caches / "streamplace" / "kernels" / elsewhere


def _is_ours(path: Path) -> bool:
    """Whether a file exists that only the user or root can have written."""
    try:
        return _is_guarded(path) and _is_closed(path.parent)
    except (OSError, RuntimeError):
        return False


def _is_closed(folder: Path) -> bool:
    """Whether only the user and root can write to a folder or replace it."""
    if folder not in _closed:
        real = folder.resolve(strict=True)
        if not all(map(_is_guarded, (real, *real.parents))):
            return False
        _closed.add(folder)
    return True


def _is_guarded(path: Path) -> bool:
    """Whether a file or folder belongs to the user or root, and nobody else can change it."""
    if os.name != "posix":
        return True
    seen = path.lstat()
    if seen.st_uid not in (ROOT, os.geteuid()) or stat.S_ISLNK(seen.st_mode):
        return False
    if stat.S_ISDIR(seen.st_mode) and seen.st_mode & stat.S_ISVTX:
        return True  # sticky: only the owner of an entry can replace it
    by_group = seen.st_mode & stat.S_IWGRP and not _is_private(seen.st_gid)
    return not by_group and not seen.st_mode & stat.S_IWOTH


def _is_private(group: int) -> bool:
    """Whether a group is root's, or has the user's name and is the group of nobody else."""
    import grp
    import pwd

    if group == ROOT:
        return True
    try:
        user, owner = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    first = (entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group)
    return owner.gr_name == user and {*owner.gr_mem, *first} <= {user}


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, readable by all and writable by the user only."""
    _make(path.parent)
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.stem}.", delete=False) as file:
        try:
            file.write(content)
            file.close()
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise


def _make(folder: Path) -> None:
    """Make a folder and its parents, writable by the user only."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o755, exist_ok=True)


def turn(
    folder: Path, name: str, tell: Callable[[], None] = lambda: None
) -> AbstractContextManager[None]:
    """Return the turn among the processes that use the same folder and name, to be waited for.

    ``tell`` is called if another process has the turn. A folder without write access raises
    OSError.
    """
    byte = int.from_bytes(sha256(name.encode()).digest()[:7], "big")
    return _taken(_opened(folder), byte, tell)


@contextmanager
def _taken(file: int, byte: int, tell: Callable[[], None]) -> Iterator[None]:
    _wait(file, byte, tell)
    try:
        yield
    finally:
        _unlock(file, byte)


@cache
def _opened(folder: Path) -> int:
    """Open the file of a folder for as long as the process runs: closing it ends all its turns."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.open(folder / NAME, flags, 0o644)


def _wait(file: int, byte: int, tell: Callable[[], None]) -> None:
    try:
        from fcntl import LOCK_EX, LOCK_NB, lockf
    except ImportError:  # Windows
        return
    until = None
    while until is None or time.monotonic() < until:
        try:
            lockf(file, LOCK_EX | LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):
            if until is None:
                until = time.monotonic() + LONGEST
                tell()
            time.sleep(POLL)
        except OSError:  # a file system without locks
            return
        else:
            return


def _unlock(file: int, byte: int) -> None:
    with suppress(ImportError, OSError):
        from fcntl import LOCK_UN, lockf

        lockf(file, LOCK_UN, 1, byte)
