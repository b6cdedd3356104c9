"""Registries: one file with one registered function adds a placer, objective, format or family.

Importing a module of the registry's package runs its decorators. A name is first looked up in the
module of that name, or of its first words; all modules are imported if it is not there, or if all
names are requested. The optional rooms (`streamplace.rooms`) have further packages of a registry.
Other packages register through an entry-point group with the name of the package.
"""

import importlib
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from streamplace.errors import SettingError, StreamplaceError
from streamplace.model.message_text import quoted, suggestion
from streamplace.rooms import absent, extensions, how_to_install, modules_of, reason

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

LOG = logging.getLogger(__name__)
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@cache
def plugins() -> "tuple[EntryPoint, ...]":
    """Entry points of other packages, in all groups; cached, because reading them takes long."""
    from importlib.metadata import entry_points

    found = cast("EntryPoints", entry_points())
    groups = (group for group in found.groups if group.startswith("streamplace."))
    return tuple(point for group in sorted(groups) for point in found.select(group=group))


class Registry(Generic[T]):
    """Named objects registered by the modules of one package, of rooms, and by entry points.

    Parameters
    ----------
    package
        Package whose modules register objects when they are imported.
    noun
        Word for a registered object in messages.
    module
        Module to import in place of each sub-package; None for the sub-package itself.
        Sub-packages without this module register nothing. In a room, the sub-packages are directly
        below the room.
    """

    def __init__(self, package: str, noun: str, module: str | None = None) -> None:
        self._package = package
        self._noun = noun
        self._module = module
        self._part = "" if module else package.rpartition(".")[2]
        self._registered: dict[str, T] = {}
        self._origins: dict[str, str] = {}
        self._loaded = False

    @property
    def _packages(self) -> tuple[str, ...]:
        return (self._package, *extensions(self._part))

    def add(self, name: str, thing: T, function: Callable[..., object] | None = None) -> T:
        """Register an object under a unique name.

        Parameters
        ----------
        function
            Function that the object is made of. If it is defined again, as in a notebook cell that
            runs twice, its object is replaced.
        """
        origin = ""
        if function is not None:
            origin = f"{function.__module__}.{getattr(function, '__qualname__', id(function))}"
            if not origin.startswith(tuple(f"{package}." for package in self._packages)):
                self._load_named(name)  # a built-in object of this name
        if name in self._registered and not (origin and origin == self._origins.get(name)):
            raise SettingError(f"two {self._noun}s are called {name!r}; rename one of them")
        self._registered[name], self._origins[name] = thing, origin
        return thing

    def decorator(self, name: str, made: Callable[[str, Any], T]) -> Callable[[F], F]:
        """Register what is made of the first line of a function's docstring and the function."""

        def register(function: F) -> F:
            lines = (function.__doc__ or "").strip().splitlines()
            if not lines:
                raise SettingError(
                    f"the {self._noun} {name!r} has no docstring; its first line describes it"
                )
            self.add(name, made(lines[0], function), function)
            return function

        return register

    def __repr__(self) -> str:
        return f"<Registry of {self._noun}s>"

    def __getitem__(self, name: str) -> T:
        if name not in self:
            raise SettingError(self._unknown(name))
        return self._registered[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._registered))

    def __contains__(self, name: object) -> bool:
        return self._find(str(name))

    def prepare(self, names: Iterable[str]) -> None:
        """Import the modules of these names, so that imports do not count as search time."""
        for name in names:
            self._find(name)

    def _find(self, name: str) -> bool:
        """Whether a name is registered; imports its module or, if necessary, all modules."""
        self._load_named(name)
        if name not in self._registered:
            self._load()
        return name in self._registered

    def _load_named(self, name: str) -> None:
        """Import the modules of a name and of its first words until the name is registered."""
        words = name.split("-")
        for n in range(len(words), 0, -1):
            if name not in self._registered:
                self._load_module("_".join(words[:n]))

    def _load_module(self, name: str) -> None:
        """Import one module, if a package has it; importing all takes far longer."""
        for package in self._packages if name.isidentifier() else ():
            path = f"{package}.{name}"
            if (spec := find_spec(path)) is not None:
                self._import(path, spec.submodule_search_locations is not None)

    def _import(self, path: str, is_package: bool) -> None:
        """Import a module, or the registering one of a sub-package; modules of rooms may fail."""
        try:
            if is_package and self._module is not None:
                path = f"{path}.{self._module}"
                if find_spec(path) is None:
                    return
            importlib.import_module(path)
        except Exception as error:
            if path.startswith(f"{self._package}.") or isinstance(error, StreamplaceError):
                raise
            LOG.warning("%s is left out: %s", path, reason(error))

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True  # as modules may look up names while they are imported
        try:
            for package in self._packages:
                for module in modules_of(package):
                    self._import(f"{package}.{module.name}", module.ispkg)
            for point in plugins():
                if point.group == self._package:
                    self._load_plugin(point)
        except BaseException:
            self._loaded = False
            raise

    def _load_plugin(self, point: "EntryPoint") -> None:
        """Import a plug-in of another package; a broken one is logged and left out."""
        try:
            point.load()
        except Exception as error:
            owner = "a package" if point.dist is None else point.dist.name
            LOG.warning("%s %r of %s is left out: %s", self._noun, point.name, owner, reason(error))

    def _unknown(self, name: str) -> str:
        hint = suggestion(name, self._registered) or "."
        others = "".join(f"; {how_to_install(room)}" for room in absent())
        return f"there is no {self._noun} {quoted(name)}{hint} Known: {', '.join(self)}{others}"
