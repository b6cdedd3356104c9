"""Packages that only some formats need."""

import importlib
from typing import Any

from streamplace.errors import SettingError


def extra(package: str, name: str = "") -> Any:
    """Return an optional package; where it is missing, tell how to install it.

    Parameters
    ----------
    name
        Extra of streamplace that installs it, by default called like it.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise SettingError(
            f"{package} is not installed; install it with: pip install "
            f"'streamplace[{name or package}]'"
        ) from None
