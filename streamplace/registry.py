"""Registries: one file with one registered function adds a placer, objective, format or family.

The modules of the registry's package are imported at the first look, which runs their decorators;
third parties join through an entry-point group of the same name as the package.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Generic, TypeVar, cast

from streamplace.errors import SettingError
from streamplace.model.messages import quoted, suggestion

T = TypeVar("T")


@cache
def _entry_points() -> EntryPoints:
    """Entry points of all that is installed, which takes long to look through."""
    return cast(EntryPoints, entry_points())


class Registry(Generic[T]):
    """Named things found in the modules of one package and in the entry points of its name.

    Parameters
    ----------
    package
        Its modules register what they define when they are imported.
    noun
        What the things are called in messages.
    module
        Module of every sub-package that is imported in its place; None for the sub-package itself.
    """

    def __init__(self, package: str, noun: str, module: str | None = None) -> None:
        self._package = package
        self._noun = noun
        self._module = module
        self._found: dict[str, T] = {}
        self._loaded = False

    def add(self, name: str, thing: T) -> T:
        """Register a thing under a name that nobody else has."""
        if name in self._found:
            raise SettingError(f"two {self._noun}s are called {name!r}; rename one of them")
        self._found[name] = thing
        return thing

    def __getitem__(self, name: str) -> T:
        self._load()
        if name not in self._found:
            raise SettingError(self._unknown(name))
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._found))

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._found

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            name = f"{self._package}.{module.name}"
            inside = module.ispkg and self._module is not None
            importlib.import_module(f"{name}.{self._module}" if inside else name)
        for point in _entry_points().select(group=self._package):
            point.load()

    def _unknown(self, name: str) -> str:
        hint = suggestion(name, self._found) or "."
        return f"there is no {self._noun} {quoted(name)}{hint} Known: {', '.join(self)}"
