"""The user's folders for caches and for state."""

import os
from pathlib import Path


def user_cache() -> Path:
    """Streamplace's folder in the user's cache folder; it may be missing or read-only."""
    return _folder("XDG_CACHE_HOME", ".cache")


def user_state() -> Path:
    """Streamplace's folder for data that cannot be recreated; it may be missing or read-only."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, usual: str) -> Path:
    named = os.environ.get(variable)
    try:
        return (Path(named) if named else Path.home() / usual) / "streamplace"
    except RuntimeError:  # a user without a home: nothing can be beneath this
        return Path(os.devnull) / "streamplace"
