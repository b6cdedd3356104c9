"""A watched job: its first id, how it is killed, what became of it, and a program of it."""

import zipfile
from pathlib import Path

from streamplace.io.store import Store
from streamplace.io.watches import read_records

OLD = "a" * 32


class Killed(BaseException):
    """The watch is killed: nothing after this happens."""


def outcome(store: Store) -> tuple[str, str]:
    """State of the only decision, and the id of the job that it left."""
    (decision,) = read_records(store)[0].decisions
    return decision.state, decision.after


def write_program(folder: Path) -> None:
    """Write a jar with a main class, and the Flink from which it is submitted, into a folder."""
    with zipfile.ZipFile(folder / "job.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Main-Class: Job\r\n")
    (folder / "lib").mkdir()
    (folder / "lib" / "flink-dist-2.3.0.jar").touch()
