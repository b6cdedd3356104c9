"""Processes that hold a lock, and how other processes, also on other machines, recognise them."""

import getpass
import hashlib
import os
import socket
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from streamplace.model.messages import shown


class Holder(BaseModel):
    """The command that holds a lock."""

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
        """Whether its process runs on this machine."""
        return self.is_here and Holder.may_run(self.mark)

    @property
    def mark(self) -> str:
        """Text without spaces by which other processes of its machine recognise it."""
        return f"{_digest(self.host)}.{self.process}.{self.started}"

    @staticmethod
    def may_run(mark: str) -> bool:
        """Whether the process of a mark may be running; processes of other machines may."""
        host, _, rest = mark.partition(".")
        process, _, started = rest.partition(".")
        if host != _digest(_host()) or not (process.isdecimal() and started.isdecimal()):
            return True
        return _started(int(process)) == int(started)

    def __str__(self) -> str:
        host = self.host.partition(" ")[0]
        return f"process {self.process} of {shown(self.user)} on {shown(host)}"


def _host() -> str:
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".strip()


def _digest(host: str) -> str:
    return hashlib.sha256(host.encode()).hexdigest()[:12]


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
