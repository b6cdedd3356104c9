"""Where numba keeps compiled kernels: a folder for every module, named by a hash of its sources.

Numba's own cache depends on the file of a kernel only: it misses changes to kernels, constants and
tuples that come from other modules, and silently computes wrong numbers. Here these are part of the
hash, so any change leads to a new folder; the old one is removed. Folders lie in
``NUMBA_CACHE_DIR`` if it is set, beside the code as Python's own do, or in the user's cache folder.

Loading what was compiled runs it. Therefore only folders that belong to the user or to root, with
such files only, are used, and only where nobody else can write to them or to a folder above.
"""

import grp
import os
import pwd
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, lockf
from functools import cache
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np
from numba import config

ROOT: Final = 0
LOCATORS: Final = (
    f"{__name__}.Folder,UserProvidedCacheLocator,InTreeCacheLocator,UserWideCacheLocator"
)
"""Names by which numba finds `Folder`, and for its own functions the usual ones."""
Constant = bool | int | float | str | np.generic


class Folder:
    """Where numba finds what it has compiled of a function: a locator, as it calls that."""

    def __init__(self, function: FunctionType) -> None:
        self._folder = str(folder_of(function.__module__))
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> "Folder | None":
        """Return the folder of a function's module, unless numba compiles one of its own."""
        return None if function.__module__.startswith("numba.") else cls(function)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self._folder

    def ensure_cache_path(self) -> None:
        """Make the folder again if another process has removed it."""
        _make(Path(self._folder))

    def get_source_stamp(self) -> int:
        """Return the same for all versions of the sources: they are told apart by the folder."""
        return 0

    def get_disambiguator(self) -> str:
        """Return what tells functions of the same name apart."""
        return str(self._line)


@cache
def folder_of(module: str) -> Path | None:
    """Return the folder of the kernels of a module; None if they can be kept nowhere."""
    source = Path(sys.modules[module].__file__ or "").absolute().parent
    name = f"{module}-{_recipe(module)[:16]}"
    places = list(_places(source))
    for folder in (place / name for place in places):
        if _is_ours(folder):  # perhaps that of an image, which cannot be written
            return folder
    for place in places:
        with suppress(OSError, RuntimeError):
            _make(place / name)
            for old in place.glob(f"{module}-*"):
                if old.name != name or not _is_ours(old):
                    rmtree(old, ignore_errors=True)
            _make(place / name)
            if _is_ours(place / name) and os.access(place / name, os.W_OK):
                return place / name
    return None


def empty(module: str) -> None:
    """Remove the kernels of a module, of which one could not be read."""
    folder = folder_of(module)
    for file in [] if folder is None else folder.glob("*.nb[ic]"):
        with suppress(OSError):
            file.unlink()


@contextmanager
def turn(function: Any, tell: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Wait until no other process compiles a function, and let the others wait.

    A lock of the operating system on one byte of a file ends with its process, however that ends.
    Kernels call one another in one direction only, so no two processes wait for each other. Where
    files cannot be locked, all processes compile.
    """
    folder, file = folder_of(function.__module__), None
    byte = int.from_bytes(sha256(function.__qualname__.encode()).digest()[:7], "big")
    with suppress(OSError):
        file = None if folder is None else _opened(folder)
        if file is not None:
            try:
                lockf(file, LOCK_EX | LOCK_NB, 1, byte)
            except (BlockingIOError, PermissionError):
                tell()
                lockf(file, LOCK_EX, 1, byte)
    try:
        yield
    finally:
        if file is not None:
            with suppress(OSError):
                lockf(file, LOCK_UN, 1, byte)


@cache
def _opened(folder: Path) -> int:
    """Open the file of locks for as long as the process runs: closing it would end them all."""
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


@cache
def _recipe(module: str) -> str:
    """Hash of a module and of all modules from which its kernels have others, or tuples."""
    used, found = [module], set[str]()
    while used:
        name = used.pop()
        if name not in found:
            found.add(name)
            used += _own(name)[1]
    return sha256("".join(name + _own(name)[0] for name in sorted(found)).encode()).hexdigest()


@cache
def _own(name: str) -> tuple[str, list[str]]:
    """Hash of the text and the constants of a module, and the modules of kernels that it uses."""
    module, others = sys.modules[name], []
    digest = sha256(Path(module.__file__ or "").read_bytes())
    for key, value in sorted(vars(module).items()):
        if _is_constant(value) and not key.startswith("__"):
            digest.update(f"{key}={value!r}\n".encode())
        elif isinstance(value, ModuleType):
            others += [value.__name__] if _has_kernels(value) else []
        elif _is_kernel(value) or (isinstance(value, type) and hasattr(value, "_fields")):
            others.append(value.__module__)
    return digest.hexdigest(), others


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return isinstance(value, Constant)


@cache
def _has_kernels(module: ModuleType) -> bool:
    return any(map(_is_kernel, vars(module).values()))


def _is_kernel(value: object) -> bool:
    return "py_func" in getattr(value, "__dict__", ())


def _places(source: Path) -> Iterator[Path]:
    """Yield the folders that may hold those of the modules of a folder of code."""
    elsewhere = Path(f"{source.name}-{sha256(os.fsencode(source)).hexdigest()[:16]}")
    named: str = config.CACHE_DIR  # type: ignore[attr-defined]
    if named:
        yield named / elsewhere
        return
    yield source / "__pycache__"
    with suppress(RuntimeError):  # a user without a home
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        yield caches / "streamplace" / "kernels" / elsewhere


def _is_ours(folder: Path) -> bool:
    """Whether a folder exists that nobody but the user and root can have put a file into."""
    try:
        real = folder.resolve(strict=True)
        return all(map(_is_guarded, (real, *real.parents, *folder.iterdir())))
    except (OSError, RuntimeError):
        return False


def _is_guarded(path: Path) -> bool:
    """Whether a file or folder belongs to the user or root, and nobody else can change it."""
    status = path.lstat()
    if status.st_uid not in (ROOT, os.geteuid()) or stat.S_ISLNK(status.st_mode):
        return False
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return True  # sticky: only the owner of an entry can replace it
    by_group = status.st_mode & stat.S_IWGRP and status.st_gid not in (ROOT, _own_group())
    return not by_group and not status.st_mode & stat.S_IWOTH


@cache
def _own_group() -> int:
    """Return the group of the user's name, if there is one and it has no other members; or -1."""
    with suppress(KeyError):
        user = pwd.getpwuid(os.geteuid()).pw_name
        group = grp.getgrnam(user)
        if {*group.gr_mem} <= {user}:
            return group.gr_gid
    return -1


def _make(folder: Path) -> None:
    """Make a folder and its parents, writable by the user only."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o755, exist_ok=True)
