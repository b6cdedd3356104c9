"""The folder for what can be made again, so that it need not be."""

import os
from pathlib import Path


def user_cache() -> Path:
    """Streamplace's folder in the user's cache folder; it need not exist, nor be writable."""
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(named) if named else Path.home() / ".cache") / "streamplace"
    except RuntimeError:  # a user without a home: nothing can be beneath this
        return Path(os.devnull) / "streamplace"
