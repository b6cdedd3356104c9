"""Foreign graph formats: one file, one reader registered under the format's name."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from streamplace.errors import SettingError
from streamplace.io.problems import Known
from streamplace.registry import Registry

Reader = Callable[[Path], Iterator[Known]]


@dataclass(frozen=True, slots=True)
class Format:
    """A foreign format that can be imported: its reader takes a file or a folder.

    Attributes
    ----------
    options
        What the reader does on request: names of its keyword arguments.
    source
        What the reader takes, where that is no path.
    package
        What has to be installed, where that is no matter of course.
    """

    name: str
    summary: str
    read: Reader
    options: tuple[str, ...] = ()
    source: str = ""
    package: str = ""

    def with_options(self, names: Iterable[str]) -> "Format":
        """Return the format whose reader does these things as well."""
        for name in names:
            if name not in self.options:
                able = [other for other in FORMATS if name in FORMATS[other].options]
                raise SettingError(
                    f"{self.name} cannot {name}; drop --{name}, which is for {', '.join(able)}"
                )
        return replace(self, read=partial(self.read, **dict.fromkeys(names, True)))


FORMATS: Registry[Format] = Registry("streamplace.io", "format")


def reader(name: str, *, source: str = "", package: str = "") -> Callable[[Reader], Reader]:
    """Register a reader; the first line of its docstring describes the format."""

    def register(read: Reader) -> Reader:
        summary = (read.__doc__ or "").strip().splitlines()[0]
        parameters = inspect.signature(read).parameters.values()
        options = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        FORMATS.add(name, Format(name, summary, read, options, source, package))
        return read

    return register
