"""Commands that messages advise: complete, so that they can be executed as printed anywhere."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.program.program import Program

_FILES = ("--placement", "--cluster", "--library", "--authorization", "--settings")
"""Options with a path, which is printed in full so that the working directory does not matter."""
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")
"""Name and password of an address, in whose place commands have words that say so."""


def resume_typed(words: Sequence[str], jar: Path, job: str) -> str:
    """The command that finishes a move of a job which was begun by a typed command.

    >>> words = ["flink", "move", "/j/a.jar", "--rest", "http://me:secret@host", "--", "x y"]
    >>> resume_typed(words, Path("/j/a.jar"), "0b7c")
    "streamplace flink move /j/a.jar --rest http://NAME:PASSWORD@host --job 0b7c --resume -- 'x y'"
    """
    end = list(words).index("--") if "--" in words else len(words)
    options, typed = [], words[:end]
    for before, word in zip(("", *typed), typed, strict=False):
        option, equals, value = word.partition("=")
        if Path(word) == jar or before in _FILES:
            options.append(str(Path(word).resolve()))
        elif equals and option in _FILES:
            options.append(f"{option}={Path(value).resolve()}")
        elif word not in ("--resume", "--dry-run"):
            options.append(_LOGIN.sub("NAME:PASSWORD@", word))
    if not any(word == "--job" or word.startswith("--job=") for word in options):
        options += ["--job", job]
    return shlex.join(["streamplace", *options, "--resume", *words[end:]])


def resume_command(program: Program, url: str, settings: MoveSettings, job: str) -> str:
    """Return the command that finishes a move which was begun from Python, or by a watch."""
    folder = settings.savepoints
    more = ["--savepoints", folder] if folder is not None else []
    return _command("move", program, url, [*more, "--job", job, "--resume"])


def apply_command(program: Program, url: str, placement: str, savepoint: str) -> str:
    """The command that starts a job from a savepoint with a placement."""
    return _command("apply", program, url, ["--placement", placement, "--savepoint", savepoint])


def _command(name: str, program: Program, url: str, more: Sequence[str]) -> str:
    """A command with all options that describe the program of a job."""
    words = ["streamplace", "flink", name, str(program.jar.resolve()), "--rest"]
    words += [_LOGIN.sub("NAME:PASSWORD@", url)]
    words += ["--entry-class", program.entry_class] if program.entry_class is not None else []
    for library in program.libraries:
        words += ["--library", str(library.resolve())]
    for classpath in program.classpaths:
        words += ["-C", classpath]
    for key, value in program.settings.items():
        words += ["-D", f"{key}={value}"]
    words += ["-p", str(program.parallelism)] if program.parallelism is not None else []
    if program.managed_mb is not None:
        words += ["--settings", f"FILE with managed-memory = '{program.managed_mb} MiB'"]
    arguments = ["--", *program.arguments] if program.arguments else []
    return shlex.join([*words, *more, *arguments])
