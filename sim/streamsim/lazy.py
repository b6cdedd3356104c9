"""Public names of a package, which are loaded at their first use.

The file ``__init__.pyi`` of the package lists them, as ``from module import name as name``, for
this module and for type checkers.
"""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@cache
def public_names(package: str) -> dict[str, str]:
    """Module that defines each public name of a package.

    >>> public_names("streamsim")["CycleError"]
    'streamsim.flow'
    """
    stub = Path(sys.modules[package].__path__[0], "__init__.pyi").read_text("utf-8")
    lines = [line.split() for line in stub.splitlines() if line.startswith("from ")]
    return {name: module for _, module, _, name, *_ in lines}


def load(package: str, name: str) -> Any:
    """Import and return a public name of a package, as its ``__getattr__``.

    >>> load("streamsim", "CycleError").__name__
    'CycleError'
    """
    modules = public_names(package)
    if name == "__all__":
        return [*modules]
    if name not in modules:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(modules[name]), name)
