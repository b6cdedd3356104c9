"""Digest of code, which changes with any code that may change a result.

It covers streamplace, and for every function of other packages that a placer, its model, an
objective or a condition runs, all files of its package and of the distribution that registers it.
"""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from streamsim import _core

from streamplace.io.weights import stamped
from streamplace.registry import plugins

STREAMPLACE = {"streamplace", "streamsim"}
GENERATED = {"__pycache__", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
"""Folders and files that Python and installers write."""


def code_digest(*things: Any) -> str:
    """Short digest of streamplace, and of other code that placers and objectives run."""
    names = sorted(STREAMPLACE | set(_modules(things, set())) - sys.stdlib_module_names)
    parts = [_core.SOURCES, *map(_content, names)]
    return sha256("".join(parts).encode()).hexdigest()[:12]


def _modules(thing: Any, visited: set[int]) -> Iterator[str]:
    """Top-level names of the modules of all functions and classes in a value."""
    if id(thing) in visited:
        return
    visited.add(id(thing))
    parts: Iterable[Any] = ()
    if isinstance(thing, (tuple, list, Mapping)):
        parts = thing.values() if isinstance(thing, Mapping) else thing
    elif isinstance(thing, partial):
        parts = thing.func, thing.args, thing.keywords
    elif isinstance(thing, MethodType):
        parts = thing.__func__, thing.__self__
    elif callable(thing) or is_dataclass(thing):
        named = thing if isinstance(thing, (FunctionType, type)) else type(thing)
        yield named.__module__.partition(".")[0]
        parts = [getattr(thing, "__wrapped__", None)]
        if isinstance(thing, FunctionType):
            parts += [cell.cell_contents for cell in thing.__closure__ or ()]
        elif is_dataclass(thing) and not isinstance(thing, type):
            parts += [getattr(thing, field.name) for field in fields(thing)]
    for part in parts:
        yield from _modules(part, visited)


def _content(name: str) -> str:
    """Digest of all files of a top-level module, or of the cells of a notebook."""
    module = sys.modules.get(name)
    if name == "__main__" and (spec := getattr(module, "__spec__", None)) is not None:
        module = sys.modules.get(spec.name.partition(".")[0], module)  # python -m
    file = getattr(module, "__file__", None)
    folders = [Path(path) for path in getattr(module, "__path__", ())]
    files = {file for folder in folders for file in _inside(folder)}
    for point in plugins():
        if point.module.partition(".")[0] == name:
            installed = () if point.dist is None else point.dist.files or ()
            paths = (path for path in installed if not GENERATED.intersection(path.parts))
            files |= {Path(str(path.locate())) for path in paths}
    if not files and file is not None:  # a script, and modules beside it
        beside = Path(file).absolute().parent
        packages = (path.parent for path in beside.glob("*/__init__.py"))
        files = {*beside.glob("*.py"), *(file for folder in packages for file in _inside(folder))}
    if not files:
        return repr(sorted(_cells(vars(module).items()))) if module is not None else ""
    return _digest(tuple(stamped(file) for file in sorted(files)))


def _inside(folder: Path) -> Iterator[Path]:
    """Files in a folder, without those that Python and installers write."""
    for path in folder.rglob("*"):
        is_core = path.name == Path(_core.__file__).name  # SOURCES identifies it
        if not (is_core or GENERATED.intersection(path.parts)) and path.is_file():
            yield path


def _cells(names: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    """Sources and constants that a notebook defines."""
    for name, value in names:
        if isinstance(value, (bool, int, float, str)) and not name.startswith("_"):
            yield name, repr(value)
        elif isinstance(value, (FunctionType, type)) and value.__module__ == "__main__":
            yield name, inspect.getsource(value)


@lru_cache(maxsize=64)
def _digest(files: tuple[tuple[Path, tuple[int, int]], ...]) -> str:
    """Digest of the contents of stamped files; a missing one counts as empty."""
    digest = sha256()
    for path, (_, size) in files:
        digest.update(f"{path.name} {size} ".encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()
