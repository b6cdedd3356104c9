"""The library: instances with best known solutions, and bounds that `checker/` verifies."""

from typing import TYPE_CHECKING

from streamsim.lazy import loader

if TYPE_CHECKING:
    from streamplace.library.folder import Library, LibraryEntry, open_library
    from streamplace.library.run_checker import CheckResult, check_entry, check_files

_MODULES = {
    "folder": "Library LibraryEntry open_library",
    "run_checker": "CheckResult check_entry check_files",
}

__all__ = [
    "CheckResult",
    "Library",
    "LibraryEntry",
    "check_entry",
    "check_files",
    "open_library",
]

__getattr__ = loader(__name__, _MODULES)
