"""The library: instances with best known solutions, and bounds that `checker/` verifies."""

from typing import TYPE_CHECKING

from streamsim.lazy import loader

if TYPE_CHECKING:
    from streamplace.library.folder import Library, LibraryEntry, open_library
    from streamplace.library.run_checker import CheckResult, check_entry, check_files
    from streamplace.library.runs import LibraryRun, run
    from streamplace.library.submission import submit
    from streamplace.library.tables import as_markdown, table

_MODULES = {
    "folder": "Library LibraryEntry open_library",
    "run_checker": "CheckResult check_entry check_files",
    "runs": "LibraryRun run",
    "submission": "submit",
    "tables": "as_markdown table",
}

__all__ = [
    "CheckResult",
    "Library",
    "LibraryEntry",
    "LibraryRun",
    "as_markdown",
    "check_entry",
    "check_files",
    "open_library",
    "run",
    "submit",
    "table",
]

__getattr__ = loader(__name__, _MODULES)
