"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from streamplace.cli._output import Output, reads
from streamplace.cli._printing import verbose
from streamplace.errors import SettingError
from streamplace.model.message_text import shown

if TYPE_CHECKING:
    from streamplace.settings.verb import Verb

F = TypeVar("F", bound=Callable[..., Any])


class File(click.Path):
    """A path; - is standard input, and for an output standard output."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a path, and remember an input; web addresses are refused."""
        if value == "-":
            value = "/dev/stdout" if isinstance(param, Output) else "/dev/stdin"
        if isinstance(value, str) and value.startswith(("http:/", "https:/")):
            raise SettingError(
                f"{shown(value)} is a web address, and streamplace reads files; download it first"
            )
        path = cast(Path, super().convert(value, param, ctx))
        return path if ctx is None or isinstance(param, Output) else reads(path)


FILE = File()


def writes(text: str, **facts: Any) -> Callable[[F], F]:
    """``-o``; ``text`` describes its file."""
    return click.option("-o", "--output", cls=Output, type=FILE, help=text, **facts)


def writes_of(model: "type[Verb]") -> Callable[[F], F]:
    """``-o`` of a verb, if it has one."""
    for name, facts in model.marked("output").items():
        return click.option("-o", "--output", name, cls=Output, type=FILE, **facts)
    return lambda function: function


JAR = click.argument("jar", type=FILE, required=False)
ARGUMENTS = click.argument("arguments", nargs=-1)
AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)


def common(output: str, **facts: Any) -> Callable[[F], F]:
    """``--json``, ``-o`` and ``-v``; ``output`` describes the file or folder of ``-o``."""
    return lambda function: AS_JSON(writes(output, **facts)(verbose(function)))
