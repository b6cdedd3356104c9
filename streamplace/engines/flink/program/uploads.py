"""Upload jars, again if necessary, because a restarted JobManager has lost them."""

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.rest.client import SUBMIT_SECONDS, FlinkError, Refusal, Rest
from streamplace.engines.flink.rest.transport import plain_name

_MISSING = re.compile(r"Jar file .+ does not exist")
_NAME = re.compile(r"streamplace-[0-9a-f]{16}_")


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
    """Unique name of a jar; Flink shows it as it is.

    >>> own_name("my job.jar").endswith("_my_job.jar")
    True
    """
    return f"streamplace-{secrets.token_hex(8)}_{plain_name(name)}"


def is_own(name: str) -> bool:
    """Whether a jar was uploaded by streamplace.

    >>> is_own(own_name("job.jar")), is_own("job.jar")
    (True, False)
    """
    return _NAME.match(name) is not None
