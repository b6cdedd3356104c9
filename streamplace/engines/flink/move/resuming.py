"""Resuming of moves: the command that finishes a move, and the TaskManagers that it waits for.

The command is complete, so that it can be executed as printed.
"""

import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.model.messages import listed

LOOK_SECONDS = 0.5
_NEW = ("--placement", "--rate", "--nic")
"""Options with a value that a resumed move does not accept."""
_FLAGS = ("--resume", "--json", "--dry-run")
_FILES = (
    "--cluster",
    "--library",
    "--flink-home",
    "--authorization",
    "--key",
    "--cert",
    "--cacert",
)
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")
"""Name and password of an address, which are removed from commands in messages and files."""


def resume_words(words: Sequence[str], jar: Path) -> str:
    """The command line of a move with --resume, and without the options that this excludes.

    Paths are absolute, so that the working directory does not matter. Names and passwords in
    addresses are replaced by placeholders.

    >>> words = ["flink", "move", "/j/a.jar", "--placement", "p.json", "--", "--in", "x y"]
    >>> resume_words(words, Path("/j/a.jar"))
    "streamplace flink move /j/a.jar --resume -- --in 'x y'"
    >>> words = ["flink", "move", "/j/a.jar", "--rest", "http://me:secret@host"]
    >>> resume_words(words, Path("/j/a.jar"))
    'streamplace flink move /j/a.jar --rest http://NAME:PASSWORD@host --resume'
    """
    options, arguments = _parted(words)
    options = [*_whole(options, jar)]
    return shlex.join(["streamplace", *options, "--resume", *arguments])


def _whole(options: Sequence[str], jar: Path) -> Iterator[str]:
    for before, word in zip(("", *options), options, strict=False):
        if word.startswith(_NEW) or before in _NEW or word in _FLAGS:
            continue
        word = _LOGIN.sub("NAME:PASSWORD@", word)
        option, equals, path = word.partition("=")
        if Path(word) == jar or before in _FILES:
            yield str(Path(word).resolve())
        elif equals and option in _FILES:
            yield f"{option}={Path(path).resolve()}"
        else:
            yield word


def resume_command(program: Program, url: str, settings: MoveSettings) -> str:
    """Return the command that resumes a move that was begun from Python."""
    folder, usual = settings.savepoints, MoveSettings()
    more = ["--savepoints", folder] if folder is not None else []
    more += ["--native"] if settings.saving.native else []
    more += ["--timeout", f"{settings.seconds:g}"] if settings.seconds != usual.seconds else []
    return _command("move", program, url, [*more, "--resume"])


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
        words += ["--managed-memory", f"{program.managed_mb} MiB"]
    arguments = ["--", *program.arguments] if program.arguments else []
    return shlex.join([*words, *more, *arguments])


def with_job(command: str, job: str) -> str:
    """Add the job of the move to a command, unless it names one.

    >>> with_job("streamplace flink move a.jar --resume -- --job x", "0b7c")
    'streamplace flink move a.jar --resume --job 0b7c -- --job x'
    """
    options, arguments = _parted(shlex.split(command))
    if any(word == "--job" or word.startswith("--job=") for word in options):
        return command
    return shlex.join([*options, "--job", job, *arguments])


def _parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Words before the arguments of the job, and those arguments."""
    end = list(words).index("--") if "--" in words else len(words)
    return [*words[:end]], [*words[end:]]


def await_devices(
    rest: Rest, needed: set[str], seconds: float, tell: Callable[[str], None]
) -> None:
    """Wait until TaskManagers have joined, and released the slots of jobs that the cluster forgot.

    They release the slots of a job some time after its JobManager has gone. Raises FlinkError when
    that takes longer than ``seconds``.
    """
    deadline, before = time.monotonic() + seconds, ""
    while waiting := _awaited(rest, needed):
        if time.monotonic() > deadline:
            raise FlinkError(f"{waiting}, and did not within {seconds:g} s")
        if waiting != before:
            tell(f"waiting: {waiting}")
        before = waiting
        time.sleep(LOOK_SECONDS)


def _awaited(rest: Rest, needed: set[str]) -> str:
    """Condition that TaskManagers do not meet yet, as a clause; empty if they meet all."""
    offered, jobs = rest.offered(), rest.jobs().keys()
    if missing := sorted(needed.difference(offered)):
        return f"{listed(missing)} have to join the cluster"
    held = [device for device in sorted(needed) if set(rest.holders(device)) - jobs]
    return f"{listed(held)} have to give back the slots of a forgotten job" if held else ""
