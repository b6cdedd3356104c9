"""Paths among the arguments of functions, and errors for arguments of a wrong type."""

from os import PathLike
from pathlib import Path
from typing import TypeGuard

from streamplace.errors import SettingError
from streamplace.model.message_text import quoted

FilePath = str | PathLike[str]


def path_of(argument: str, path: object) -> Path:
    """Path of a file or folder."""
    if is_path(path):
        return Path(path)
    raise wrong(argument, path, "a path")


def is_path(value: object) -> TypeGuard[FilePath]:
    """Whether a value is a path."""
    return isinstance(value, str | PathLike)


def wrong(argument: str, value: object, wanted: str) -> SettingError:
    """Build the error for an argument of a wrong type."""
    return SettingError(f"{argument} is {quoted(value)}; it must be {wanted}")
