"""Processes of this machine, as Linux tells of them."""

from pathlib import Path


def is_running(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody waited for does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it may end while its file is read
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
