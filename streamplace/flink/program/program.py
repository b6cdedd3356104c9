"""Programs of jobs: jars, arguments and settings.

Flink's REST interface reports neither the jar of a running job nor its class and arguments
(docs/how-to/flink-moves.md), so every submitted program is written to the user's store.
"""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from streamplace.errors import FormatError, PlacementError, SettingError
from streamplace.flink.program.jars import MAIN, check_jar, main_class
from streamplace.flink.rest.client import chain_of
from streamplace.flink.store import WHOLE, Store, Table
from streamplace.io.files import spot
from streamplace.model.message_text import quoted, shown

MAX_PROGRAMS = 1000
"""Maximum number of stored programs; the oldest are deleted first."""


@dataclass(frozen=True, slots=True)
class Savepoint:
    """Savepoint or checkpoint that a job is started from."""

    path: str  # path of a savepoint, or of a retained checkpoint
    # Whether state that belongs to no operator of the job may be dropped.
    allow_non_restored: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """The code and the settings of a job, without its placement."""

    jar: Path  # jar with the main class
    entry_class: str | None = None  # main class; by default that in the jar's manifest
    arguments: Sequence[str] = ()
    libraries: Sequence[Path] = ()  # further jars to submit with it
    classpaths: Sequence[str] = ()  # URLs of classes that every machine of the cluster can read
    # Flink's settings for this job, by key.
    settings: Mapping[str, str] = field(default_factory=dict)
    # Parallelism of operators for which neither the program nor the placement sets one.
    parallelism: int | None = None
    # Maximum managed memory of the job on each TaskManager; by default all free memory.
    managed_mb: int | None = None

    @property
    def entry(self) -> str:
        """The main class."""
        entry = self.entry_class or main_class(self.jar)
        if entry is None:
            raise PlacementError(
                f"{spot(self.jar)}: has no main class in its manifest; give --entry-class"
            )
        return entry

    def check(self) -> None:
        """Raise FormatError if a file is not a jar, or is damaged."""
        for jar in (self.jar, *self.libraries):
            check_jar(jar)
        if self.entry_class is None:
            main_class(self.jar)

    def with_settings(self, settings: Mapping[str, str]) -> "Program":
        """Return the program with further settings, which do not replace its settings."""
        return replace(self, settings={**settings, **self.settings})

    def flink_settings(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return all settings of a submission: the job's, further ones, and the classpaths.

        >>> Program(Path("job.jar"), classpaths=["file:///a.jar"]).flink_settings({"a": "b"})
        {'a': 'b', 'pipeline.classpaths': 'file:///a.jar'}
        """
        paths = {"pipeline.classpaths": ";".join(self.classpaths)} if self.classpaths else {}
        return {**self.settings, **more, **paths}

    def run_request(
        self, savepoint: Savepoint | None, more: Mapping[str, str] | None = None
    ) -> dict[str, object]:
        """Body of the REST request that makes the pinning class run the job.

        ``more``: settings besides those of the job. The jar is read only if its main class is not
        given, because the file may be gone once it is on the cluster.
        """
        request: dict[str, object] = {
            "entryClass": MAIN,
            "programArgsList": [self.entry, *self.arguments],
        }
        if settings := self.flink_settings(more or {}):
            request["flinkConfiguration"] = settings
        if self.parallelism is not None:
            request["parallelism"] = self.parallelism
        if savepoint is not None:
            request["savepointPath"] = savepoint.path
            request["allowNonRestoredState"] = savepoint.allow_non_restored
        return request


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Settings by key, from texts such as ``key=value``.

    >>> parse_settings(["pipeline.name=shop", "a=b=c"])
    {'pipeline.name': 'shop', 'a': 'b=c'}
    """
    pairs = [text.partition("=") for text in texts]
    for text, (key, equals, _) in zip(texts, pairs, strict=True):
        if not key or not equals:
            raise SettingError(f"{quoted(text)} is not a setting; write KEY=VALUE")
    return {key: value for key, _, value in pairs}


class SubmittedProgram(BaseModel):
    """Program of a job, with absolute paths."""

    model_config = WHOLE

    job: str
    program: Program
    digests: dict[Path, str]  # jar → its SHA-256 at the submission

    @classmethod
    def of(cls, program: Program, job: str = "") -> "SubmittedProgram":
        """Return the program of a job, as it is stored."""
        jar, *libraries = [jar.resolve() for jar in (program.jar, *program.libraries)]
        digests = {jar: digest(jar) for jar in (jar, *libraries)}
        return cls(job=job, program=replace(program, jar=jar, libraries=libraries), digests=digests)

    def check(self) -> None:
        """Raise SettingError if a jar has changed since the submission, or cannot be read."""
        for path, before in self.digests.items():
            now = ""
            with suppress(OSError):
                now = digest(path)
            if now != before:
                raise SettingError(
                    f"{spot(path)} is not the jar any more that the job was submitted with; name "
                    "that jar and its arguments, as in: JAR -- ARGUMENTS"
                )


PROGRAMS = Table("programs", TypeAdapter(SubmittedProgram))


def digest(jar: Path) -> str:
    """SHA-256 of a file."""
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remember(job: str, program: Program) -> None:
    """Store the program of a job; errors of reading its jars and of writing are ignored."""
    with suppress(OSError, FormatError):
        row = SubmittedProgram.of(program, job)
        with Store.usual().transaction() as rows:
            rows.delete(PROGRAMS, job)
            rows.add(PROGRAMS, job, row)
            rows.forget(PROGRAMS, MAX_PROGRAMS)


def known_program(job: str) -> Program:
    """Return the stored program of a job, or of the job that it replaced.

    Raises SettingError when it is unknown, or when a jar has changed since the submission.
    """
    stored = stored_program(job)
    if stored is None:
        raise SettingError(
            f"Flink does not report how job {shown(job)} was submitted, and it was not "
            "submitted by streamplace on this machine; name its jar and arguments, as in: JAR -- "
            "ARGUMENTS"
        )
    stored.check()
    return stored.program


def kept_program(job: str, program: Program) -> Program:
    """Return a program with the previous settings of its job, to submit the job again.

    Raises SettingError when the stored program of the job has another main class, other arguments
    or other jars, because a move does not change the program.
    """
    stored = stored_program(job)
    if stored is None:
        return program
    before, digests = stored.program, [*stored.digests.values()]
    entry = program.entry_class or before.entry_class
    with suppress(OSError, FormatError):  # the jar may be gone since its upload
        digests = [digest(jar) for jar in (program.jar, *program.libraries)]
        entry = program.entry
    differs = (
        [*program.arguments] != [*before.arguments]
        or digests != [*stored.digests.values()]
        or (before.entry_class is not None and entry != before.entry_class)
    )
    if differs:
        words = shlex.join([before.jar.name, *before.arguments])
        raise SettingError(
            f"job {shown(job)} was submitted as {words}, and a move does not change its program; "
            "leave out the jar and its arguments, or stop the job and start it from its savepoint "
            "with 'streamplace flink apply --savepoint'"
        )
    return replace(
        before,
        jar=program.jar,
        libraries=program.libraries,
        classpaths=program.classpaths or before.classpaths,
        settings={**before.settings, **program.settings},
        parallelism=program.parallelism or before.parallelism,
        managed_mb=program.managed_mb or before.managed_mb,
    )


def stored_program(job: str) -> SubmittedProgram | None:
    """Stored program of a job, or of the nearest job that it replaced; None if unknown."""
    by_distance: dict[int, SubmittedProgram] = {}
    for stored in Store.usual().rows(PROGRAMS).values():
        chain = chain_of(stored.job)
        if job in chain:
            by_distance[chain.index(job)] = stored
    return by_distance[min(by_distance)] if by_distance else None
