"""Programs of submitted jobs, stored on this machine, because Flink does not report them.

Flink's REST interface reports neither the jar of a running job nor the class and the arguments that
it was started with (docs/how-to/flink-moves.md). So every program that streamplace submits is
written to the user's store.
"""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.uploads import is_own
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.job_ids import chain_of
from streamplace.errors import FormatError, SettingError
from streamplace.io.files import spot
from streamplace.io.store import WHOLE, Store, Table
from streamplace.model.messages import listed, shown

MOST = 1000
"""Maximum number of stored programs; the oldest are deleted first."""
UPLOADS = "flink-web-upload"
"""Default folder of the JobManager for uploaded jars."""


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
        """Raise SettingError if a jar has changed since, or cannot be read any more."""
        for path, known in self.digests.items():
            now = ""
            with suppress(OSError):
                now = digest(path)
            if now != known:
                raise SettingError(
                    f"{spot(path)} is not the jar any more that the job was submitted with; name "
                    "the jar and its arguments as the job was submitted with, as in: JAR -- "
                    "ARGUMENTS"
                )


def digest(jar: Path) -> str:
    """SHA-256 of a file."""
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


PROGRAMS = Table("programs", TypeAdapter(SubmittedProgram))


def remember(job: str, program: Program) -> None:
    """Store the program of a job; errors of reading its jars and of writing are ignored."""
    with suppress(OSError, FormatError):
        row = SubmittedProgram.of(program, job)
        with Store.usual().transaction() as rows:
            rows.delete(PROGRAMS, job)
            rows.add(PROGRAMS, job, row)
            rows.forget(PROGRAMS, MOST)


def remembered_program(job: str) -> Program | None:
    """Return the program of a job, or of the job that it replaced; None if unknown.

    A jar that has changed since the submission raises SettingError.
    """
    near: dict[int, SubmittedProgram] = {}
    for known in Store.usual().rows(PROGRAMS).values():
        chain = chain_of(known.job)
        if job in chain:
            near[chain.index(job)] = known
    if not near:
        return None
    known = near[min(near)]
    known.check()
    return known.program


def known_program(rest: Rest, job: str) -> Program:
    """Return the program of a job.

    If it is unknown, SettingError names the jars that were uploaded to the cluster.
    """
    program = remembered_program(job)
    if program is not None:
        return program
    raise SettingError(
        f"Flink does not tell what job {shown(job)} was submitted with, and it was not submitted "
        "by streamplace on this machine; name its jar and arguments, as in: JAR -- ARGUMENTS"
        f"{_uploads(rest)}"
    )


def _uploads(rest: Rest) -> str:
    """Clause on jars that others have uploaded, with their paths if these are on this machine."""
    try:
        jars = [jar for jar in rest.get("/jars")["files"] if not is_own(jar["name"])]
    except FlinkError:  # a cluster that accepts no jars
        return ""
    if not jars:
        return ""
    paths = _on_this_machine(rest.settings(), [jar["id"] for jar in jars])
    if paths:
        return f". Jars that were uploaded lie in {', '.join(map(spot, paths))}"
    return f". Jars that were uploaded: {listed([jar['name'] for jar in jars])}"


def _on_this_machine(settings: dict[str, str], jars: Sequence[str]) -> list[Path]:
    """Paths of uploaded jars that this user can read."""
    folder = Path(settings.get("web.upload.dir", settings.get("web.tmpdir", os.devnull))) / UPLOADS
    return [path for jar in jars if os.access(path := folder / jar, os.R_OK)]
