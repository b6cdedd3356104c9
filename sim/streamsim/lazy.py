"""Lazy loading: packages that import a name at its first use."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def loader(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package; ``modules`` lists the names that each defines.

    >>> loader("streamsim", {"flow": "CycleError Flow"})("CycleError").__name__
    'CycleError'
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return load
