"""Folders of the user: for what can be made again, and for what is to be remembered."""

import os
from pathlib import Path


def user_cache() -> Path:
    """Streamplace's folder in the user's cache folder; it need not exist, nor be writable."""
    return _folder("XDG_CACHE_HOME", ".cache")


def user_state() -> Path:
    """Streamplace's folder for what cannot be made again; it need not exist, nor be writable."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, usual: str) -> Path:
    named = os.environ.get(variable)
    try:
        return (Path(named) if named else Path.home() / usual) / "streamplace"
    except RuntimeError:  # a user without a home: nothing can be beneath this
        return Path(os.devnull) / "streamplace"
