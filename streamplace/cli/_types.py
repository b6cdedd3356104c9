"""Types of options: files, of which no input is overwritten, and names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from streamplace.errors import SettingError
from streamplace.model.messages import shown

F = TypeVar("F", bound=Callable[..., Any])
READ, OUTPUT = "streamplace.read", "streamplace.output"


class File(click.Path):
    """A path; - is standard input, and for an output standard output."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a path; addresses of the web are refused."""
        if value == "-":
            return Path("/dev/stdout" if isinstance(param, Output) else "/dev/stdin")
        if isinstance(value, str) and value.startswith(("http:/", "https:/")):
            raise SettingError(
                f"{shown(value)} is an address, and streamplace reads files; download it first"
            )
        return super().convert(value, param, ctx)


FILE = File()


class Output(click.Option):
    """``-o``, which must not name an input of the same command.

    A name that ends in a slash is a folder: it is refused where a file is written, and where a
    file of that name exists.
    """

    def __init__(self, *arguments: Any, folder: bool | None = False, **facts: Any) -> None:
        super().__init__(*arguments, **facts)
        self.folder = folder
        """Whether the command writes a folder (True), a file (False), or one of them (None)."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Remember the inputs of the command, and refuse to overwrite one."""
        for name in _texts(opts.get(self.name or "")):
            ctx.meta[OUTPUT] = name
        for parameter in ctx.command.params:
            given = opts.get(parameter.name or "")
            if parameter is not self and parameter.type is FILE:
                for name in _texts(given):
                    reads(Path(name))
        value, rest = super().handle_parse_result(ctx, opts, args)
        if isinstance(value, Path):
            spare_inputs(value)
            if self.folder is not None:
                check_output(is_folder=self.folder)
        return value, rest


def check_output(*, is_folder: bool) -> None:
    """Raise SettingError if ``-o`` names a folder for a file, or a file for a folder.

    For commands whose other options decide which of them they write.
    """
    name = click.get_current_context().meta.get(OUTPUT)
    if name is not None:
        _check_kind(name, is_folder=is_folder)


def _check_kind(name: str, *, is_folder: bool) -> None:
    from streamplace.io import files

    path = Path(name)
    if is_folder and files.is_file(path):
        raise SettingError(f"-o {name}: cannot create the folder: {path} is a file; name another")
    if not is_folder and (name.endswith("/") or files.is_folder(path)):
        raise SettingError(f"-o {name}: it is a directory; name a file, such as {path / 'FILE'}")


def _texts(given: Any) -> Sequence[str]:
    """Texts of a parameter: none, one, or several."""
    if isinstance(given, str):
        return (given,)
    return given if isinstance(given, list | tuple) else ()


def reads(path: Path) -> Path:
    """Return a path, remembered as an input of the running command."""
    click.get_current_context().meta.setdefault(READ, []).append(path)
    return path


def spare_inputs(*outputs: Path) -> None:
    """Raise SettingError if an output is an input of the running command."""
    for read in click.get_current_context().meta.get(READ, ()):
        if any(_same_file(path, read) for path in outputs):
            raise SettingError(f"-o would overwrite the input {read}; name another file")


def _same_file(a: Path, b: Path) -> bool:
    """Whether two paths lead to one file or folder; a terminal may be read and written."""
    try:
        return (b.is_file() or b.is_dir()) and a.samefile(b)
    except (OSError, ValueError):
        return False


def writes(text: str, **facts: Any) -> Callable[[F], F]:
    """``-o``; ``text`` describes its file."""
    return click.option("-o", "--output", cls=Output, type=FILE, help=text, **facts)


class OneOf(click.ParamType):  # type: ignore[type-arg]  # generic in some versions of click only
    """A name, with all names in the help; it is checked where it is used."""

    def __init__(self, name: str, names: Callable[[], Iterable[str]]) -> None:
        self.name = name
        self._names = names

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """All names, loaded when the help is shown."""
        return "|".join(self._names())
