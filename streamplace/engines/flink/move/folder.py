"""Folder of savepoints: small files that the JobManager stores there for the command line.

The folder may be on any file system that Flink can write to, including those that this machine does
not reach. So the JobManager reads and writes it, with a class of ours (``MoveFiles``).
"""

import base64
import binascii
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.program.jars import FILES, files_jar
from streamplace.engines.flink.program.uploads import ClusterJar, own_name, uploaded
from streamplace.engines.flink.rest.client import FlinkError, Refusal, Rest
from streamplace.errors import SettingError
from streamplace.model.messages import shown
from streamplace.model.units import format_bytes

SETTINGS = ("execution.checkpointing.savepoint-dir", "state.savepoints.dir")
"""Flink's settings for the folder of savepoints; the second is the older name."""
_ANSWER = re.compile(r"streamplace: <([A-Za-z0-9+/=]*)>")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or folder in the folder of savepoints."""

    name: str
    age: float  # seconds since the last write


@dataclass(frozen=True, slots=True)
class SavepointFolder:
    """The folder of savepoints, as the JobManager sees it."""

    rest: Rest
    uri: str  # path or URI of the folder
    jar: ClusterJar  # jar with the class that reads and writes there

    def path(self, name: str) -> str:
        """Path of a file in the folder."""
        return f"{self.uri.rstrip('/')}/{name}"

    def create(self, name: str, text: str) -> bool:
        """Write a file that does not exist yet; return whether this call created it."""
        return self._ask("create", self.path(name), text) == "created"

    def write(self, name: str, text: str) -> None:
        """Write a file, whether it exists or not."""
        self._ask("write", self.path(name), text)

    def read(self, name: str) -> str:
        """Text of a file; empty if it does not exist."""
        return self._ask("read", self.path(name))

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        self._ask("delete", self.path(name))

    def entries(self, prefix: str) -> list[FileEntry]:
        """Files and folders whose names begin with a prefix, by name."""
        return _entries(self._ask("list", self.uri, prefix))

    def complete(self, uri: str, prefix: str) -> list[FileEntry]:
        """Complete savepoints or checkpoints in a folder, by name.

        Their age is that of their metadata, which Flink writes last.
        """
        return _entries(self._ask("complete", uri, prefix))

    def check_room(self, least: int) -> None:
        """Raise FlinkError if no file can be written, or fewer bytes than these are free.

        Free space is known for the JobManager's own file system only.
        """
        free = int(self._ask("room", self.path(f"streamplace-test-{secrets.token_hex(8)}")))
        if 0 <= free < least:
            raise FlinkError(
                f"{shown(self.uri, 300)} has {format_bytes(free)} free, and the last checkpoint of "
                f"the job took {format_bytes(least)}; make room, or name another folder with "
                "--savepoints"
            )

    def spend(self, job: str) -> None:
        """Use up the id of a job, so that no job with this id can be submitted any more.

        Raises Refusal when there is, or was, a job with this id.
        """
        self.jar.run({"entryClass": FILES, "programArgsList": ["spend"], "jobId": job})
        self.rest.cancel(job)

    def _ask(self, *arguments: str) -> str:
        """Answer of the JobManager, which Flink transports as the failure of a main method."""
        request: dict[str, object] = {"entryClass": FILES, "programArgsList": list(arguments)}
        try:
            self.jar.run(request)
        except Refusal as error:
            match = _ANSWER.search(error.complaint)
            if match is None:
                raise FlinkError(
                    f"the JobManager cannot use the folder {shown(self.uri, 300)}: {error}"
                ) from None
            with suppress(binascii.Error, UnicodeDecodeError):
                return base64.b64decode(match[1], validate=True).decode()
        raise FlinkError(f"the JobManager does not answer requests about {shown(self.uri, 300)}")


@contextmanager
def savepoint_folder(
    rest: Rest, flink: Flink, uri: str, jar_name: str | None = None
) -> Iterator[SavepointFolder]:
    """Provide access to the folder of savepoints while the block runs.

    Other commands may recognise the name of the jar.
    """
    name = jar_name or own_name("files.jar")

    def make() -> AbstractContextManager[Path]:
        return files_jar(flink, name)

    with uploaded(rest, make) as jar:
        yield SavepointFolder(rest, uri, jar)


def _entries(text: str) -> list[FileEntry]:
    """Files from lines with an age in ms, a tab and a name, sorted by name."""
    rows = [line.partition("\t") for line in text.splitlines()]
    entries = [FileEntry(name, float(age) / 1000) for age, _, name in rows]
    return sorted(entries, key=lambda entry: entry.name)


def folder_uri(rest: Rest, given: str | None, settings: Mapping[str, str] | None = None) -> str:
    """Folder of savepoints: the one given, else that of the job's or the cluster's settings.

    Raises SettingError when no folder is known.
    """
    own, cluster = settings or {}, {} if given else rest.settings()
    named = (place[key] for place in (own, cluster) for key in SETTINGS if place.get(key))
    uri = given or next(named, None)
    if uri is None:
        raise SettingError(
            "the cluster has no folder for savepoints (execution.checkpointing.savepoint-dir); "
            "name one with --savepoints"
        )
    return uri
