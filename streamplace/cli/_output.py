"""``-o``: which files and folders it may name; it never overwrites inputs or foreign files."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from streamplace.errors import FormatError, SettingError
from streamplace.io.suffixes import FILES
from streamplace.settings.option import KEYS

READ = "streamplace.read"
TABLE = b"operator,pe,device,"
"""Beginning of a placement as a table, by which it is recognised."""


class Output(click.Option):
    """``-o``, which must not name an input of the same command."""

    def __init__(
        self,
        *arguments: Any,
        folder: bool | None = False,
        suffixes: tuple[str, ...] = (),
        is_needed: bool = False,
        keys: frozenset[str] = KEYS,
        **facts: Any,
    ) -> None:
        super().__init__(*arguments, **facts)
        self.folder = folder
        """Whether the command writes a folder (True), a file (False), or one of them (None)."""
        self.suffixes = suffixes
        """Allowed ends of the name of a file; empty for any."""
        self.is_needed = is_needed
        self.keys = keys
        """Fields of its JSON and TOML; a file that it may replace has one of them."""

    def check(self, path: Path | None) -> None:
        """Raise an error for an output that is missing, or whose path must not be written."""
        from streamplace.io.files import check_suffix, is_special

        if path is None:
            if self.is_needed:
                names = " or ".join(self.suffixes)
                raise SettingError(f"the output file is missing; add -o FILE{names}")
            return
        spare_inputs(path)
        if self.folder is not None:
            check_output(path, is_folder=self.folder)
        if self.keys:
            spare_others(path, keys=self.keys)
        if self.suffixes and not is_special(path):
            check_suffix(path, "the file", *self.suffixes)


def check_output(path: Path | None, *, is_folder: bool) -> None:
    """Raise SettingError if ``-o`` names a folder for a file, or a file for a folder."""
    from streamplace.io import files

    if path is None:
        return
    if is_folder and files.is_file(path):
        raise SettingError(f"-o {path}: cannot create the folder: {path} is a file; name another")
    if is_folder and path.suffix in FILES and not files.is_folder(path):
        folder = path.with_name(Path(path.name.removesuffix(".gz")).stem)
        raise SettingError(
            f"-o {path} is the name of a file, but a folder is written; write -o {folder}/"
        )
    if not is_folder and files.is_folder(path):
        raise SettingError(f"-o {path}: it is a directory; name a file, such as {path / 'FILE'}")


def reads(path: Path) -> Path:
    """Return a path, remembered as an input of the running command."""
    click.get_current_context().meta.setdefault(READ, []).append(path)
    return path


def spare_inputs(*outputs: Path) -> None:
    """Raise SettingError if an output is an input of the running command."""
    for read in click.get_current_context().meta.get(READ, ()):
        if any(_same_file(path, read) for path in outputs):
            raise SettingError(f"-o would overwrite the input {read}; name another file")


def spare_others(
    *outputs: Path,
    keys: frozenset[str] = KEYS,
    option: str = "-o",
    is_ours: Callable[[Path], bool] | None = None,
) -> None:
    """Raise SettingError if an output is a file that streamplace did not write, by its content."""
    from streamplace.io import files

    is_ours = is_ours or partial(_is_ours, keys=keys)
    for path in outputs:
        if files.is_file(path) and not is_ours(path):
            raise SettingError(
                f"{option} would overwrite {path}, which streamplace did not write; name another "
                "file, or remove that one"
            )


def _is_ours(path: Path, keys: frozenset[str]) -> bool:
    """Whether a file is empty, or has the fields or the mark of a file of streamplace."""
    from streamplace.io import files
    from streamplace.io.placements import fields_of

    kind = Path(path.name.removesuffix(".gz")).suffix
    try:
        if kind == ".jsonl":  # its only line may be incomplete
            _, line = next(files.read_lines(path), (0, b""))
            return not line.endswith(b"\n") or not keys.isdisjoint(fields_of(line))
        content = files.read_bytes(path)
        if kind == ".toml":
            return not content or not keys.isdisjoint(files.read_toml(path))
    except FormatError:
        return False
    if kind == ".json":
        return not content or not keys.isdisjoint(fields_of(content))
    return not content or b"streamplace" in content or content.startswith(TABLE)


def _same_file(a: Path, b: Path) -> bool:
    """Whether two paths lead to one file or folder; a terminal may be read and written."""
    try:
        return (b.is_file() or b.is_dir()) and a.samefile(b)
    except (OSError, ValueError):
        return False
