"""A job that is watched: its program, the end of its watch, and what is written."""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.pin.verify import Verification
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.watch import replacing
from streamplace.engines.flink.watch import watch as watching
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.replacing import PlacedJob, Replacing
from streamplace.io.store import Store
from streamplace.io.watches import read_records

OLD = "a" * 32
SAVED = "s3://b/chk-7"
CHECKPOINTED = {
    "counts": {"completed": 7},
    "latest": {"completed": {"id": 7, "external_path": SAVED}},
}
"""Checkpoints of a job that has completed some."""
RESTORED = {
    "counts": {"completed": 0},
    "latest": {"restored": {"id": 7, "external_path": SAVED}},
}
"""Checkpoints of a job that was started from one, and has completed none."""


class Killed(BaseException):
    """The watch is killed: nothing after this happens."""


def outcome(store: Store) -> tuple[str, str]:
    """State of the only decision, and the id of the job that it left."""
    (decision,) = read_records(store)[0].decisions
    return decision.state, decision.after


def starts_by(patch: pytest.MonkeyPatch, apply: Callable[..., str]) -> None:
    """Let watches look often, and start jobs again by a function, where they are placed."""
    patch.setattr(replacing, "apply", apply)
    patch.setattr(replacing, "check_made", lambda *_: None)
    patch.setattr(replacing, "verify", lambda *_: Verification((), (), ()))
    patch.setattr(watching, "LOOK_SECONDS", 0.01)
    patch.setattr(replacing, "LOOK_SECONDS", 0.01)


def replacing_of(
    flink: FakeFlink,
    log: WatchLog,
    tell: Callable[[str], None],
    spares: Sequence[str] = (),
    moved: Callable[[PlacedJob], None] = lambda _: None,
    patience: float = 0.0,
    **facts: Any,
) -> Replacing:
    """What starts a watched job again without lost TaskManagers."""
    home, program = Flink(Path(), "2.3.0"), Program(Path("a.jar"))
    return Replacing(flink.rest, home, program, spares, tell, moved, log, patience, **facts)


def lacking(answers: Mapping[str, Any], *devices: str) -> dict[str, Any]:
    """Answer of a cluster that has lost some of its TaskManagers."""
    rows = answers["GET /taskmanagers"]["taskmanagers"]
    return {"taskmanagers": [row for row in rows if row["id"] not in devices]}


def write_program(folder: Path) -> None:
    """Write a jar with a main class, and the Flink from which it is submitted, into a folder."""
    with zipfile.ZipFile(folder / "job.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Main-Class: Job\r\n")
    (folder / "lib").mkdir()
    (folder / "lib" / "flink-dist-2.3.0.jar").touch()
