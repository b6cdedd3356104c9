"""Upload jars, again if necessary, because a restarted JobManager has lost them."""

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.move.holder import Holder
from streamplace.engines.flink.rest.client import SUBMIT_SECONDS, FlinkError, Refusal, Rest
from streamplace.engines.flink.rest.transport import plain_name

_MISSING = re.compile(r"Jar file .+ does not exist")
_NAME = re.compile(r"streamplace-(?:move-[0-9a-f]+-)?[0-9a-f]+-([0-9a-f]{12}\.\d+\.\d+)[._]")
OLD_SECONDS = 24 * 3600.0
"""Age at which a jar of a command on another machine counts as left behind."""


@dataclass(slots=True)
class ClusterJar:
    """A jar on the cluster."""

    rest: Rest
    make: Callable[[], AbstractContextManager[Path]]  # creates the file, again for every upload
    id: str = ""  # id of the upload; empty before the first one
    name: str = ""  # name of the file, which is unique

    def upload(self) -> None:
        """Upload the jar."""
        with self.make() as jar:
            self.name = jar.name
            self.id = self.rest.upload(jar)

    def run(
        self, request: dict[str, object], rest: Rest | None = None, seconds: float = SUBMIT_SECONDS
    ) -> Any:
        """Run the jar and return the answer; upload the jar again if the JobManager has lost it.

        ``rest`` is the client for the request, if it should be less patient than that for uploads.
        """
        asking = rest or self.rest
        try:
            return asking.post(self._path, request, seconds)
        except Refusal as error:
            if _MISSING.search(error.complaint) is None:
                raise
        self.rest.tell("the JobManager has lost the uploaded jar; uploading it again")
        self.upload()
        return asking.post(self._path, request, seconds)

    def remove(self) -> None:
        """Remove all uploads of the jar, of which there may be several after lost answers."""
        with suppress(FlinkError):
            self.rest.remove_jar(self.id)
        with suppress(FlinkError):
            for jar in self.rest.get("/jars")["files"]:
                if jar["name"] == self.name:
                    self.rest.remove_jar(jar["id"])

    @property
    def _path(self) -> str:
        return f"/jars/{quote(self.id, safe='')}/run"


@contextmanager
def uploaded(rest: Rest, make: Callable[[], AbstractContextManager[Path]]) -> Iterator[ClusterJar]:
    """Upload a jar, and remove it when the block ends."""
    jar = ClusterJar(rest, make)
    jar.upload()
    try:
        yield jar
    finally:
        jar.remove()


def own_name(name: str) -> str:
    """Unique name of a jar, with the process that uploads it; Flink shows it as it is.

    >>> own_name("my job.jar").endswith("_my_job.jar")
    True
    """
    return f"streamplace-{secrets.token_hex(8)}-{Holder.current().mark}_{plain_name(name)}"


def is_own(name: str) -> bool:
    """Whether a jar was uploaded by streamplace.

    >>> is_own(own_name("job.jar")), is_own("job.jar")
    (True, False)
    """
    return _NAME.match(name) is not None


def left_jars(rest: Rest, now: float) -> dict[str, str]:
    """Id → name of the jars on a cluster whose commands have ended.

    ``now`` is the time in s.
    """
    left = {}
    for jar in rest.get("/jars")["files"]:
        match = _NAME.match(jar["name"])
        if match is not None and match[1] != Holder.current().mark:
            is_old = now - jar["uploaded"] / 1000 > OLD_SECONDS
            if is_old or not Holder.may_run(match[1]):
                left[jar["id"]] = jar["name"]
    return left


def remove_left_jars(rest: Rest, now: float) -> list[str]:
    """Remove the jars of commands that have ended, and return their names."""
    left = left_jars(rest, now)
    for jar in left:
        with suppress(Refusal):  # another command has removed it
            rest.remove_jar(jar)
    return [*left.values()]
