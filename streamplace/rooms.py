"""Optional rooms: sub-packages of streamplace, one subject each, that can be taken out.

A package of a room extends the package of the same name: `streamplace/flink/cli` has commands like
`streamplace/cli`, and `streamplace/papers/families` has families like `streamplace/families`.
Registries and the command line find rooms by name; nothing imports them.
"""

from functools import cache
from importlib.util import find_spec
from logging import getLogger
from pkgutil import ModuleInfo, iter_modules

from streamplace.model.message_text import shown

LOG = getLogger(__name__)
ROOMS = ("flink", "papers")
"""Names of the rooms, and of the extras with their dependencies."""
MAX_REASON = 200
"""Characters of an import error in a message."""


@cache
def extensions(part: str) -> tuple[str, ...]:
    """Packages of a name in the installed rooms; without a name, the rooms themselves."""
    found = []
    for name in (f"streamplace.{room}{'.' * bool(part)}{part}" for room in ROOMS):
        try:
            if find_spec(name) is not None:
                found.append(name)
        except Exception as error:
            if f"{name}.".startswith(f"{getattr(error, 'name', '')}."):
                continue  # the room is not installed
            LOG.warning("%s is left out: %s", name, reason(error))
    return tuple(found)


def modules_of(package: str) -> list[ModuleInfo]:
    """Modules of a package, without importing it."""
    spec = find_spec(package)
    return [] if spec is None else [*iter_modules(spec.submodule_search_locations)]


def absent() -> list[str]:
    """Names of the rooms that are not installed."""
    return [room for room in ROOMS if f"streamplace.{room}" not in extensions("")]


def how_to_install(room: str) -> str:
    """Say that a room is not installed, and how to install it."""
    return (
        f"streamplace.{room} is not installed; install it with: pip install 'streamplace[{room}]'"
    )


def reason(error: Exception) -> str:
    """Why a module cannot be imported, in one line."""
    return shown(" ".join(f"{type(error).__name__}: {error}".split()), MAX_REASON)
