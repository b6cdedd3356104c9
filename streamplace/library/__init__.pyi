from streamplace.library.folder import Library as Library
from streamplace.library.folder import LibraryEntry as LibraryEntry
from streamplace.library.folder import open_library as open_library
from streamplace.library.run_checker import CheckResult as CheckResult
from streamplace.library.run_checker import check_entry as check_entry
from streamplace.library.run_checker import check_files as check_files
