"""Verbs: what a user asks for in one object, and what it tells while it runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamplace.settings.base import VerbSettings
from streamplace.settings.option import KEYS

if TYPE_CHECKING:
    from streamplace.display.report import Report


class Progress:
    """What a verb tells while it runs; this one tells nobody, and lets every file be written."""

    as_json = False  # whether the answer is for a program

    def say(self, message: str) -> None:
        """Tell people something besides the result."""

    def hint(self, message: str) -> None:
        """Tell people who read the result, and no program, something after it."""

    def suggest(self, line: str) -> None:
        """Add a line to the result that people read."""

    def failed(self, graph: str, reason: str) -> None:
        """Tell that a graph of several has failed."""

    def waiting(self, title: str) -> AbstractContextManager[None]:
        """Show that something takes its time."""
        return nullcontext()

    def check_kind(self, path: Path | None, *, is_folder: bool) -> None:
        """Raise SettingError if ``-o`` names a folder for a file, or a file for a folder."""

    def reads(self, path: Path) -> object:
        """Count a file as an input, besides those that the user names."""
        return path

    def spare_inputs(self, *files: Path) -> None:
        """Raise SettingError if a file that will be written is an input."""

    def spare_others(self, *files: Path, keys: frozenset[str] = KEYS, option: str = "-o") -> None:
        """Raise SettingError if a file that will be written is none of streamplace's."""


SILENT = Progress()


class Written(NamedTuple):
    """Answer of a verb that is in a file, or will be: facts for programs, sentences for people."""

    facts: Any
    sentences: tuple[str, ...] = ()
    text: str = ""  # content of the file, to print if no file is named
    write: Callable[[Path], object] = lambda path: None
    page: "Callable[[], Report] | None" = None  # to write as .html instead
    status: int = 0


class Listing(NamedTuple):
    """Answer of a verb that shows something: a report for people, a document for programs."""

    report: "Callable[[], Report]"
    to_json: Callable[[], Any]


class Verb(VerbSettings):
    """Base of verbs: a request with its options as fields, and `run`, which answers it.

    An answer has ``report()`` and ``to_json()``, for people and for programs, and ``write(path)``,
    which writes what ``-o`` names and returns a noun for it; or it is `Written`. Its ``page()``, if
    it has one, is a report with a placement, to be written as .html with a command for it, and its
    ``status``, if it has one, the exit status of the command.
    """

    def run(self, progress: Progress = SILENT) -> Any:
        """Do what is asked for, and return the answer."""
        raise NotImplementedError

    def when_stopped(self, progress: Progress) -> int | None:
        """Tell after Ctrl-C how to continue; return the exit status, or None for the usual one."""
        return None
