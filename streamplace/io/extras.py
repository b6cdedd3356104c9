"""Optional packages that some formats and learned placers need."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamplace.errors import MissingPackageError
from streamplace.model.message_text import shown

LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Variable that Ray reads at its import; with 0, it listens on the loopback interface alone."""
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


def quiet_ray(*, is_local: bool) -> Any:
    """Import Ray without statistics and bars; one to start here listens on loopback alone.

    Variables that the user has set remain.
    """
    quiet = ("RAY_USAGE_STATS_ENABLED", "RAY_TQDM_PATCH_PRINT")
    for variable in (*quiet, LOOPBACK) if is_local else quiet:
        os.environ.setdefault(variable, "0")
    return extra("ray")


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
