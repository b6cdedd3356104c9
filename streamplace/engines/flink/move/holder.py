"""Processes that claim a move or a watch, and whether they still run."""

import getpass
import os
import socket
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from streamplace.model.messages import shown


class Holder(BaseModel):
    """The process that claims a move or a watch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str  # its machine, with the namespace of its process ids
    process: int
    started: int  # start time of its process, in the kernel's clock ticks; 0 if unknown
    user: str

    @classmethod
    def current(cls) -> "Holder":
        """Return the calling process."""
        process = os.getpid()
        try:
            user = getpass.getuser()
        except (OSError, KeyError):  # the user id has no name
            user = str(os.getuid())
        return cls(host=_host(), process=process, started=_started(process) or 0, user=user)

    @property
    def is_here(self) -> bool:
        """Whether its process belongs to this machine."""
        return self.host == _host()

    @property
    def runs(self) -> bool:
        """Whether its process runs on this machine; another one may have got its id since."""
        return self.is_here and _started(self.process) == self.started

    def __str__(self) -> str:
        host = self.host.partition(" ")[0]
        return f"process {self.process} of {shown(self.user)} on {shown(host)}"


def _host() -> str:
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".strip()


def _started(process: int) -> int | None:
    """Start time of a process of this machine, in clock ticks; None if there is no such process."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return None
    except (OSError, IndexError, ValueError):
        return 0
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return 0
    return None
