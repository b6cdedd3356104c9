"""Compiled kernels on disk: a file for every kernel and signature, named by all it is made of.

What numba keeps by itself is named by the kernel's own file: a change to a kernel that another one
inlines goes unnoticed, after an upgrade just as while developing. Its index is lost to whoever
writes last, a damaged file is an exception, and where nothing can be written nothing is compiled.
Here the name is a hash of the code of the kernel and of all kernels and constants that it uses: a
file is right or absent but never stale, and two processes that write it write the same. Files lie
beside the code, as Python's own do, or else in the user's cache folder.
"""

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from numba import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps

CHECK = 32
"""So many bytes at the beginning of a file tell whether the rest is whole."""
VERSIONS = (numba.__version__, np.__version__)

_unkept: list[str] = []


def is_kept() -> bool:
    """Whether all that this process has compiled could be written."""
    return not _unkept


class KernelCache(NullCache):
    """The files of one kernel.

    Parameters
    ----------
    options
        Those that it is compiled with.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        assert isinstance(function, FunctionType)
        self._function = function
        self._options = _spelt_options(options)
        self._source = Path(function.__code__.co_filename).absolute()

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether anything is on disk for a signature."""
        target_context.refresh()
        name = self._name(sig, target_context.codegen())
        return any((folder / name).is_file() for folder in _folders(self._source.parent))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature, where that is on disk and whole."""
        target_context.refresh()
        name = self._name(sig, target_context.codegen())
        for folder in _folders(self._source.parent):
            with suppress(OSError):
                content = (folder / name).read_bytes()
                if content[:CHECK] == sha256(content[CHECK:]).digest():
                    parts = pickle.loads(content[CHECK:])
                    return CompileResult._rebuild(target_context, *parts)  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature, where anything can be written."""
        if data.library.has_dynamic_globals:
            return
        name = self._name(sig, data.codegen)
        content: bytes = dumps(data._reduce())  # type: ignore[no-untyped-call]
        for folder in _folders(self._source.parent):
            with suppress(OSError):
                _write(folder / name, sha256(content).digest() + content)
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
        """Remove what the kernel was compiled to when it was another."""
        current = recipe(self._function)[:16]
        for file in folder.glob(f"{self._prefix()}*.nbc"):
            if file.name.split("-")[-2] != current:
                file.unlink(missing_ok=True)


@cache
def recipe(function: FunctionType) -> str:
    """Hash of the code of a function and of all that it uses."""
    return _hashed(_ingredients(function, set()))


def _ingredients(function: FunctionType, seen: set[FunctionType]) -> Iterator[str]:
    seen.add(function)
    yield repr((VERSIONS, function.__defaults__))
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    scope = {**function.__globals__, **dict(zip(function.__code__.co_freevars, cells, strict=True))}
    for code in _codes(function.__code__):
        plain = tuple(c for c in code.co_consts if not isinstance(c, CodeType))
        names = (*code.co_names, *code.co_freevars)
        yield repr((code.co_code, code.co_exceptiontable, plain, code.co_varnames, names))
        for name in names:
            value = scope.get(name)
            if isinstance(value, Dispatcher):
                yield repr(_spelt_options(value.targetoptions))
                if value.py_func not in seen:
                    yield from _ingredients(value.py_func, seen)
            elif isinstance(value, int | float | str | tuple | np.generic):
                yield repr(value)
            elif isinstance(value, type):
                yield _spelt_class(value)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _spelt(part: Any) -> str:
    """Signature as a text, with what code depends on of the classes of NamedTuples."""
    parts = getattr(part, "types", part if isinstance(part, tuple) else ())
    named = getattr(part, "instance_class", None)
    of_class = "" if named is None else _spelt_class(named)
    return f"{part}{of_class}[{' '.join(_spelt(inner) for inner in parts)}]"


def _spelt_class(named: type) -> str:
    """Where a class is found when a kernel is loaded, and its fields."""
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
    """Where the kernels of a folder of code may lie."""
    elsewhere = Path(f"{source.name}-{sha256(os.fsencode(source)).hexdigest()[:16]}")
    named: str = config.CACHE_DIR  # type: ignore[attr-defined]
    if named:
        yield named / elsewhere
    yield source / "__pycache__"
    with suppress(RuntimeError):  # a user without a home
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        yield caches / "streamplace" / "kernels" / elsewhere


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.stem}.", delete=False) as file:
        try:
            file.write(content)
            file.close()
            Path(file.name).replace(path)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise
