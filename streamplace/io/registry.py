"""Registry of foreign graph formats, one reader per format."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from streamplace.errors import SettingError
from streamplace.io.problems import AnyProblem
from streamplace.registry import Registry

FormatReader = Callable[[Path], Iterator[AnyProblem]]


@dataclass(frozen=True, slots=True)
class Format:
    """A foreign format that can be imported: its reader takes a file or a folder."""

    name: str
    summary: str
    read: FormatReader
    options: Mapping[str, str]  # keyword arguments of the reader, each a flag, and their effects
    package: str = ""  # optional package that the reader needs

    def __repr__(self) -> str:
        return f"<Format {self.name}>"

    def with_options(self, names: Iterable[str]) -> "Format":
        """Return the format with these options of its reader switched on."""
        for name in names:
            if name not in self.options:
                others = [other for other in FORMATS if name in FORMATS[other].options]
                raise SettingError(
                    f"{self.name} cannot {name}; drop --{name}, which is for {', '.join(others)}"
                )
        return replace(self, read=partial(self.read, **dict.fromkeys(names, True)))


FORMATS: Registry[Format] = Registry("streamplace.io", "format")


def reader(
    name: str, *, options: Mapping[str, str] | None = None, package: str = ""
) -> Callable[[FormatReader], FormatReader]:
    """Register a reader; the first line of its docstring describes the format."""
    return FORMATS.decorator(
        name, lambda summary, read: Format(name, summary, read, options or {}, package)
    )


def reader_options() -> dict[str, str]:
    """Options of all formats with their descriptions, followed by the formats that have them."""
    formats: dict[tuple[str, str], list[str]] = {}
    for name in FORMATS:
        for option, about in FORMATS[name].options.items():
            formats.setdefault((option, about), []).append(name)
    return {
        option: f"{about.rstrip('.')} ({', '.join(names)})."
        for (option, about), names in formats.items()
    }
