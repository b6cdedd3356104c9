"""Optional packages that some formats and learned placers need."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamplace.errors import MissingPackageError
from streamplace.model.message_text import shown

LEARNING = ("torch", "torch_geometric")
"""Packages of the extras ``learn`` and ``torch-geometric``."""


def extra(package: str, name: str = "") -> Any:
    """Import a package, or raise MissingPackageError with its extra, by default of its name."""
    name = name or package
    try:
        return importlib.import_module(package)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            raise _missing(package, name) from None
        raise MissingPackageError(
            f"{package} is installed, but cannot be imported: {shown(str(error), 200)}; install "
            f"it again with: pip install --force-reinstall 'streamplace[{name}]'"
        ) from None


@contextmanager
def importing(extra: str) -> Iterator[None]:
    """Import packages of the extra ``learn`` or ``torch-geometric`` in this block.

    If one is missing, MissingPackageError says how to install the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in LEARNING:
            raise
        raise _missing(package, extra) from None


def _missing(package: str, name: str) -> MissingPackageError:
    return MissingPackageError(
        f"{package} is not installed; install it with: pip install 'streamplace[{name}]'"
    )
