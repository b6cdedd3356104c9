"""Foreign graph formats: one file, one reader registered under the format's name."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streamplace.io.problems import Known
from streamplace.registry import Registry

Reader = Callable[[Path], Iterator[Known]]


@dataclass(frozen=True, slots=True)
class Format:
    """A foreign format that can be imported: its reader takes a file or a folder."""

    name: str
    summary: str
    read: Reader


FORMATS: Registry[Format] = Registry("streamplace.io", "format")


def reader(name: str) -> Callable[[Reader], Reader]:
    """Register a reader; the first line of its docstring describes the format."""

    def register(read: Reader) -> Reader:
        summary = (read.__doc__ or "").strip().splitlines()[0]
        FORMATS.add(name, Format(name, summary, read))
        return read

    return register
