"""Requirements of the process: enough memory, and a working folder."""

import errno
import sys
from pathlib import Path

from streamplace.errors import SettingError

LEAST_BYTES = 512 * 2**20
"""Least address space to load libraries; with less, some end the process without an error."""
MISSING = ("failed to map segment", "cannot allocate memory")


def check_limits() -> None:
    """Raise SettingError if no command could work."""
    try:
        Path.cwd()
    except OSError as error:
        raise SettingError(
            f"cannot use the working folder: {error.strerror}; change to another folder"
        ) from None
    limit = _address_space()
    if limit is not None and limit < LEAST_BYTES:
        raise SettingError(
            f"memory is limited to {limit // 2**20} MiB (ulimit -v); allow at least "
            f"{LEAST_BYTES // 2**20} MiB"
        )


def lacks_memory(error: BaseException) -> bool:
    """Whether an error means that memory is used up, in any wording."""
    if isinstance(error, MemoryError):
        return True
    if not isinstance(error, OSError | ImportError | RuntimeError):
        return False
    no_memory = getattr(error, "errno", None) == errno.ENOMEM
    return no_memory or any(words in str(error).lower() for words in MISSING)


def _address_space() -> int | None:
    """Bytes that the process may map; None if unlimited."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft
