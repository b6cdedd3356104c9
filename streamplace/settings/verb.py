"""Verbs: a request of a user as one object, and its messages while it runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamplace.settings.base import VerbSettings
from streamplace.settings.option import KEYS

if TYPE_CHECKING:
    from streamplace.display.report import Report


class Progress:
    """Messages and checks of a verb while it runs; this base is silent and allows every file."""

    as_json = False  # whether the answer is for a program

    def say(self, message: str) -> None:
        """Say something in addition to the result."""

    def hint(self, message: str) -> None:
        """Say something after the result, to people only."""

    def suggest(self, line: str) -> None:
        """Add a line to the report."""

    def failed(self, graph: str, reason: str) -> None:
        """Report that one of several graphs has failed."""

    def waiting(self, title: str) -> AbstractContextManager[None]:
        """Show that the verb is busy."""
        return nullcontext()

    def check_kind(self, path: Path | None, *, is_folder: bool) -> None:
        """Raise SettingError if ``-o`` names a folder for a file, or a file for a folder."""

    def reads(self, path: Path) -> object:
        """Count a file as an input, besides those that the user names."""
        return path

    def spare_inputs(self, *files: Path) -> None:
        """Raise SettingError if a file to be written is an input."""

    def spare_others(self, *files: Path, keys: frozenset[str] = KEYS, option: str = "-o") -> None:
        """Raise SettingError if a file to be written exists and is not of streamplace."""


SILENT = Progress()


class Written(NamedTuple):
    """Answer in a file: facts for programs, sentences for people."""

    facts: Any
    sentences: tuple[str, ...] = ()
    text: str = ""  # content of the file, to print if no file is named
    write: Callable[[Path], object] = lambda path: None
    page: "Callable[[], Report] | None" = None  # to write as .html instead
    status: int = 0


class Listing(NamedTuple):
    """Answer that is shown: a report for people, a document for programs."""

    report: "Callable[[], Report]"
    to_json: Callable[[], Any]


class Verb(VerbSettings):
    """Base of verbs: a request with its options as fields, and `run`, which answers it.

    An answer is `Written`, or has ``report()`` for people, ``to_json()`` for programs, and
    ``write(path)``, which writes the file or folder of ``-o`` and returns a noun for it. It may
    have ``page()``, a report with a placement, which is written as .html with a command that
    simulates it, and ``status``, the exit status of the command.
    """

    def run(self, progress: Progress = SILENT) -> Any:
        """Run, and return the answer."""
        raise NotImplementedError

    def when_stopped(self, progress: Progress) -> int | None:
        """Say after Ctrl-C how to continue; return the exit status, or None for the usual one."""
        return None
